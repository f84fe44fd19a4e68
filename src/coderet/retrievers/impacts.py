"""BM25's scores of every token in every document, in columns: what bm25s keeps as its index.

bm25s makes them out of a list of numbers a document, which for a million documents is gigabytes of Python objects. Here
documents come some at a time and stay as counts, a few bytes for each token of a document; the formula (Lucene's, in
float64, rounded to float32) and the arrays are bm25s's to the last bit.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Impacts(NamedTuple):
    """The scores of token t: data[indptr[t]:indptr[t + 1]], of the documents in indices at the same places, ascending.

    data is float32, indices int32, indptr int64. documents: how many there are.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    documents: int


class Counts:
    """How often which token stands in which document. vocabulary: tokens to numbers, in the order of appearance."""

    def __init__(self) -> None:
        self.vocabulary = _Numbers()
        self.tokens = 0
        self._lengths: list[np.ndarray] = []
        self._parts: list[_Part] = []
        self._documents = 0

    def __len__(self) -> int:
        """Documents so far."""
        return self._documents

    def add(self, documents: Sequence[list[str]]) -> None:
        """Count the next documents, each a list of tokens; at most 65,536 at a time."""
        lengths = np.fromiter(map(len, documents), np.int64, len(documents))
        size = int(lengths.sum())
        words = itertools.chain.from_iterable(documents)
        tokens = np.fromiter(map(self.vocabulary.__getitem__, words), np.int64, size)
        keys, counts = np.unique(tokens << 16 | np.repeat(np.arange(len(documents)), lengths), return_counts=True)
        distinct, starts = np.unique(keys >> 16, return_index=True)
        ends = np.append(starts[1:], len(keys))
        self._parts.append(
            _Part(
                self._documents,
                distinct.astype(np.int32),
                (ends - starts).astype(np.int32),
                (keys & 0xFFFF).astype(np.uint16),
                counts.astype(np.min_scalar_type(int(counts.max(initial=0)))),
            )
        )
        self._lengths.append(lengths)
        self._documents += len(documents)
        self.tokens += size

    def impacts(self, k1: float, b: float) -> Impacts:
        """The scores with these parameters; wants at least one document."""
        lengths = np.concatenate(self._lengths)
        norms = k1 * ((1 - b) + b * lengths / lengths.mean())
        holding = np.zeros(len(self.vocabulary), np.int64)  # documents that hold a token
        for part in self._parts:
            holding[part.tokens] += part.documents_of_token
        rarity = _idf(holding, len(lengths))
        indptr = np.append(0, np.cumsum(holding))
        data, indices = np.empty(indptr[-1], np.float32), np.empty(indptr[-1], np.int32)
        heads = indptr[:-1].copy()  # where a token's next document goes
        for part in self._parts:
            sizes = part.documents_of_token
            firsts = np.cumsum(sizes) - sizes
            places = np.arange(len(part.documents)) + np.repeat(heads[part.tokens] - firsts, sizes)
            documents = part.first_document + part.documents.astype(np.int32)
            indices[places] = documents
            often = part.counts.astype(np.float32)
            data[places] = np.repeat(rarity[part.tokens], sizes) * (often / (norms[documents] + often))
            heads[part.tokens] += sizes
        return Impacts(data, indices, indptr, len(lengths))


class _Part(NamedTuple):
    """The counts of some documents, by token and then by document."""

    first_document: int
    tokens: np.ndarray  # (t,) int32, ascending
    documents_of_token: np.ndarray  # (t,) int32
    documents: np.ndarray  # (n,) uint16, counted from first_document
    counts: np.ndarray  # (n,) unsigned integers


class _Numbers(dict[str, int]):
    """Tokens to numbers in the order they were first asked for."""

    def __missing__(self, token: str) -> int:
        self[token] = number = len(self)
        return number


def _idf(holding: np.ndarray, documents: int) -> np.ndarray:
    """(V,) float32 inverse document frequencies. math.log, because NumPy's may differ in the last bit."""
    numbers, which = np.unique(holding, return_inverse=True)
    values: Iterable[float] = (math.log(1 + (documents - n + 0.5) / (n + 0.5)) for n in numbers.tolist())
    return np.fromiter(values, np.float32, len(numbers))[which]
