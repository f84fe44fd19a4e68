"""A graph of near neighbours that a search walks through (Malkov and Yashunin, 2018), over SQ8 codes.

Documents are added one by one: with several threads the graph would depend on which of them comes first, and an index
is to be the same whenever it is made.
"""

from pathlib import Path
from typing import Any

import faiss
import numpy as np

from coderet import registry
from coderet.indexes import learning
from coderet.indexes.approximate import Approximate, Chunks
from coderet.indexes.codes import IP, SQ8
from coderet.indexes.faiss import Flat
from coderet.records import NO_HIT


class Hnsw(Approximate):
    """kind `hnsw`."""

    IN_ORDER = True

    def __init__(self, folder: Path, candidates: int | None, breadth: int) -> None:
        registry.check_range("breadth", breadth, 1)
        super().__init__(folder, candidates)
        self._breadth = breadth

    @classmethod
    def build(
        cls,
        vectors: Chunks,
        count: int,
        dim: int,
        folder: Path,
        *,
        similarity: str = "cosine",
        links: int = 32,
        build_breadth: int = 80,
        exact_vectors: bool = True,
    ) -> "Hnsw":
        """As `Sq8.build`.

        links: of a document, twice as many on the lowest level. build_breadth: documents in view while its neighbours
        are looked for.
        """
        registry.check_range("index.links", links, 2)
        registry.check_range("index.build_breadth", build_breadth, 1)

        def made(flat: Flat) -> tuple[Any, dict[str, Any]]:
            index: Any = faiss.IndexHNSWSQ(dim, SQ8, links, IP)  # type: ignore[arg-type]
            index.hnsw.efConstruction = build_breadth
            index.train(learning.extremes(flat))
            return index, {"codes": "sq8"}

        cls._built(vectors, count, dim, folder, similarity, exact_vectors, made)
        return cls(folder, None, 1)

    @classmethod
    def load(cls, folder: Path, *, breadth: int = 128, candidates: int | None = None) -> "Hnsw":
        """The index in folder, memory-mapped.

        breadth: documents in view on the way, raised to the candidates where there are more of these. candidates: how
        many for each hit asked for are scored exactly.
        """
        return cls(folder, candidates, breadth)

    def _find(self, queries: np.ndarray, width: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
        view = faiss.SearchParametersHNSW(efSearch=max(self._breadth, width))  # type: ignore[attr-defined]
        rough, found = self._index.search(queries, width, params=view)
        cut_off = (found == NO_HIT).any(axis=1)  # the walk began in a part of the graph that no link leads out of
        if cut_off.any():
            rough[cut_off], found[cut_off] = self._index.storage.search(queries[cut_off], width)
        return rough, found
