"""Inverted lists: vectors fall into clusters, and a query is compared with the lists of the nearest ones only.

The lists hold codes: SQ8 (`ivf`), close enough to the vectors that what a search misses is what lies in lists that it
does not probe; or PQ of what is left of a vector once its list's centre is taken off (`ivf-pq`), where memory is the
point. See `coderet.indexes.codes` for both.
"""

from pathlib import Path
from typing import Any

import faiss
import numpy as np

from coderet import registry
from coderet.indexes import gpu, learning
from coderet.indexes.approximate import Approximate, Chunks
from coderet.indexes.codes import FEWEST_BITS, IP, SQ8, check_pieces
from coderet.indexes.faiss import Flat
from coderet.records import NO_HIT


class _Lists(Approximate):
    """Lists of codes, some of which are probed."""

    def __init__(self, folder: Path, candidates: int | None, probes: int, device: gpu.Device) -> None:
        registry.check_range("probes", probes, 1)
        super().__init__(folder, candidates, device)
        self._probes = probes

    @classmethod
    def load(cls, folder: Path, *, probes: int = 16, candidates: int | None = None, device: gpu.Device = "cpu") -> Any:
        """The index in folder, memory-mapped, or copied to a graphics processor.

        probes: lists whose codes are compared. candidates: how many for each hit asked for are scored exactly.
        """
        return cls(folder, candidates, probes, device)

    def _find(self, queries: np.ndarray, width: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
        rough, found = self._probed(queries, width, min(self._probes, self._index.nlist))
        short = found[:, depth - 1] == NO_HIT
        if short.any():
            rough[short], found[short] = self._probed(queries[short], width, self._index.nlist)
        return rough, found

    def _probed(self, queries: np.ndarray, width: int, probes: int) -> tuple[np.ndarray, np.ndarray]:
        which = faiss.SearchParametersIVF(nprobe=probes)  # type: ignore[call-arg]
        rough, found = self._index.search(queries, width, params=which)
        return rough, found


class Ivf(_Lists):
    """kind `ivf`: lists of SQ8 codes."""

    @classmethod
    def build(
        cls,
        vectors: Chunks,
        count: int,
        dim: int,
        folder: Path,
        *,
        similarity: str = "cosine",
        lists: int = 256,
        training: int = 50_000,
        exact_vectors: bool = True,
    ) -> "Ivf":
        """As `Sq8.build`. lists: how many clusters; training: vectors, at most, that these are learned from."""
        registry.check_range("index.lists", lists, 1)
        registry.check_range("index.training", training, 1)

        def made(flat: Flat) -> tuple[Any, dict[str, Any]]:
            sample = learning.sample(flat, training)
            return _sq8_lists(flat, sample, learning.lists(lists, len(sample)))

        cls._built(vectors, count, dim, folder, similarity, exact_vectors, made)
        return cls(folder, None, 1, "cpu")


class IvfPq(_Lists):
    """kind `ivf-pq`: lists of PQ codes."""

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
        lists: int = 256,
        pieces: int = 64,
        bits: int = 8,
        training: int = 50_000,
        exact_vectors: bool = True,
    ) -> "IvfPq":
        """As `Ivf.build` and `Pq.build`."""
        registry.check_range("index.lists", lists, 1)
        check_pieces(pieces, bits, training, dim)

        def made(flat: Flat) -> tuple[Any, dict[str, Any]]:
            sample = learning.sample(flat, training)
            number, each = learning.lists(lists, len(sample)), learning.bits(bits, len(sample))
            if each < FEWEST_BITS:
                return _sq8_lists(flat, sample, number)
            index = faiss.IndexIVFPQ(learning.centres(sample, number, similarity), dim, number, pieces, each, IP)
            index.train(sample)
            return index, {"lists": number, "codes": "pq", "bits": each, "learned_from": len(sample)}

        cls._built(vectors, count, dim, folder, similarity, exact_vectors, made)
        return cls(folder, None, 1, "cpu")


def _sq8_lists(flat: Flat, sample: np.ndarray, lists: int) -> tuple[Any, dict[str, Any]]:
    coarse = learning.centres(sample, lists, flat.similarity)
    index = faiss.IndexIVFScalarQuantizer(coarse, flat.dim, lists, SQ8, IP, False)
    index.train(learning.extremes(flat))
    return index, {"lists": lists, "codes": "sq8", "learned_from": len(sample)}
