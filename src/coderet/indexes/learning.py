"""What codes are learned from: a seeded sample of the vectors, and how much a small corpus can teach.

A cluster wants LEAST vectors, below which FAISS warns that its centre is badly known. So a corpus that is small gets
fewer lists than were asked for, and fewer bits a piece; what was settled stands in the facts of the index.
"""

import math
from typing import Any

import faiss
import numpy as np

from coderet.indexes.faiss import Flat

LEAST = 39
_SEED = 13  # any number does; another one makes another index
_ROUNDS = 10  # of k-means, as FAISS's own indexes have it
_ROWS = 65_536  # looked at a time


def sample(flat: Flat, most: int) -> np.ndarray:
    """(n, dim) float32 of at most so many vectors, in the order of the corpus."""
    if most >= len(flat):
        return np.array(flat.vectors)
    rows = np.random.default_rng(_SEED).choice(len(flat), most, replace=False, shuffle=False)
    return np.ascontiguousarray(flat.vectors[np.sort(rows)])


def lists(wanted: int, vectors: int) -> int:
    """How many lists a sample of so many vectors can teach: wanted, or one for each LEAST vectors."""
    return max(1, min(wanted, vectors // LEAST))


def bits(wanted: int, vectors: int) -> int:
    """How many bits a piece's code can have: wanted, or as many as leave LEAST vectors for each value; 0 if none."""
    return min(wanted, int(math.log2(vectors // LEAST))) if vectors >= LEAST else 0


def extremes(flat: Flat) -> np.ndarray:
    """(2, dim): the lowest and the highest number of each dimension, over all vectors."""
    low, high = np.full(flat.dim, np.inf, np.float32), np.full(flat.dim, -np.inf, np.float32)
    for start in range(0, len(flat), _ROWS):
        part = flat.vectors[start : start + _ROWS]
        low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
    return np.stack([low, high])


def centres(vectors: np.ndarray, count: int, similarity: str) -> Any:
    """A flat FAISS index of the centres of count clusters of vectors."""
    means = faiss.Kmeans(
        vectors.shape[1],
        count,
        niter=_ROUNDS,
        seed=_SEED,
        spherical=similarity == "cosine",
        min_points_per_centroid=1,
        max_points_per_centroid=len(vectors),
    )
    means.train(vectors)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(np.asarray(means.centroids))
    return index
