"""Held against Anserini itself: its IndexCollection, its SimpleSearcher."""

import gzip
import json
import random

import numpy as np
import pytest

from coderet.retrievers import java
from coderet.retrievers.anserini import lowered
from coderet.retrievers.lucene import Lucene


@pytest.fixture
def simple_searcher(tmp_path):
    """The (id, score) hits of SimpleSearcher over texts by id, cut at white space, for every query."""

    def hits(texts: dict[str, str], queries: list[str], k: int, k1: float = 1.2, b: float = 0.75):
        (tmp_path / "collection").mkdir()
        with (tmp_path / "collection" / "documents.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({"id": own, "contents": text}) + "\n" for own, text in texts.items())
        find = java.classes()
        options = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1"]
        places = ["-input", str(tmp_path / "collection"), "-index", str(tmp_path / "anserini")]
        find("io.anserini.index.IndexCollection").main([*options, *places, "-pretokenized", "-quiet"])
        searcher = find("io.anserini.search.SimpleSearcher")(str(tmp_path / "anserini"))
        searcher.set_analyzer(find("org.apache.lucene.analysis.core.WhitespaceAnalyzer")())
        searcher.set_bm25(k1, b)
        return [[(hit.docid, hit.score) for hit in searcher.search(query, k)] for query in queries]

    return hits


def by_score(hits):
    """As trec_eval reads a run: equal scores in descending id."""
    return [sorted(sorted(each, reverse=True), key=lambda hit: -hit[1]) for each in hits]


@pytest.mark.parametrize("k", [3, 40, 500])
def test_the_run_is_that_of_simple_searcher(k, simple_searcher, corpus_of, answer):
    chooser = random.Random(1)
    words = [f"w{i}" for i in range(30)]
    texts = {f"d{i}": " ".join(chooser.choices(words, k=chooser.choice([1, 2, 3, 60]))) for i in range(400)}
    texts |= {f"again{i}": "w1 w2" for i in range(150)}  # lowered by more than 0.0001 in all
    queries = [" ".join(chooser.choices(words, k=size)) for size in (1, 2, 5, 40, 400) for _ in range(4)]
    theirs = simple_searcher(texts, queries, k, 0.9, 0.4)
    ours = answer(Lucene(k1=0.9, b=0.4, scores="anserini"), corpus_of(texts), queries, k)
    assert ours == by_score(theirs)
    assert max(score for hits in ours for _, score in hits) > 32  # where float32 is too coarse for a millionth
    exact = answer(Lucene(k1=0.9, b=0.4), corpus_of(texts), queries, k)
    assert [[each for each, _ in hits] for hits in exact] != [[each for each, _ in hits] for hits in ours]


def test_on_mbpp_the_run_is_that_of_simple_searcher(simple_searcher, corpus_of, answer, real_data):
    with gzip.open(real_data / "mbpp" / "mbpp.jsonl.gz", "rt", encoding="utf-8") as file:
        problems = {f"{each['task_id']}_code": each for each in map(json.loads, file) if each["task_id"] > 10}
    texts = {own: f"# {each['text']}\n{each['code']}" for own, each in problems.items()}
    queries = [each["text"] for each in problems.values() if each["task_id"] <= 510]
    theirs = simple_searcher(texts, queries, 100)
    assert answer(Lucene(scores="anserini"), corpus_of(texts), queries, 100) == by_score(theirs)


def test_a_score_is_rounded_and_lowered_by_a_millionth_for_every_neighbour_before_it():
    scores = np.array([[2.00004, 2.0, 1.99996, 1.9998, -np.inf]], np.float32)
    [[first, second, third, fourth, nothing]] = lowered(scores).tolist()
    assert (first, second, third) == pytest.approx((2.0, 2.0 - 1e-6, 2.0 - 2e-6), abs=2e-7)
    assert first > second > third
    assert fourth == np.float32(1.9998) and nothing == -np.inf


def test_no_hits_and_no_queries_are_no_errors():
    assert lowered(np.full((2, 3), -np.inf, np.float32)).tolist() == [[-np.inf] * 3] * 2
    assert lowered(np.empty((0, 4), np.float32)).shape == (0, 4)
    assert lowered(np.empty((2, 0), np.float32)).shape == (2, 0)
