"""A flat index: every document vector is compared with every query vector by FAISS.

FAISS alone does not keep the one order. Comparing many queries at once by a matrix product is several times faster,
but adds up in an order that depends on where a vector lies and on how many queries are asked together, so that equal
vectors differ by some 1e-6; ties come in any order, and from k = 100 on any of those that are equal at the cutoff are
kept. So FAISS chooses candidates, a few more than asked for; each gets its score again by a dot product of its own,
which depends on nothing but the two vectors; and where the bound on the rounding error does not rule out that another
document belongs among the first k, all documents of that query are scored so. Equal vectors have equal scores, and a
run does not change with the batch size or the number of threads.

On a graphics processor FAISS chooses the candidates there; the scores are made here all the same, so the run is too.

Kinds that compare only some of the vectors, or codes of them, are told by `coderet.indexes.approximate`.
"""

import errno
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa

from coderet.indexes import gpu, ties
from coderet.records import NO_HIT, DataError

SIMILARITIES = ("cosine", "inner-product")
_VECTORS = "vectors.npy"
_FACTS = "flat.json"
SPARE = 32  # candidates beyond k: enough that a query whose scores are not tied needs no second look
_NAMED = 5  # document ids in a message
faiss.cvar.distance_compute_blas_threshold = 8  # queries from which one matrix product is faster than each alone


