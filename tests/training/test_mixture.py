from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet.records import PAIRS, DataError
from coderet.registry import BadValue, UnknownName
from coderet.training.mixture import NO_ROW, gathered


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """written("name", [(language, query, code)...]): a file of such pairs."""

    def write(name: str, pairs: list[tuple[str | None, str | None, str | None]], ids: list[str] | None = None) -> Path:
        columns = {
            "pair_id": ids or [f"{name}-{number}" for number in range(len(pairs))],
            "repository": ["package"] * len(pairs),
            "path": ["module.py"] * len(pairs),
            "language": [language for language, _, _ in pairs],
            "name": ["f"] * len(pairs),
            "query": [query for _, query, _ in pairs],
            "code": [code for _, _, code in pairs],
            "start_line": [1] * len(pairs),
            "end_line": [2] * len(pairs),
        }
        pq.write_table(pa.table(columns, schema=PAIRS), tmp_path / f"{name}.parquet")
        return tmp_path / f"{name}.parquet"

    return write


def test_pairs_without_a_side_are_left_out_and_counted(written):
    path = written("m", [("python", "q", "c"), ("python", " \n", "c"), ("python", "q", None), ("go", "q2", "c2")])
    found = gathered(path)
    assert found.table["query"].to_pylist() == ["q", "q2"] and found.rows.tolist() == [0, 3]
    assert found.mixture is None and found.facts["pairs_without_a_side"] == 2
    assert found.facts["pairs_by_source"] == {"go": 1, "python": 1}


def test_a_repository_gives_no_more_than_it_may(written, tmp_path: Path):
    path = written("m", [("python", f"q{row}", "c") for row in range(50)])
    table = pq.read_table(path)
    owners = pa.array(["big"] * 40 + ["small"] * 10, pa.large_string())
    pq.write_table(table.set_column(1, "repository", owners), path)
    drawn = [gathered(path, a_repository=12, seed=seed) for seed in (1, 1, 2)]
    for found in drawn:
        assert found.table["repository"].to_pylist() == ["big"] * 12 + ["small"] * 10
        assert found.table["query"].to_pylist() == [f"q{row}" for row in found.rows]
        assert found.facts["pairs_by_source"] == {"python": 22} and found.facts["pairs_without_a_side"] == 0
    assert drawn[0].rows.tolist() == drawn[1].rows.tolist() != drawn[2].rows.tolist()


@pytest.mark.parametrize("pairs", [[("python", "q", "")], [("python", None, "c"), ("python", "", "d")]])
def test_a_file_with_one_side_only_is_refused(written, pairs):
    with pytest.raises(DataError, match="no pair with both a query and code; wanted text in both columns"):
        gathered(written("m", pairs))


def test_ids_that_are_repeated_are_refused_by_name(written):
    path = written("m", [("python", "q", "c")] * 3, ids=["a", "b", "a"])
    with pytest.raises(DataError, match="1 pair ids that stand more than once, 'a'"):
        gathered(path)


def test_sources_are_languages_and_files_in_the_given_proportion(written):
    path = written("m", [("python", "q", "c")] * 6 + [("go", "q", "c")] * 2 + [("ruby", "q", "c")])
    own = written("own", [(None, "mine", "c")] * 3)
    found = gathered(path, {"own": str(own)}, {"python": 3, "own": 1})
    assert found.mixture is not None and found.mixture.names == ("python", "own")
    assert found.mixture.shares == (0.75, 0.25) and found.mixture.pairs == 9
    assert found.mixture.sources.tolist() == [0] * 6 + [-1] * 3 + [1] * 3
    assert found.rows.tolist() == [*range(9), NO_ROW, NO_ROW, NO_ROW]
    assert found.facts["pairs_of_other_sources"] == 3
    assert found.facts["shares_by_source"] == {"python": 0.75, "own": 0.25}


def test_smoothing_is_a_power_of_the_counts(written):
    path = written("m", [("python", "q", "c")] * 9 + [("go", "q", "c")])
    for power, share in ((1.0, 0.9), (0.5, 0.75), (0, 0.5)):
        mixture = gathered(path, smoothing=power).mixture
        assert mixture is not None and mixture.names == ("go", "python")
        assert np.allclose(mixture.shares, [1 - share, share])


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"mixture": {"pyton": 1}}, UnknownName, "names 'pyton'.*known: go, python. Did you mean python"),
        ({"mixture": {"python": 0}}, BadValue, "fit.pairs.mixture.python is 0; wanted a number"),
        ({"mixture": {"python": "much"}}, BadValue, "fit.pairs.mixture.python is 'much'; wanted a number"),
        ({"mixture": ["python"]}, BadValue, "wanted numbers by the names of sources"),
        ({"mixture": {"python": 1}, "smoothing": 0.5}, BadValue, "both mixture and smoothing"),
        ({"smoothing": 2.0}, BadValue, "fit.pairs.smoothing is 2.0; wanted a number from 0 to 1"),
        ({"epoch_pairs": 5}, BadValue, "epoch_pairs is for a mixture"),
        ({"files": {"go": "go.parquet"}}, BadValue, "fit.pairs.files.go has the name of a mined language"),
        ({"files": {"own": "none.parquet"}}, DataError, "none.parquet is missing"),
        ({"files": {"own": 3}}, BadValue, "fit.pairs.files.own is 3; wanted the path of a Parquet file"),
    ],
)
def test_what_cannot_be_mixed_is_refused(written, settings, error, said):
    path = written("m", [("python", "q", "c"), ("go", "q", "c")])
    with pytest.raises(error, match=said):
        gathered(path, **settings)
