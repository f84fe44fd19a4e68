import hashlib

import numpy as np
import pytest

from coderet import paths
from coderet.records import NO_HIT, QRELS, Dataset, Qrels, Queries, queries_table
from coderet.retrievers import recall
from coderet.retrievers.bm25s import Bm25s
from coderet.retrievers.dense import Dense


class Drawn:
    """An encoder that draws a text's vector by its hash."""

    dim, fingerprint = 32, "drawn"

    def __init__(self):
        self.documents = 0

    def encode_queries(self, texts):
        seeds = [int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) for text in texts.to_pylist()]
        return np.array([np.random.default_rng(seed).standard_normal(self.dim) for seed in seeds], np.float32)

    def encode_documents(self, texts):
        self.documents += len(texts)
        return self.encode_queries(texts) if len(texts) else np.empty((0, self.dim), np.float32)


@pytest.fixture
def dataset_of(corpus_of, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "WORK", tmp_path / "work")

    def make(documents=400, queries=30):
        corpus = corpus_of({f"d{n:03}": f"document {n}" for n in range(documents)})
        table = queries_table([f"q{n}" for n in range(queries)], [f"query {n}" for n in range(queries)])
        return Dataset("pool", corpus, Queries(table), Qrels(QRELS.empty_table()))

    return make


def measured(retriever, dataset, folder, depth=50):
    retriever.index(dataset.corpus, folder)
    return recall.against_flat(dataset, retriever.open(dataset.corpus, folder), depth)


def test_a_share_is_of_the_hits_of_the_exact_search():
    wanted = np.array([[1, 2, 3], [4, NO_HIT, NO_HIT]])
    assert recall.share(np.array([[3, 9, 1], [4, NO_HIT, NO_HIT]]), wanted) == 3 / 4
    assert recall.share(np.array([[9, 8, 7], [NO_HIT, NO_HIT, NO_HIT]]), wanted) == 0


def test_exact_searchers_have_no_recall_to_tell(dataset_of, tmp_path):
    assert measured(Dense(Drawn()), dataset_of(), tmp_path / "flat") == {}
    assert measured(Bm25s(), dataset_of(), tmp_path / "bm25s") == {}


def test_recall_is_the_share_of_flats_hits_at_ten_and_at_the_depth(dataset_of, tmp_path):
    dataset = dataset_of()
    found = measured(Dense(Drawn(), kind="binary", candidates=1), dataset, tmp_path / "binary")
    rows = {}
    for kind in ("flat", "binary"):
        each = Dense(Drawn(), kind=kind, **({"candidates": 1} if kind == "binary" else {}))
        each.index(dataset.corpus, tmp_path / f"again-{kind}")
        rows[kind], _ = each.open(dataset.corpus, tmp_path / f"again-{kind}").search(dataset.queries.texts, 50)
    shares = {
        k: np.mean([len({*a[:k]} & {*b[:k]}) / k for a, b in zip(rows["flat"], rows["binary"], strict=True)])
        for k in (10, 50)
    }
    assert found == {f"recall_against_flat@{k}": pytest.approx(share) for k, share in shares.items()}
    assert 0.2 < found["recall_against_flat@50"] < 1


def test_looking_at_everything_has_a_recall_of_one(dataset_of, tmp_path):
    found = measured(Dense(Drawn(), kind="binary", candidates=400), dataset_of(), tmp_path)
    assert found == {"recall_against_flat@10": 1.0, "recall_against_flat@50": 1.0}


def test_a_depth_of_less_than_ten_is_told_alone_and_fewer_documents_count_as_they_are(dataset_of, tmp_path):
    assert measured(Dense(Drawn(), kind="sq8"), dataset_of(4), tmp_path, depth=5) == {"recall_against_flat@5": 1.0}


def test_where_vectors_are_not_kept_documents_are_encoded_again_and_nothing_is_left_behind(dataset_of, tmp_path):
    encoder, dataset = Drawn(), dataset_of(700)
    found = measured(Dense(encoder, kind="pq", pieces=8, bits=4, exact_vectors=False), dataset, tmp_path / "pq")
    assert encoder.documents == 2 * 700
    assert 0.2 < found["recall_against_flat@10"] < found["recall_against_flat@50"] < 1
    assert list(paths.WORK.iterdir()) == []


def test_no_queries_and_no_documents_have_no_recall(dataset_of, tmp_path):
    assert measured(Dense(Drawn(), kind="sq8"), dataset_of(queries=0), tmp_path / "a") == {}
    assert measured(Dense(Drawn(), kind="sq8"), dataset_of(documents=0), tmp_path / "b") == {}


def test_no_more_than_two_hundred_queries_are_asked_evenly_over_the_dataset(dataset_of):
    dataset, asked = dataset_of(20, queries=1000), []

    class Watched:
        approximate = True

        def search(self, queries, k):
            asked.append(queries.to_pylist())
            return np.zeros((len(queries), k), np.int64), np.zeros((len(queries), k), np.float32)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def exactly(self):
            return self

    assert recall.against_flat(dataset, Watched(), 1) == {"recall_against_flat@1": 1.0}
    assert len(asked[0]) == len(set(asked[0])) == 200 and asked[0] == asked[1]
    assert (asked[0][0], asked[0][-1]) == ("query 0", "query 999")
