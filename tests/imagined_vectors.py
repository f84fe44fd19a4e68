"""Made-up vectors in clusters, and indexes of every kind over them with settings for few documents."""

import numpy as np
import pyarrow as pa

from coderet import registry
from coderet.indexes import INDEXES

SMALL = {"pq": {"pieces": 4}, "ivf": {"lists": 8}, "ivf-pq": {"lists": 8, "pieces": 4}, "hnsw": {"links": 8}}


def kind_of(name):
    return registry.load(INDEXES, name, "indexes")


def ids_of(count):
    return pa.chunked_array([pa.array([f"d{row}" for row in range(count)], pa.large_string())])


def build(folder, kind, vectors, similarity="cosine", chunk=1000, **settings):
    folder.mkdir(parents=True, exist_ok=True)
    vectors = np.asarray(vectors, np.float32).reshape(len(vectors), -1)
    ids, starts = ids_of(len(vectors)), range(0, len(vectors), chunk)
    chunks = ((ids.slice(start, chunk), vectors[start : start + chunk]) for start in starts)
    given = SMALL.get(kind, {}) | settings
    return kind_of(kind).build(chunks, len(vectors), vectors.shape[1], folder, similarity=similarity, **given)


def clustered(count, dim=16, seed=0):
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(7).standard_normal((20, dim))
    return (centres[random.integers(0, 20, count)] + 0.3 * random.standard_normal((count, dim))).astype(np.float32)
