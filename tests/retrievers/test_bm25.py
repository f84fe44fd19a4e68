"""What holds for BM25 whoever computes it: `lucene` and `bm25s` side by side."""

import gzip
import json
import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from coderet.records import Corpus, DataError, documents_batch
from coderet.retrievers import bm25s as bm25s_module
from coderet.retrievers.bm25s import Bm25s
from coderet.retrievers.lucene import Lucene

both = pytest.mark.parametrize("kind", [Lucene, Bm25s])


def words(count: int, seed: int) -> str:
    """So many words of a small, uneven vocabulary."""
    chooser = random.Random(seed)
    places = [min(int(chooser.expovariate(0.08)), 60) for _ in range(count)]
    return " ".join("w" + "abcdefgh"[place // 8] + "abcdefgh"[place % 8] for place in places)


@both
def test_the_score_is_lucenes_formula(kind, corpus_of, answer):
    # Two documents of mean length 2; "a" is in one of them, twice among three tokens.
    corpus = corpus_of({"x": "a a b", "y": "c"})
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 / (2 + 1.2 * (1 - 0.75 + 0.75 * 3 / 2))
    [[(document, score)]] = answer(kind(), corpus, ["a"])
    assert document == "x" and score == pytest.approx(expected, rel=1e-6)


@both
def test_k1_and_b_move_the_score(kind, corpus_of, answer):
    corpus = corpus_of({"x": "a a b", "y": "c"})
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    [[(_, score)]] = answer(kind(k1=0.9, b=0.0), corpus, ["a"])
    assert score == pytest.approx(idf * 2 / (2 + 0.9), rel=1e-6)


@both
def test_a_token_that_stands_twice_in_the_query_counts_twice(kind, corpus_of, answer):
    corpus = corpus_of({"x": "a b", "y": "c"})
    once, twice = answer(kind(), corpus, ["a", "a a"])
    assert twice[0][1] == pytest.approx(2 * once[0][1], rel=1e-6)


# D1


@both
def test_equal_documents_have_equal_scores_and_the_highest_id_comes_first_at_the_cutoff_too(kind, corpus_of, answer):
    corpus = corpus_of({f"d{i:03}": "tie" if i % 2 else "tie tie other words" for i in range(300)})
    [hits] = answer(kind(), corpus, ["tie"], k=100)
    odd = [f"d{i:03}" for i in range(299, 0, -2)][:100]
    assert [document for document, _ in hits] == odd
    assert len({score for _, score in hits}) == 1


# D7


@both
def test_only_the_matching_document_is_a_hit(kind, corpus_of, answer):
    corpus = corpus_of({"x": "quick sort", "y": "binary search", "z": "hash map"})
    assert [[document for document, _ in hits] for hits in answer(kind(), corpus, ["sort"], k=5)] == [["x"]]


@both
@pytest.mark.parametrize("query", ["", "   ", "unknown"])
def test_a_query_without_known_tokens_has_no_hits_beside_one_that_has(kind, query, corpus_of, answer):
    corpus = corpus_of({"x": "a", "y": "b"})
    first, second = answer(kind(), corpus, [query, "a"])
    assert first == [] and [document for document, _ in second] == ["x"]


@both
def test_an_empty_corpus_one_of_empty_texts_and_no_queries_are_no_errors(kind, corpus_of, answer):
    assert answer(kind(), corpus_of({}), ["a"]) == [[]]
    assert answer(kind(), corpus_of({"x": "", "y": " "}), ["a", ""]) == [[], []]
    assert answer(kind(), corpus_of({"x": "a"}), []) == []


# D4


@both
def test_the_title_is_found_only_where_it_is_read(kind, corpus_of, answer):
    corpus = corpus_of({"x": "def f(a, x): ...", "y": "def g(): ..."}, {"x": "binary search"})
    query = "binary search in python"
    assert answer(kind(), corpus, [query]) == [[]]
    [[(document, _)]] = answer(kind(text_fields=("title", "text")), corpus, [query])
    assert document == "x"


@both
def test_code_words_find_what_white_space_hides(kind, corpus_of, answer):
    corpus = corpus_of({"x": "def parseHttpHeader(raw):", "y": "def other():"})
    assert answer(kind(), corpus, ["parse an http header"]) == [[]]
    [[(document, _)]] = answer(kind(analyzer="code-words"), corpus, ["parse an http header"])
    assert document == "x"


# Parity


def assert_same_hits(lucene, bm25s, tolerance):
    for left, right in zip(lucene, bm25s, strict=True):
        assert dict(left).keys() == dict(right).keys()
        for document, score in left:
            assert dict(right)[document] == pytest.approx(score, rel=tolerance)


@pytest.mark.parametrize("analyzer", ["whitespace", "code-words"])
def test_lucene_and_bm25s_agree_exactly_up_to_forty_tokens(analyzer, corpus_of, answer):
    texts = {f"d{i:03}": words(i % 41, seed=i) for i in range(300)}  # some are empty
    queries = [words(1 + i % 9, seed=1000 + i) for i in range(40)]
    settings = {"analyzer": analyzer, "k1": 0.9, "b": 0.4}
    lucene = answer(Lucene(**settings), corpus_of(texts), queries, k=300)
    bm25s = answer(Bm25s(**settings), corpus_of(texts), queries, k=300)
    assert sum(map(len, lucene)) > 1000
    assert_same_hits(lucene, bm25s, 1e-5)


def test_lucene_and_bm25s_agree_within_the_byte_of_a_length_on_long_documents(corpus_of, answer):
    texts = {f"d{i:03}": words(20 + 9 * i, seed=i) for i in range(120)}
    queries = [words(6, seed=2000 + i) for i in range(20)]
    lucene = answer(Lucene(), corpus_of(texts), queries, k=120)
    bm25s = answer(Bm25s(), corpus_of(texts), queries, k=120)
    assert_same_hits(lucene, bm25s, 0.07)  # a length is at most an eighth too short, and b is 0.75
    with pytest.raises(AssertionError):
        assert_same_hits(lucene, bm25s, 1e-5)


def test_lucene_and_bm25s_cut_odd_text_alike(corpus_of, answer):
    odd = ["x" * 300, "a\xa0b c", "nul\x00nul d", "\U0001f600 e", "f\x1cg", "\u2028h", "x" * 45]
    texts = {f"d{i}": text for i, text in enumerate(odd)}
    lucene, bm25s = (answer(kind(), corpus_of(texts), odd, k=9) for kind in (Lucene, Bm25s))
    assert [len(hits) for hits in lucene] == [2, 1, 1, 1, 1, 1, 2]
    assert_same_hits(lucene, bm25s, 1e-5)


# A known figure


def ndcg_at_10(texts: dict[str, str], queries: dict[str, str], retriever, answer) -> float:
    """In percent, each query's relevant document being the one of its id."""
    ids = sorted(texts, key=str.encode, reverse=True)
    batch = documents_batch(ids, [""] * len(ids), [texts[each] for each in ids])
    found = answer(retriever, Corpus("c", pa.Table.from_batches([batch])), list(queries.values()), k=10)
    ranks = [
        next((rank for rank, (document, _) in enumerate(hits, 1) if document == own), math.inf)
        for own, hits in zip(queries, found, strict=True)
    ]
    return 100 * float(np.mean([1 / math.log2(1 + rank) for rank in ranks]))


def lines(path: Path) -> list[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize(
    ("kind", "analyzer", "percent"),
    [(Lucene, "whitespace", 100.0), (Bm25s, "whitespace", 100.0), (Lucene, "english", 99.77)],
)
def test_humaneval_gives_the_papers_figure(kind, analyzer, percent, answer, real_data):
    problems = {f"{each['task_id']}_code": each for each in lines(real_data / "humaneval" / "HumanEval.jsonl.gz")}
    assert len(problems) == 164
    texts = {own: each["prompt"] + "\n" + each["canonical_solution"] for own, each in problems.items()}
    queries = {own: each["prompt"] for own, each in problems.items()}
    assert ndcg_at_10(texts, queries, kind(analyzer=analyzer), answer) == pytest.approx(percent, abs=0.005)


@pytest.mark.parametrize(
    ("kind", "analyzer", "percent"),
    [
        (Lucene, "whitespace", 98.56),
        (Lucene, "code-words", 98.40),
        (Lucene, "english", 97.66),
        (Bm25s, "whitespace", 98.56),
    ],
)
def test_mbpp_over_964_documents_gives_the_papers_98_6(kind, analyzer, percent, answer, real_data):
    problems = {f"{each['task_id']}_code": each for each in lines(real_data / "mbpp" / "mbpp.jsonl.gz")}
    texts = {own: f"# {each['text']}\n{each['code']}" for own, each in problems.items() if each["task_id"] > 10}
    queries = {own: each["text"] for own, each in problems.items() if 11 <= each["task_id"] <= 510}
    assert (len(texts), len(queries)) == (964, 500)
    assert ndcg_at_10(texts, queries, kind(analyzer=analyzer), answer) == pytest.approx(percent, abs=0.005)


def test_the_ties_of_anserini_turn_98_56_into_98_64(answer, real_data):
    """Its order is ascending id, and it lasts because SimpleSearcher lowers the second of two equal scores."""
    problems = {f"{each['task_id']}_code": each for each in lines(real_data / "mbpp" / "mbpp.jsonl.gz")}
    texts = {own: f"# {each['text']}\n{each['code']}" for own, each in problems.items() if each["task_id"] > 10}
    queries = {own: each["text"] for own, each in problems.items() if 11 <= each["task_id"] <= 510}
    assert ndcg_at_10(texts, queries, Lucene(scores="anserini"), answer) == pytest.approx(98.6357, abs=0.0001)


# Settings and large loads


@both
def test_a_query_of_five_thousand_distinct_tokens_scores_by_the_formula(kind, corpus_of, answer):
    """Lucene alone would refuse more than 1,024 clauses."""
    bags = {f"d{i:02}": [f"w{i * i * j % 7919}" for j in range(1, 41)] for i in range(60)}
    corpus = corpus_of({own: " ".join(bag) for own, bag in bags.items()})
    query = [f"w{i}" for i in range(5000)]
    [hits] = answer(kind(), corpus, [" ".join([*query, "w0", "w4"])], k=60)
    holding = Counter(word for bag in bags.values() for word in set(bag))
    scores = {
        own: sum(
            (2 if word in ("w0", "w4") else 1)
            * math.log(1 + (60 - holding[word] + 0.5) / (holding[word] + 0.5))
            * count
            / (count + 1.2)  # all are of one length
            for word, count in Counter(bag).items()
            if word in query
        )
        for own, bag in bags.items()
    }
    assert dict(hits) == pytest.approx({own: score for own, score in scores.items() if score}, rel=1e-5)
    assert len(hits) > 50


@both
def test_line_ends_are_white_space_whichever_they_are(kind, corpus_of, answer):
    corpus = corpus_of(
        {"unix": "def f():\n\treturn x\n", "dos": "def f():\r\n\treturn x\r\n", "mac": "f():\rreturn\rx"}
    )
    for analyzer in ("whitespace", "code-words"):
        found = answer(kind(analyzer=analyzer), corpus, ["x", "return\r\nx", "return\r\n"])
        assert [sorted(document for document, _ in hits) for hits in found] == [["dos", "mac", "unix"]] * 3


@both
def test_settings_out_of_range_are_refused(kind):
    for wrong in ({"k1": -1}, {"b": 1.5}, {"k1": "high"}, {"k1": float("nan")}, {"b": True}, {"k1": float("inf")}):
        with pytest.raises(DataError, match=f"{next(iter(wrong))} is .*wanted a number from 0"):
            kind(**wrong)


def test_bm25s_refuses_what_only_lucene_cuts_and_names_it():
    for analyzer in ("english", "standard"):
        with pytest.raises(
            DataError, match=f"analyzer is '{analyzer}', which kind bm25s does not have; use kind lucene"
        ):
            Bm25s(analyzer=analyzer)


def test_the_compiled_search_finds_the_same_to_the_last_bit(corpus_of, answer, monkeypatch):
    texts = {f"d{i:03}": words(i % 30, seed=i % 40) for i in range(200)}  # every text five times: ties everywhere
    queries = [words(1 + i % 5, seed=3000 + i) for i in range(60)] + ["", "unknown"]
    corpus = corpus_of(texts)
    for k in (3, 50, 500):
        plain = answer(Bm25s(), corpus, queries, k=k)
        monkeypatch.setattr(bm25s_module, "_COMPILED_FROM", 1)
        assert answer(Bm25s(), corpus, queries, k=k) == plain
        monkeypatch.undo()
