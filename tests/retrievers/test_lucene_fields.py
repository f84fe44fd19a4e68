"""Two fields, two BM25s: held against BM25 worked out in NumPy, and against two indexes of one field each."""

import random

import numpy as np
import pyarrow as pa
import pytest

from coderet import retrievers
from coderet.records import DataError
from coderet.registry import UnknownName
from coderet.retrievers.lucene import Lucene
from coderet.retrievers.lucene_fields import LuceneFields

K1, B = 0.9, 0.4


def bm25(texts: list[str], query: str) -> np.ndarray:
    """(N,) scores of lower-cased words; documents without any count neither in the number nor in the mean length."""
    bags = [text.lower().split() for text in texts]
    lengths = np.array([len(bag) for bag in bags])
    count, mean = (lengths > 0).sum(), lengths[lengths > 0].mean()
    scores = np.zeros(len(texts))
    for word in query.lower().split():
        frequency = np.array([bag.count(word) for bag in bags])
        holding = (frequency > 0).sum()
        rarity = np.log(1 + (count - holding + 0.5) / (holding + 0.5))
        scores += rarity * frequency / (frequency + K1 * (1 - B + B * lengths / mean))
    return scores


@pytest.fixture(scope="module")
def functions():
    """Titles and texts of up to forty words, where Lucene keeps lengths exactly; some titles are empty."""
    chooser = random.Random(5)
    words = "read write file list sort tree node path open close parse token".split()
    texts = {f"d{i:03}": " ".join(chooser.choices(words, k=chooser.randrange(1, 40))) for i in range(120)}
    titles = {own: " ".join(chooser.choices(words, k=chooser.randrange(0, 4))) for own in texts}
    queries = [" ".join(chooser.choices(words, k=size)) for size in (1, 2, 3, 8)] + ["unknown", ""]
    return texts, titles, queries


@pytest.mark.parametrize(
    ("settings", "combined"),
    [
        ({}, np.maximum),
        ({"combine": "sum"}, np.add),
        ({"tie_breaker": 0.3}, lambda title, text: np.maximum(title, text) + 0.3 * np.minimum(title, text)),
        ({"title_boost": 2.5, "text_boost": 0.5}, lambda title, text: np.maximum(2.5 * title, 0.5 * text)),
        ({"combine": "sum", "title_boost": 0.1}, lambda title, text: 0.1 * title + text),
    ],
)
def test_a_document_scores_by_the_bm25_of_each_field(settings, combined, functions, corpus_of, answer):
    texts, titles, queries = functions
    retriever = LuceneFields(title_analyzer="code-words", text_analyzer="standard", k1=K1, b=B, **settings)
    found = answer(retriever, corpus_of(texts, titles), queries, k=200)
    for query, hits in zip(queries, found, strict=True):
        wanted = combined(bm25([titles[own] for own in texts], query), bm25(list(texts.values()), query))
        by_id = {own: score for own, score in zip(texts, wanted, strict=True) if score > 0}
        assert dict(hits) == pytest.approx(by_id, rel=1e-5)
    assert sum(map(len, found)) > 200


@pytest.mark.parametrize("analyzers", [("english", "whitespace"), ("whitespace", "code-words")])
def test_a_field_scores_as_an_index_of_that_field_alone(analyzers, corpus_of, answer):
    chooser = random.Random(6)
    words = ["readFile", "Lists", "sorting", "the", "node.path(x)", "open_close"]
    texts = {f"d{i:02}": " ".join(chooser.choices(words, k=90)) for i in range(50)}  # lengths that Lucene rounds
    titles = {own: chooser.choice(words) for own in texts}
    corpus, queries = corpus_of(texts, titles), ["the sorted list", "readFile node.path(x)", "read open close"]
    alone = [
        answer(Lucene(analyzer=analyzer, text_fields=(field,), k1=K1, b=B), corpus, queries, k=50)
        for field, analyzer in zip(("title", "text"), analyzers, strict=True)
    ]
    both = LuceneFields(title_analyzer=analyzers[0], text_analyzer=analyzers[1], k1=K1, b=B)
    for title, text, hits in zip(*alone, answer(both, corpus, queries, k=50), strict=True):
        best = {own: max(dict(title).get(own, 0), dict(text).get(own, 0)) for own in dict(title) | dict(text)}
        assert dict(hits) == pytest.approx(best, rel=1e-6)


def test_a_name_is_found_by_its_parts_and_a_text_by_its_words(corpus_of, answer):
    texts = {"x": "def readHttpHeader(raw): pass", "y": "def other(): http"}
    corpus = corpus_of(texts, {"x": "Parser.readHttpHeader", "y": "other"})
    found = answer(LuceneFields(), corpus, ["read header", "HTTP"])
    assert [[document for document, _ in hits] for hits in found] == [["x"], ["y", "x"]]


def test_only_the_analyzers_shape_the_index(corpus_of, tmp_path):
    corpus = corpus_of({"x": "a b", "y": "b", "z": "c"}, {"x": "b", "y": "", "z": "d e f"})
    facts = LuceneFields().index(corpus, tmp_path)
    assert facts == {"tokens": 8, "documents_with_title_tokens": 2, "documents_with_text_tokens": 3}
    query = pa.chunked_array([pa.array(["b"], pa.large_string())])
    scores = [
        LuceneFields(**each).open(corpus, tmp_path).search(query, 1)[1].item()
        for each in ({}, {"combine": "sum"}, {"tie_breaker": 0.5}, {"title_boost": 3.0}, {"k1": 0.1}, {"b": 0.0})
    ]
    assert len(set(scores)) == len(scores)
    with pytest.raises(DataError, match="was made with text_analyzer 'standard', wanted 'whitespace'"):
        LuceneFields(text_analyzer="whitespace").open(corpus, tmp_path)


def test_it_loads_from_its_folder_with_the_settings_of_both_stages(tmp_path):
    retrievers.save(retrievers.create("lucene-fields"), "lucene-fields", tmp_path / "fields")
    spec = {"kind": "lucene-fields", "index": {"text_analyzer": "english"}, "combine": "sum", "title_boost": 2}
    loaded = retrievers.load(tmp_path / "fields", spec)
    assert loaded == LuceneFields(text_analyzer="english", combine="sum", title_boost=2)
    with pytest.raises(UnknownName, match="text_analyzer changes the index: it belongs to "):
        retrievers.load(tmp_path / "fields", {"kind": "lucene-fields", "index": {}, "text_analyzer": "english"})


def test_settings_out_of_range_are_refused():
    for wrong, said in (
        ({"tie_breaker": 1.5}, "tie_breaker is 1.5; wanted a number from 0 to 1"),
        ({"title_boost": -1}, "title_boost is -1; wanted a number from 0 on"),
        ({"text_boost": float("inf")}, "text_boost is inf; wanted a number from 0 on"),
        ({"combine": "max"}, "combine is 'max'; wanted one of best, sum"),
        ({"title_analyzer": "code_words"}, r"title_analyzer is 'code_words'; known: .* Did you mean code-words\?"),
        ({"text_analyzer": "standart"}, r"text_analyzer is 'standart'; known: .* Did you mean standard\?"),
    ):
        with pytest.raises(DataError, match=said):
            LuceneFields(**wrong)