class Flat:
    """Vectors on disk, memory-mapped, and what they are compared by.

    vectors: (N, dim) float32, unit rows (or zero rows) if similarity is cosine.
    largest_norm: of its rows, which bounds the rounding error. zero_vectors: how many rows have no direction.
    """

    approximate = False

    def __init__(
        self, vectors: np.ndarray, similarity: str, largest_norm: float, zero_vectors: int, device: gpu.Device = "cpu"
    ) -> None:
        self.vectors, self.similarity = vectors, similarity
        self.largest_norm, self.zero_vectors = largest_norm, zero_vectors
        self._on_gpu = gpu.flat(vectors) if device == "gpu" else None

    @classmethod
    def build(
        cls,
        vectors: Iterable[tuple[pa.ChunkedArray, np.ndarray]],
        count: int,
        dim: int,
        folder: Path,
        *,
        similarity: str = "cosine",
    ) -> "Flat":
        """Write vectors to folder chunk by chunk: (ids, (n, dim) numbers) in the order of the corpus, count in all.

        Under cosine the rows are scaled to length one; a zero row stays zero and scores 0 against every query.
        DataError if a vector holds NaN or infinity (it names the documents) or if count or dim is not met.
        """
        check_similarity(similarity)
        _reserve(folder / _VECTORS, count * dim * 4)
        kept = np.lib.format.open_memmap(folder / _VECTORS, mode="w+", dtype=np.float32, shape=(count, dim))
        done, zeros, largest = 0, 0, 0.0
        for ids, chunk in vectors:
            end = done + len(chunk)
            if end > count or chunk.shape[1:] != (dim,):
                raise DataError(f"vectors {chunk.shape} after {done} others, wanted {count} in all of {dim} dimensions")
            norms = _norms(chunk)
            broken = np.flatnonzero(~np.isfinite(norms))
            if len(broken):
                names = ", ".join(ids.take(pa.array(broken[:_NAMED])).to_pylist())
                more = f" and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
                raise DataError(
                    f"the vectors of these documents hold NaN or infinity: {names}{more}; nothing is indexed, "
                    "look at the encoder (half precision that overflows, a broken checkpoint)"
                )
            kept[done:end] = _unit(chunk, norms) if similarity == "cosine" else chunk
            zeros += int((norms == 0).sum())
            largest = max(largest, float(norms.max(initial=0.0)))
            done = end
        if done != count:
            raise DataError(f"{done} vectors for {count} documents")
        kept.flush()
        largest = min(largest, 1.0) if similarity == "cosine" else largest
        facts = {"similarity": similarity, "largest_norm": largest, "zero_vectors": zeros}
        (folder / _FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        return cls(kept, similarity, largest, zeros)

    @classmethod
    def load(cls, folder: Path, *, device: gpu.Device = "cpu") -> "Flat":
        """The index in folder; its vectors are memory-mapped, not read. DataError if they are cut short.

        device gpu: they are copied to a graphics processor that compares there; DataError where there is none.
        """
        try:
            vectors = np.load(folder / _VECTORS, mmap_mode="r")
            facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
            known = facts["similarity"], float(facts["largest_norm"]), int(facts["zero_vectors"])
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{folder} does not hold a whole flat index ({error}); index again") from None
        return cls(vectors, *known, device)

    @staticmethod
    def remove(folder: Path) -> None:
        """Take the index out of folder."""
        for name in (_VECTORS, _FACTS):
            (folder / name).unlink()

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def flat(self) -> "Flat":
        """The index of the same vectors that misses none: this one."""
        return self

    @property
    def facts(self) -> dict[str, Any]:
        """What the build settled beyond its settings: nothing."""
        return {}

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    def search(self, queries: np.ndarray, k: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
        """(Q, k) int64 rows and (Q, k) float32 scores of the nearest documents, best first by the one order.

        queries is (Q, dim); batch of them are compared at a time, which moves memory and speed but no score. NO_HIT
        and -inf where there are fewer than k documents. DataError if a query holds NaN or infinity.
        """
        return in_batches(self._nearest, queries, k, batch, (len(self), self.dim))

    def scores(self, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(Q, n) float32 inner products of each query with its own rows (Q, n), one dot product each.

        -inf where the row is NO_HIT. DataError if one does not fit into float32.
        """
        rows = np.ascontiguousarray(rows, np.int64)
        scores = np.empty(rows.shape, np.float32)
        pointers = (faiss.swig_ptr(each) for each in (scores, queries, self.vectors, rows))
        faiss.fvec_inner_products_by_idx(*pointers, self.dim, *rows.shape)  # type: ignore[attr-defined]
        if not np.isfinite(scores[rows != NO_HIT]).all():
            largest = _norms(queries).max() * self.largest_norm
            raise DataError(f"inner products of up to {largest:.3g} do not fit into float32")
        return scores

    def _nearest(self, queries: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        queries, norms = prepared(queries, self.similarity)
        width = min(len(self), depth + SPARE)
        if self._on_gpu is None:
            rough, found = faiss.knn(queries, self.vectors, width, metric=faiss.METRIC_INNER_PRODUCT)
        else:
            rough, found = self._on_gpu.search(queries, gpu.width(depth, width))
            width = found.shape[1]
        exact = self.scores(queries, found)
        order = np.lexsort((found, -exact), axis=1)[:, :depth]
        rows, scores = np.take_along_axis(found, order, 1), np.take_along_axis(exact, order, 1)
        if width < len(self):
            # Two sums of dim products differ by at most dim * 2**-23 of the product of the norms.
            slack = self.dim * 2.0**-23 * norms * self.largest_norm
            for unsure in np.flatnonzero(scores[:, -1] <= rough.min(axis=1) + slack):
                everything = np.arange(len(self), dtype=np.int64)[None]
                column = self.scores(queries[unsure : unsure + 1], everything)[0]
                rows[unsure] = ties.first(column, depth)
                scores[unsure] = column[rows[unsure]]
        return rows, scores


def prepared(queries: np.ndarray, similarity: str) -> tuple[np.ndarray, np.ndarray]:
    """queries as they are compared, (Q, dim) float32, and their (Q,) lengths. DataError for NaN or infinity."""
    norms = _norms(queries)
    if not np.isfinite(norms).all():
        raise DataError(f"{int((~np.isfinite(norms)).sum())} query vectors hold NaN or infinity")
    if similarity == "cosine":
        queries, norms = _unit(queries, norms), np.minimum(norms, 1.0)
    return np.ascontiguousarray(queries, np.float32), norms


def in_batches(
    nearest: Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]],
    queries: np.ndarray,
    k: int,
    batch: int,
    shape: tuple[int, int],
) -> tuple[np.ndarray, np.ndarray]:
    """What `Flat.search` returns, by nearest: from (q, dim) queries and a depth to (q, depth) rows and scores.

    shape is the number of documents and of dimensions; depth is never more than there are documents.
    """
    count, dim = shape
    rows = np.full((len(queries), k), NO_HIT, np.int64)
    scores = np.full((len(queries), k), -np.inf, np.float32)
    if len(queries) and queries.shape[1] != dim:
        raise DataError(f"query vectors have {queries.shape[1]} dimensions, the index has {dim}")
    depth = min(k, count)
    if depth:
        for start in range(0, len(queries), batch):
            part = slice(start, start + batch)
            rows[part, :depth], scores[part, :depth] = nearest(queries[part], depth)
    return rows, scores


def _reserve(path: Path, size: int) -> None:
    """OSError if so many bytes have no room: writing into a map of a full disk kills the process without a word."""
    if size and hasattr(os, "posix_fallocate"):
        with path.open("wb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise OSError(error.errno, error.strerror, str(path)) from None


def check_similarity(similarity: str) -> None:
    """Raise DataError unless similarity is one that there is."""
    if similarity not in SIMILARITIES:
        raise DataError(f"similarity is {similarity!r}; wanted one of {', '.join(SIMILARITIES)}")


def _norms(vectors: np.ndarray) -> np.ndarray:
    """(N,) float64 lengths; NaN or infinite where a number of the row is."""
    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))


def _unit(vectors: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """float32 rows of length one; zero rows stay zero."""
    return (vectors / np.where(norms == 0, 1.0, norms)[:, None]).astype(np.float32)
