"""The kinds of index side by side on synthetic clustered vectors: what each costs and what it finds.

Prints seconds to build, megabytes on disk, queries/s in batches, milliseconds of single queries, and the share of an
exact search's first ten hits that is found. Every kind has its default settings, SQ8 and PQ once with the float32
vectors that score their candidates and once without.

    OMP_WAIT_POLICY=passive python bench/indexes.py [documents] [dimensions] [queries]
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from coderet import registry
from coderet.indexes import INDEXES
from coderet.retrievers.recall import share

DEPTH = 10
BATCH = 256
SINGLE_QUERIES = 50
CLUSTERS = 1000
SPREAD = 1.0  # of a cluster, where the centres' own numbers have a spread of 1
CHUNK = 16_384


def vectors(count: int, dim: int, seed: int) -> np.ndarray:
    """(count, dim) float32: centres of one table, and noise in fewer dimensions than there are, as encoders' is."""
    centres = np.random.default_rng(0).standard_normal((CLUSTERS, dim)).astype(np.float32)
    within = np.random.default_rng(1).standard_normal((dim // 4, dim)).astype(np.float32) / np.sqrt(dim / 4)
    random = np.random.default_rng(seed)
    noise = random.standard_normal((count, dim // 4)).astype(np.float32) @ within
    return centres[random.integers(0, CLUSTERS, count)] + SPREAD * noise


def chunks(documents: np.ndarray) -> Iterator[tuple[pa.ChunkedArray, np.ndarray]]:
    for start in range(0, len(documents), CHUNK):
        part = documents[start : start + CHUNK]
        yield pa.chunked_array([pa.array(map(str, range(start, start + len(part))), pa.large_string())]), part


def main(documents: int = 100_000, dim: int = 256, queries: int = 1_000) -> None:
    corpus, asked = vectors(documents, dim, 2), vectors(queries, dim, 3)
    print(f"{documents} vectors of {dim} dimensions, {queries} queries, {DEPTH} hits")
    head = ("build s", "MB", "queries/s", "ms, one", f"recall@{DEPTH}")
    print(f"{'':24}" + "".join(f"{each:>12}" for each in head))
    wanted = None
    for name in INDEXES:
        kind = registry.load(INDEXES, name, "indexes")
        both = "exact_vectors" in registry.named_arguments(kind.build) and name in ("sq8", "pq")
        for settings in ({}, {"exact_vectors": False}) if both else ({},):
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                start = time.perf_counter()
                kind.build(chunks(corpus), documents, dim, folder, **settings)
                building = time.perf_counter() - start
                index = kind.load(folder)
                index.search(asked, DEPTH, BATCH)  # warm-up
                start = time.perf_counter()
                rows, _ = index.search(asked, DEPTH, BATCH)
                rate = queries / (time.perf_counter() - start)
                start = time.perf_counter()
                for query in range(SINGLE_QUERIES):
                    index.search(asked[query % queries :][:1], DEPTH, BATCH)
                single = (time.perf_counter() - start) / SINGLE_QUERIES * 1000
                size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
            wanted = rows if wanted is None else wanted  # flat is the table's first
            figures = f"{building:12.1f}{size:12.1f}{rate:12,.0f}{single:12.2f}{share(rows, wanted):12.3f}"
            print(f"{name + (', codes only' if settings else ''):24}{figures}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
