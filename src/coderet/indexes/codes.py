"""Codes that are smaller than vectors, each compared with every query: SQ8 and PQ.

SQ8 rounds each number to one of 256 steps between the lowest and the highest of its dimension: a quarter of the bytes.
PQ cuts a vector into pieces and keeps the nearest of 2**bits learned values of each (Jégou et al., 2011): with 64
pieces of 8 bits, 64 bytes a document. Fewer than 624 documents, 39 for each value of 4 bits, teach too little: they get
SQ8 codes.
"""

from pathlib import Path
from typing import Any

import faiss
import numpy as np

from coderet import registry
from coderet.indexes import learning
from coderet.indexes.approximate import Approximate, Chunks
from coderet.indexes.faiss import Flat
from coderet.records import DataError

FEWEST_BITS, MOST_BITS = 4, 8
IP = faiss.METRIC_INNER_PRODUCT
SQ8 = faiss.ScalarQuantizer.QT_8bit
_MULTIPLIED = 16  # numbers a piece from which FAISS multiplies all queries at once, which moves their last digits


class _Codes(Approximate):
    """Every code is compared."""

    @classmethod
    def load(cls, folder: Path, *, candidates: int | None = None) -> Any:
        """The index in folder, memory-mapped. candidates: how many for each hit asked for are scored exactly."""
        return cls(folder, candidates)

    def _find(self, queries: np.ndarray, width: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
        rough, found = self._index.search(queries, width)
        return rough, found


class Sq8(_Codes):
    """kind `sq8`: a byte a number."""

    @classmethod
    def build(
        cls,
        vectors: Chunks,
        count: int,
        dim: int,
        folder: Path,
        *,
        similarity: str = "cosine",
        exact_vectors: bool = True,
    ) -> "Sq8":
        """Write the index of vectors to folder, as `Flat.build`. exact_vectors: whether float32 vectors are kept."""

        cls._built(vectors, count, dim, folder, similarity, exact_vectors, _sq8)
        return cls(folder, None)


class Pq(_Codes):
    """kind `pq`: a few bits for each of some pieces."""

    CANDIDATES = 8

    @classmethod
    def build(
        cls,
        vectors: Chunks,
        count: int,
        dim: int,
        folder: Path,
        *,
        similarity: str = "cosine",
        pieces: int = 64,
        bits: int = 8,
        training: int = 50_000,
        exact_vectors: bool = True,
    ) -> "Pq":
        """As `Sq8.build`. pieces divides dim; training: vectors, at most, that the values are learned from."""
        check_pieces(pieces, bits, training, dim)

        def made(flat: Flat) -> tuple[Any, dict[str, Any]]:
            sample = learning.sample(flat, training)
            each = learning.bits(bits, len(sample))
            if each < FEWEST_BITS:
                return _sq8(flat)
            index: Any = faiss.IndexPQ(dim, pieces, each, IP)
            index.train(sample)
            return index, {"codes": "pq", "bits": each, "learned_from": len(sample)}

        cls._built(vectors, count, dim, folder, similarity, exact_vectors, made)
        return cls(folder, None)

    def _find(self, queries: np.ndarray, width: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
        coder = getattr(self._index, "pq", None)
        if coder is None or coder.dsub < _MULTIPLIED:
            return super()._find(queries, width, depth)
        each = [super(Pq, self)._find(query[None], width, depth) for query in queries]
        return np.concatenate([rough for rough, _ in each]), np.concatenate([found for _, found in each])


def _sq8(flat: Flat) -> tuple[Any, dict[str, Any]]:
    index = faiss.IndexScalarQuantizer(flat.dim, SQ8, IP)
    index.train(learning.extremes(flat))
    return index, {"codes": "sq8"}


def check_pieces(pieces: int, bits: int, training: int, dim: int) -> None:
    """BadValue or DataError unless vectors of so many dimensions can be cut so."""
    registry.check_range("index.pieces", pieces, 1)
    registry.check_range("index.bits", bits, FEWEST_BITS, MOST_BITS)
    registry.check_range("index.training", training, 1)
    if dim % pieces:
        fitting = [number for number in range(1, dim + 1) if dim % number == 0]
        raise DataError(
            f"index.pieces is {pieces}, but the vectors have {dim} dimensions; wanted a divisor of that: "
            f"{', '.join(map(str, fitting))}"
        )
