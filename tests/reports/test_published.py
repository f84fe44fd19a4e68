from pathlib import Path

import pytest

from coderet import reports
from coderet.records import DataError, Published

PUBLISHED = Path(__file__).parents[2] / "data" / "published"


def rows_of(page, column, benchmark="ours"):
    return reports.published_rows(PUBLISHED, {benchmark: Published(page, column)})


def test_percentages_become_fractions_and_dashes_no_row():
    values = {row["system"]: row["value"] for row in rows_of("coderag_bench", "humaneval")}
    assert values["bm25"] == 1.0
    assert values["gist-base"] == 0.98
    assert "sfr-mistral" not in {row["system"] for row in rows_of("coderag_bench", "codesearchnet_py")}
    assert {
        (row["metric"], row["dataset"], row["source"], row["unit"]) for row in rows_of("coderag_bench", "mbpp")
    } == {("ndcg@10", "all", "published:CodeRAG-Bench table 3", "fraction")}


def test_a_benchmark_that_no_paper_has_gives_no_row():
    assert reports.published_rows(PUBLISHED, {"pypi": None}) == []


def test_rows_bear_the_name_of_the_benchmark_here():
    assert {row["benchmark"] for row in rows_of("coderag_bench", "odex", "odex-devdocs")} == {"odex-devdocs"}


def test_codesearchnet_has_a_column_a_language_and_one_of_all_in_one_pool():
    nbow = {name: rows_of("codesearchnet", f"mrr-{name}")[0] for name in ("python", "all")}
    assert nbow["python"]["system"] == "nbow" and nbow["python"]["value"] == 0.5809
    assert nbow["all"]["value"] == 0.6167
    assert {row["metric"] for row in nbow.values()} == {"mrr-1000-paper"}


def test_the_challenge_has_both_readings():
    by_metric = {
        row["metric"]: row["value"]
        for row in rows_of("codesearchnet", "challenge-python")
        if row["system"] == "elasticsearch"
    }
    assert by_metric == {"ndcg-within": 0.406, "ndcg-all": 0.256}


def test_coir_has_two_protocols_and_systems_by_the_last_part_of_their_name():
    page = {row["system"]: row["value"] for row in rows_of("coir", "coir-2024/cosqa")}
    assert page["e5-base-v2"] == 0.3259
    assert {row["system"]: row["value"] for row in rows_of("coir", "mteb/apps")}["baseline-bm25s"] == 0.04764


def test_a_column_that_there_is_not_is_an_error():
    with pytest.raises(DataError, match=r"no figures for 'mbbp'; known: humaneval, mbpp"):
        rows_of("coderag_bench", "mbbp")


def test_files_that_are_gone_are_an_error(tmp_path):
    with pytest.raises(DataError, match=r"coderag_bench\.yaml is missing"):
        reports.published_rows(tmp_path, {"humaneval": Published("coderag_bench", "humaneval")})
