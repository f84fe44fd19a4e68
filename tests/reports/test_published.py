from pathlib import Path

import pytest

from coderet import reports
from coderet.records import DataError

PUBLISHED = Path(__file__).parents[2] / "data" / "published"


def test_percentages_become_fractions_and_dashes_no_row():
    rows = reports.published_rows(PUBLISHED, ["humaneval", "codesearchnet_py"])
    values = {(row["system"], row["benchmark"]): row["value"] for row in rows}
    assert values["bm25", "humaneval"] == 1.0
    assert values["gist_base", "humaneval"] == 0.98
    assert ("sfr_mistral", "codesearchnet_py") not in values
    assert {(row["metric"], row["dataset"], row["source"], row["unit"]) for row in rows} == {
        ("ndcg@10", "all", "published:CodeRAG-Bench table 3", "fraction")
    }


def test_only_benchmarks_of_the_grid_have_rows():
    assert reports.published_rows(PUBLISHED, ["pypi"]) == []
    assert {row["benchmark"] for row in reports.published_rows(PUBLISHED, ["humaneval"])} == {"humaneval"}


def test_codesearchnet_has_a_row_a_language_and_no_mean_that_the_paper_did_not_compute():
    rows = reports.published_rows(PUBLISHED, ["codesearchnet"])
    nbow = {row["dataset"]: row["value"] for row in rows if row["system"] == "nbow"}
    assert nbow["python"] == 0.5809
    assert set(nbow) == {"go", "java", "javascript", "php", "python", "ruby"}
    assert {row["metric"] for row in rows} == {"mrr-1000-paper"}


def test_files_that_are_gone_are_an_error(tmp_path):
    with pytest.raises(DataError, match=r"coderag_bench\.yaml is missing"):
        reports.published_rows(tmp_path, ["humaneval"])
