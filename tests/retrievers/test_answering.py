"""Case D5 through a real search: as deep as the hits asked for and what is to be taken out of them."""

import numpy as np
import pyarrow as pa
import pytest

from coderet.records import Corpus, Dataset, Qrels, Queries, documents_batch, qrels_table, queries_table
from coderet.retrievers.answering import answer, lone_queries

SCORES = {"f1": {"f1": 1.0, "f2": 0.9, "f3": 0.8}, "f3": {"f3": 1.0, "f1": 0.7, "f2": 0.1}}
CODE = {"f1": "def one(): pass", "f2": "def uno(): pass", "f3": "def three(): pass"}


class Looked:
    """A searcher that looks scores up by the text of the query; notes how deep it was asked."""

    def __init__(self, corpus: Corpus) -> None:
        self.ids, self.depths, self.batches = corpus.ids.to_pylist(), [], []

    def search(self, queries: pa.ChunkedArray, k: int) -> tuple[np.ndarray, np.ndarray]:
        self.depths.append(k)
        self.batches.append(len(queries))
        by_text = {CODE[name]: [scores[each] for each in self.ids] for name, scores in SCORES.items()}
        scores = np.array([by_text[text] for text in queries.to_pylist()], np.float32)
        rows = np.argsort(-scores, axis=1)[:, :k]
        return rows, np.take_along_axis(scores, rows, 1)


def code_to_code(exclude_self: bool) -> Dataset:
    ids = ["f3", "f2", "f1"]
    corpus = Corpus("c", pa.Table.from_batches([documents_batch(ids, [""] * 3, [CODE[each] for each in ids])]))
    excluded = [["f1"], ["f3"]] if exclude_self else None
    queries = Queries(queries_table(["f1", "f3"], [CODE["f1"], CODE["f3"]], excluded))
    return Dataset("d", corpus, queries, Qrels(qrels_table(["f1", "f3"], ["f2", "f1"])))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("exclude_self", "found", "depth"), [(True, ["f2", "f1"], 2), (False, ["f1", "f3"], 1)])
def test_d5_with_self_excluded_the_search_goes_one_deeper_and_both_queries_hit(exclude_self, found, depth, batch):
    dataset = code_to_code(exclude_self)
    searcher = Looked(dataset.corpus)
    run, seconds = answer(searcher, dataset, 1, batch)
    assert [searcher.ids[row] for (row,) in run.rows.tolist()] == found
    assert searcher.depths == [depth] * (2 // batch) and len(seconds) == 2 // batch


def test_no_search_goes_deeper_than_the_corpus():
    dataset = code_to_code(True)
    searcher = Looked(dataset.corpus)
    run, _ = answer(searcher, dataset, 9, 2)
    assert searcher.depths == [3]
    assert [[searcher.ids[row] for row in line if row >= 0] for line in run.rows.tolist()] == [
        ["f2", "f3"],
        ["f1", "f2"],
    ]


def test_lone_queries_are_asked_one_at_a_time_and_the_first_ones_are_not_timed():
    dataset = code_to_code(False)
    searcher = Looked(dataset.corpus)
    assert len(lone_queries(searcher, dataset, 1, 5, 1)) == 1
    assert searcher.batches == [1, 1]


def test_queries_alone_are_searched_as_deep_as_those_in_batches_and_no_deeper_than_the_corpus():
    dataset = code_to_code(True)
    searcher = Looked(dataset.corpus)
    lone_queries(searcher, dataset, 2**31 - 1, 1, 0)
    assert searcher.depths == [3]
