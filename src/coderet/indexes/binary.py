"""A bit a number, its sign: candidates by Hamming distance, 1/32 of the bytes to look at.

Signs alone rank too roughly to be the score, so the float32 vectors are always kept. Vectors whose numbers are all of
one sign (counts, for example) have codes that tell nothing.
"""

from pathlib import Path
from typing import Any

import faiss
import numpy as np

from coderet.indexes.approximate import Approximate, Chunks
from coderet.indexes.faiss import Flat


class Binary(Approximate):
    """kind `binary`."""

    CANDIDATES = 16

    @classmethod
    def build(cls, vectors: Chunks, count: int, dim: int, folder: Path, *, similarity: str = "cosine") -> "Binary":
        """As `Flat.build`."""

        def made(flat: Flat) -> tuple[Any, dict[str, Any]]:
            return faiss.IndexBinaryFlat(_bits(dim)), {"codes": "signs"}

        cls._built(vectors, count, dim, folder, similarity, True, made)
        return cls(folder, None)

    @classmethod
    def load(cls, folder: Path, *, candidates: int | None = None) -> "Binary":
        """The index in folder, memory-mapped. candidates: how many for each hit asked for are scored exactly."""
        return cls(folder, candidates)

    def _find(self, queries: np.ndarray, width: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
        distances, found = self._index.search(self._coded(queries), width)
        return -distances.astype(np.float32), found

    @staticmethod
    def _coded(vectors: np.ndarray) -> np.ndarray:
        return np.packbits(vectors > 0, axis=1)

    @staticmethod
    def _write(index: Any, path: Path) -> None:
        faiss.write_index_binary(index, str(path))

    @staticmethod
    def _read(path: Path) -> Any:
        return faiss.read_index_binary(str(path), faiss.IO_FLAG_MMAP_IFC)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self), _bits(self.dim)


def _bits(dim: int) -> int:
    """Dimensions up to the next whole byte; those that are added are zero in all codes."""
    return -(-dim // 8) * 8
