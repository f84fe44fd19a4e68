"""What all approximate kinds share: FAISS chooses candidates by codes, exact dot products score them.

On disk lie the codes of every document as FAISS keeps them (`candidates.faiss`), and the float32 vectors of a flat
index (`vectors.npy`). Both are memory-mapped. A search takes a few times as many candidates as it wants hits, scores
them as `Flat` does, and ranks them by the one order; so scores compare with those of any other index, and what is
approximate is only which documents were looked at. A query that a kind finds too few documents for is compared with
all codes: there are fewer hits than asked for only where there are fewer documents. And where documents whose code is
equal to a hit's may have been left out at the cutoff, more candidates are taken, so that equal vectors keep the one
order.

`exact_vectors: false` leaves the float32 vectors out, where memory is the point. Scores are then those of the codes:
they rank by the one order too, but compare with no other index's.

Vectors stream in. They are written to disk first; what must be learned is learned from a seeded sample of them, then
codes are added a part at a time. Repeated on the same machine, an index is the same byte for byte: sample and clusters
are seeded, and whatever depends on the order of its threads has one.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import faiss
import numpy as np
import pyarrow as pa

from coderet import registry
from coderet.indexes import gpu
from coderet.indexes.faiss import SPARE, Flat, check_similarity, in_batches, prepared
from coderet.records import NO_HIT, DataError

CODES = "candidates.faiss"
_FACTS, _ZEROS = "approximate.json", "zero_rows.npy"
_ROWS = 16_384  # coded at a time; a graph depends on it
_WIDER = 4  # times as many candidates where a tie reaches the last of them
_LONGEST = 1e15  # of a vector: what codes are learned from is squared and summed in float32

Chunks = Iterable[tuple[pa.ChunkedArray, np.ndarray]]


class Approximate:
    """An index of codes, opened. flat: the exact index of the same vectors, None where they are not kept.

    A kind has `build` and `load`, whose keyword-only arguments are its settings, and says how its codes are made and
    searched. facts: what the build settled beyond its settings, such as fewer lists for a small corpus.
    """

    CANDIDATES: ClassVar[int] = 4
    IN_ORDER: ClassVar[bool] = False  # what is added depends on what was before
    approximate = True

    def __init__(self, folder: Path, candidates: int | None, device: gpu.Device = "cpu") -> None:
        try:
            known = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
            self.similarity: str = known["similarity"]
            self.dim, self._count, size = int(known["dim"]), int(known["documents"]), int(known["bytes"])
            self.facts: dict[str, Any] = dict(known["facts"])
            if known["kind"] != type(self).__name__:
                raise ValueError(f"it is of kind {known['kind']}")
            there = (folder / CODES).stat().st_size
            if there != size:  # FAISS maps files without a look at their length
                raise ValueError(f"{CODES} has {there} bytes, wanted {size}")
            self._index: Any = self._read(folder / CODES) if self._count else None
            if self._index is not None and (self._index.ntotal, self._index.d) != self._shape:
                raise ValueError(f"{CODES} holds {self._index.ntotal} codes of {self._index.d} dimensions")
            self._zero_rows = np.load(folder / _ZEROS, mmap_mode="r")
            self.flat = Flat.load(folder) if known["exact_vectors"] else None
        except (OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, MemoryError) as error:
            raise DataError(
                f"{folder} does not hold a whole {type(self).__name__} index ({error}); index again"
            ) from None
        if candidates is not None:
            registry.check_range("candidates", candidates, 1)
            if self.flat is None:
                raise DataError(
                    f"candidates is {candidates}, but {folder} was made with exact_vectors: false, so that nothing can "
                    "score candidates again; leave it out, or index with exact_vectors: true"
                )
        self._candidates = candidates or self.CANDIDATES
        self._most = self._count
        if device == "gpu" and self._index is not None:
            self._index, self._most = gpu.copy(self._index), min(self._count, gpu.MOST)

    def __len__(self) -> int:
        return self._count

    @property
    def zero_vectors(self) -> int:
        return len(self._zero_rows)

    def search(self, queries: np.ndarray, k: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
        """(Q, k) int64 rows and (Q, k) float32 scores, best first by the one order, as `Flat.search` returns them."""
        return in_batches(self._first, queries, k, batch, (len(self), self.dim))

    # What a kind says

    def _find(self, queries: np.ndarray, width: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """(Q, width) rough scores, higher is better, and rows; NO_HIT only after the first depth of a query."""
        raise NotImplementedError

    @staticmethod
    def _coded(vectors: np.ndarray) -> np.ndarray:
        """What is added to the index, or asked of it, for vectors."""
        return vectors

    @staticmethod
    def _write(index: Any, path: Path) -> None:
        faiss.write_index(index, str(path))

    @staticmethod
    def _read(path: Path) -> Any:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)

    @property
    def _shape(self) -> tuple[int, int]:
        return self._count, self.dim

    # What all do

    @classmethod
    def _built(
        cls, chunks: Chunks, count: int, dim: int, folder: Path, similarity: str, exact_vectors: bool, make: Any
    ) -> None:
        """Write the index of chunks to folder. make: from a flat index to the FAISS index, learned, and its facts."""
        check_similarity(similarity)
        flat = Flat.build(chunks, count, dim, folder, similarity=similarity)
        if flat.largest_norm > _LONGEST:
            raise DataError(
                f"vectors of length {flat.largest_norm:.3g} are too long for codes; wanted {_LONGEST:g} at most"
            )
        facts: dict[str, Any] = {}
        (folder / CODES).touch()
        if count:
            index, facts = make(flat)
            with _one_thread() if cls.IN_ORDER else contextlib.nullcontext():
                for start in range(0, count, _ROWS):
                    index.add(cls._coded(np.ascontiguousarray(flat.vectors[start : start + _ROWS])))
            cls._write(index, folder / CODES)
        np.save(folder / _ZEROS, _zero_rows(flat))
        known = {
            "kind": cls.__name__,
            "similarity": similarity,
            "documents": count,
            "dim": dim,
            "bytes": (folder / CODES).stat().st_size,
            "exact_vectors": exact_vectors,
            "facts": facts,
        }
        (folder / _FACTS).write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
        if not exact_vectors:
            Flat.remove(folder)

    def _first(self, queries: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        queries = prepared(queries, self.similarity)[0]
        width = depth * self._candidates if self.flat is not None else depth + SPARE
        if self._most < self._count:
            width = gpu.width(depth, width)
        with _each_query_alone():
            return self._ranked(queries, depth, min(width, self._most))

    def _ranked(self, queries: np.ndarray, depth: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        rough, found = self._find(queries, width, depth)
        rough = np.where(found == NO_HIT, -np.inf, rough).astype(np.float32)
        if self.flat is not None:
            scores = self.flat.scores(queries, found)
        else:
            scores = rough = np.where(np.isin(found, self._zero_rows), np.float32(0), rough)
        order = np.lexsort((found, -scores), axis=1)
        last = np.take_along_axis(scores, order[:, depth - 1 : depth], 1)
        # A document left out may equal the last hit if the last candidate's code is as good as that of such a hit.
        unsure = ((scores == last) & (rough <= rough.min(axis=1, keepdims=True))).any(axis=1)
        order = order[:, :depth]
        rows, scores = np.take_along_axis(found, order, 1), np.take_along_axis(scores, order, 1)
        if unsure.any() and width < self._most:
            rows[unsure], scores[unsure] = self._ranked(queries[unsure], depth, min(width * _WIDER, self._most))
        return rows, scores


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """FAISS with one thread."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


@contextlib.contextmanager
def _each_query_alone() -> Iterator[None]:
    """Without matrix products, whose sums depend on how many queries are asked together."""
    threshold = faiss.cvar.distance_compute_blas_threshold
    faiss.cvar.distance_compute_blas_threshold = 2**30
    try:
        yield
    finally:
        faiss.cvar.distance_compute_blas_threshold = threshold


def _zero_rows(flat: Flat) -> np.ndarray:
    """Rows of the vectors that are zero, which a code may show as a little more."""
    if not flat.zero_vectors:
        return np.empty(0, np.int64)
    starts = range(0, len(flat), _ROWS)
    return np.concatenate(
        [start + np.flatnonzero(~flat.vectors[start : start + _ROWS].any(axis=1)) for start in starts]
    )
