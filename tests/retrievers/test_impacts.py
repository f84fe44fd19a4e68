"""Held against bm25s itself, which makes the same arrays out of lists."""

import random

import bm25s
import numpy as np
import pytest

from coderet.retrievers.impacts import Counts


def documents(count: int) -> list[list[str]]:
    """Some of a few tokens and some of many, one token more than 255 times in one of them."""
    chooser = random.Random(3)
    words = [f"w{i}" for i in range(200)]
    weights = [1 / (1 + i) for i in range(200)]
    made = [chooser.choices(words, weights, k=chooser.choice([1, 2, 30, 300])) for _ in range(count)]
    return [*made, ["w0"] * 300, ["once"]]


@pytest.mark.parametrize("at_a_time", [1, 7, 1000])
@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.9, 0.4), (0, 1), (2, 0)])
def test_the_arrays_are_those_of_bm25s_to_the_last_bit(at_a_time, k1, b):
    texts = documents(120)
    counts = Counts()
    for start in range(0, len(texts), at_a_time):
        counts.add(texts[start : start + at_a_time])
    data, indices, indptr, number = counts.impacts(k1, b)

    reference = bm25s.BM25(method="lucene", k1=k1, b=b)
    numbered = [[counts.vocabulary[word] for word in words] for words in texts]
    reference.index((numbered, dict(counts.vocabulary)), create_empty_token=False, show_progress=False)
    for ours, name in ((data, "data"), (indices, "indices"), (indptr, "indptr")):
        theirs = reference.scores[name]
        assert ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()
    assert number == reference.scores["num_docs"] == len(counts) == len(texts)
    assert counts.tokens == sum(map(len, texts))


def test_tokens_are_numbered_in_the_order_of_appearance():
    counts = Counts()
    counts.add([["b", "a", "b"]])
    counts.add([])
    counts.add([["c", "a"]])
    assert counts.vocabulary == {"b": 0, "a": 1, "c": 2}
    assert counts.impacts(1.2, 0.75).indices.tolist() == [0, 0, 1, 1]


def test_a_large_corpus_takes_a_few_bytes_a_token_of_a_document():
    chooser = np.random.default_rng(0)
    words = [f"w{i}" for i in range(5000)]
    counts = Counts()
    for _ in range(4):
        counts.add([[words[i] for i in row] for row in chooser.integers(0, 5000, (2000, 50))])
    held = sum(column.nbytes for part in counts._parts for column in part[1:])
    assert held < 4 * counts.tokens
