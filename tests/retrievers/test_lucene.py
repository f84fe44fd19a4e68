"""What is Lucene's alone: its analyzers, and which settings are the search's."""

import pyarrow as pa
import pytest

from coderet.records import DataError
from coderet.retrievers.lucene import Lucene


def test_english_drops_stop_words_and_stems(corpus_of, answer):
    corpus = corpus_of({"x": "Sorting the lists", "y": "the other"})
    [hits] = answer(Lucene(analyzer="english"), corpus, ["the sorted list"])
    assert [document for document, _ in hits] == ["x"]


def test_standard_cuts_out_words_in_lower_case_and_neither_drops_nor_stems_any(corpus_of, answer):
    corpus = corpus_of({"x": "def readFile(the_path):", "y": "The lists", "z": "list"})
    found = answer(Lucene(analyzer="standard"), corpus, ["READFILE", "the", "list", "path", "the_path"])
    assert [[document for document, _ in hits] for hits in found] == [["x"], ["y"], ["z"], [], ["x"]]


def test_k1_and_b_are_the_searchs_not_the_indexes(corpus_of, tmp_path):
    corpus = corpus_of({"x": "a a a b", "y": "a"})
    Lucene(k1=1.2, b=0.75).index(corpus, tmp_path)
    query = pa.chunked_array([pa.array(["a"], pa.large_string())])
    scores = {k1: Lucene(k1=k1).open(corpus, tmp_path).search(query, 2)[1].tolist() for k1 in (0.5, 1.2)}
    assert scores[0.5] != scores[1.2]


def test_whose_scores_they_are_is_the_searchs_too(corpus_of, tmp_path):
    corpus = corpus_of({"x": "a", "y": "a"})
    Lucene().index(corpus, tmp_path)
    query = pa.chunked_array([pa.array(["a"], pa.large_string())])
    hits = {each: Lucene(scores=each).open(corpus, tmp_path).search(query, 2) for each in ("exact", "anserini")}
    assert hits["exact"][0].tolist() == [[0, 1]] and len(set(hits["exact"][1][0].tolist())) == 1
    assert hits["anserini"][0].tolist() == [[1, 0]] and len(set(hits["anserini"][1][0].tolist())) == 2


def test_scores_of_nobody_are_refused():
    with pytest.raises(DataError, match="scores is 'pyserini'; wanted one of exact, anserini"):
        Lucene(scores="pyserini")
