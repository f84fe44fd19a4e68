"""A fusion tuned on a few real pairs: a lexical retriever, and one whose hits a table says."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet import retrievers
from coderet.records import NO_HIT, PAIRS, DataError
from coderet.registry import BadValue, UnknownName
from coderet.retrievers.tuning import WAYS, datasets, first_of_the_best, settled, tune

CODE = {
    "sort": ("Sort the given list of numbers in place.", "def sort(numbers):\n    numbers.sort()"),
    "read": ("Read a text file and return its lines.", "def read(path):\n    return open(path).read()"),
    "mean": ("Average of all values.", "def mean(values):\n    return sum(values) / len(values)"),
    "area": ("How much ground a circle covers.", "def area(r):\n    return 3.14159 * r * r"),
}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    ids = list(CODE)
    columns = {name: ["x"] * len(ids) for name in PAIRS.names} | {
        "pair_id": ids,
        "query": [query for query, _ in CODE.values()],
        "code": [code for _, code in CODE.values()],
        "start_line": [1] * len(ids),
        "end_line": [2] * len(ids),
    }
    pq.write_table(pa.table(columns, schema=PAIRS), tmp_path / "valid.parquet")
    return tmp_path / "valid.parquet"


class Told:
    """A searcher and its retriever: for every question the documents in the order of their ids, scores near 1."""

    def index(self, corpus: Any, folder: Path) -> dict[str, float]:
        self.documents = len(corpus)
        return {}

    def open(self, corpus: Any, folder: Path) -> "Told":
        return self

    def search(self, queries: pa.ChunkedArray, k: int) -> tuple[np.ndarray, np.ndarray]:
        order = np.broadcast_to(np.arange(min(k, self.documents)), (len(queries), min(k, self.documents)))
        rows = np.full((len(queries), k), NO_HIT)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        rows[:, : order.shape[1]], scores[:, : order.shape[1]] = order, 1 - 0.01 * order
        return rows, scores


@pytest.fixture
def members(tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "bm25"
    retrievers.save(retrievers.create("bm25s"), "bm25s", folder)
    spec = {"kind": "bm25s", "index": {"analyzer": "code-words"}}
    return {"bm25": retrievers.load(folder, spec), "told": Told()}


def test_ways_take_more_and_more_of_what_question_and_code_share():
    query, code = CODE["sort"]
    assert {way: ask(query, code) for way, ask in WAYS.items()} == {
        "whole": "Sort the given list of numbers in place.",
        "short": "Sort the given list of numbers",
        "strange": "Sort the given list of in place.",  # `sort` is the first shared word, `numbers` the second
        "foreign": "the given list of in place.",
    }


def test_the_code_of_all_pairs_is_searched_and_the_own_is_the_answer(pairs: Path, tmp_path: Path):
    asked = datasets(pairs, 10, 13, tmp_path)
    assert list(asked) == list(WAYS)
    for dataset in asked.values():
        assert dataset.corpus.ids.to_pylist() == sorted(CODE, reverse=True)
        assert dataset.qrels.table.to_pydict() == {
            "query_id": dataset.queries.ids.to_pylist(),
            "document_id": dataset.queries.ids.to_pylist(),
            "grade": [1.0] * 4,
        }


def test_pairs_with_one_doc_comment_answer_each_other_and_a_question_without_words_is_not_asked(tmp_path: Path):
    columns = {name: ["x"] * 3 for name in PAIRS.names} | {
        "pair_id": ["a", "b", "c"],
        "query": ["Gives names.", "Gives names.", "sort numbers"],
        "code": ["def a(): 1", "def b(): 2", CODE["sort"][1]],
        "start_line": [1] * 3,
        "end_line": [2] * 3,
    }
    pq.write_table(pa.table(columns, schema=PAIRS), tmp_path / "valid.parquet")
    asked = datasets(tmp_path / "valid.parquet", 10, 13, tmp_path)
    judged = asked["foreign"].qrels.table
    assert asked["foreign"].queries.ids.to_pylist() == ["a", "b"] and len(asked["whole"].queries) == 3
    assert list(zip(*(judged[name].to_pylist() for name in ("query_id", "document_id")), strict=True)) == [
        ("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")
    ]  # fmt: skip


def test_so_many_pairs_are_drawn_by_the_seed(pairs: Path, tmp_path: Path):
    drawn = [datasets(pairs, 2, seed, tmp_path)["whole"].corpus.ids.to_pylist() for seed in (1, 1, 2, 3, 4)]
    assert [len(each) for each in drawn] == [2] * 5
    assert drawn[0] == drawn[1] and len({tuple(each) for each in drawn}) > 1


def test_what_gains_most_in_the_mean_of_all_ways_is_chosen(pairs: Path, members: dict[str, Any], tmp_path: Path):
    settings = {"tune": {"grid": {"weight": [0.0, 0.001, 5.0], "saturation": [1.0]}}}
    found = tune("weighted", settings, members, pairs, tmp_path / "work", 13, 8)
    assert found["settings"] == {"weight": 5.0, "saturation": 1.0}  # the told one knows nothing
    assert found["documents"] == 4 and found["questions"] == dict.fromkeys(WAYS, 4)
    assert [trial["weight"] for trial in found["trials"]] == [0.0, 0.001, 5.0]
    nothing, _, best = found["trials"]
    for way in WAYS:
        assert nothing[way] == pytest.approx(found["members"][way]["told"])
        assert best[way] == found["fused"][way]
    assert best["whole"] > max(found["members"]["whole"].values()) - 1e-9
    gains = [np.mean([trial[way] - max(found["members"][way].values()) for way in WAYS]) for trial in found["trials"]]
    assert found["mean_gain"] == pytest.approx(gains[2])
    assert found["largest_mean_gain"] == pytest.approx(max(gains))
    assert list((tmp_path / "work").iterdir()) == []
    assert tune("weighted", settings, members, pairs, tmp_path / "work", 13, 8) == found


def test_of_settings_that_so_few_questions_cannot_tell_apart_the_first_is_taken():
    best, noise = np.random.default_rng(0).normal(size=(2, 100))
    noise -= noise.mean()
    much_worse = best - 1
    hardly_worse = best - 0.02 + noise * 0.3  # 2 behind in all, with an error of about 3
    surely_worse = best - 0.02 + noise * 0.1  # of about 1
    assert first_of_the_best(np.array([much_worse, hardly_worse, best])) == 1
    assert first_of_the_best(np.array([much_worse, surely_worse, best])) == 2
    assert first_of_the_best(np.array([best, best])) == 0


def test_any_setting_of_any_fusion_can_be_tuned_and_the_first_of_equals_is_taken(
    pairs: Path, members: dict[str, Any], tmp_path: Path
):
    settings = {"weights": [0, 1], "tune": {"pairs": 3, "grid": {"k": [60, 10]}}}
    found = tune("rrf", settings, members, pairs, tmp_path / "work", 13, 8)
    assert found["settings"] == {"k": 60} and found["documents"] == 3
    assert found["fused"] == {way: pytest.approx(each["told"]) for way, each in found["members"].items()}


def test_a_fusion_takes_what_was_chosen_and_one_without_tuning_asks_no_file(tmp_path: Path):
    path = tmp_path / "hybrid.json"
    assert settled({"k": 60}, path) == {"k": 60}
    with pytest.raises(DataError, match=r"hybrid.json is missing; run: dvc repro"):
        settled({"tune": {"grid": {"weight": [1]}}}, path)
    path.write_text(json.dumps({"settings": {"weight": 0.1}}))
    assert settled({"saturation": 5, "tune": {"grid": {"weight": [1]}}}, path) == {"saturation": 5, "weight": 0.1}


@pytest.mark.parametrize(
    ("plan", "error", "message"),
    [
        ({}, UnknownName, "tune lacks grid"),
        ({"grid": {}}, BadValue, "wanted a list of values"),
        ({"grid": {"weight": 0.1}}, BadValue, "wanted a list of values"),
        ({"grid": {"wieght": [0.1], "saturation": [1]}}, UnknownName, "Did you mean weight"),
        ({"grid": {"weight": [0.1]}}, UnknownName, "lacks saturation"),
        ({"grid": {"weight": ["much"], "saturation": [1]}}, BadValue, "weight is 'much'"),
        ({"pairs": 1, "grid": {"weight": [1], "saturation": [1]}}, BadValue, "pairs is 1"),
        ({"depth": 5, "grid": {"weight": [1], "saturation": [1]}}, BadValue, "depth is 5"),
        ({"pair": 9, "grid": {"weight": [1], "saturation": [1]}}, UnknownName, "Did you mean pairs"),
    ],
)
def test_what_cannot_be_tried_is_refused(plan: dict[str, Any], error: type[Exception], message: str, tmp_path: Path):
    with pytest.raises(error, match=message):
        tune("weighted", {"tune": plan}, {}, tmp_path / "none.parquet", tmp_path, 13, 8)


def test_pairs_that_are_missing_or_too_few_are_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"not a whole file of pairs .* dvc repro mine"):
        datasets(tmp_path / "none.parquet", 10, 13, tmp_path)
    one = {
        name: pa.array(["x"] if kind != pa.int32() else [1], kind)
        for name, kind in zip(PAIRS.names, PAIRS.types, strict=True)
    }
    pq.write_table(pa.table(one, schema=PAIRS), tmp_path / "valid.parquet")
    with pytest.raises(DataError, match="has 1 pairs with both a query and code; wanted 2"):
        datasets(tmp_path / "valid.parquet", 10, 13, tmp_path)


def test_pairs_without_a_side_are_not_asked_for(pairs: Path, tmp_path: Path):
    table = pq.read_table(pairs)
    whole = datasets(pairs, 10, 13, tmp_path / "whole")
    queries = pa.chunked_array([[*table["query"].to_pylist(), " ", None, "what is this"]], pa.large_string())
    codes = pa.chunked_array([[*table["code"].to_pylist(), "x = 1", "y = 2", None]], pa.large_string())
    ids = pa.chunked_array([[*table["pair_id"].to_pylist(), "blank", "no query", "no code"]], pa.large_string())
    more = pa.table({"pair_id": ids, "query": queries, "code": codes})
    pq.write_table(more, tmp_path / "more.parquet")
    asked = datasets(tmp_path / "more.parquet", 10, 13, tmp_path / "more")
    for way, dataset in whole.items():
        assert sorted(asked[way].corpus.ids.to_pylist()) == sorted(CODE)
        assert asked[way].queries.ids.to_pylist() == dataset.queries.ids.to_pylist()
    pq.write_table(more.slice(len(CODE)), tmp_path / "none.parquet")
    with pytest.raises(DataError, match="has 0 pairs with both"):
        datasets(tmp_path / "none.parquet", 10, 13, tmp_path / "none")
