"""The first k of a column of scores by the one order: highest score first, lowest row among equal scores."""

import numpy as np


def first(scores: np.ndarray, k: int) -> np.ndarray:
    """(min(k, N),) rows of the k best of scores (N,), best first; equal scores in ascending row, at the cutoff too."""
    if k <= 0:
        return np.empty(0, np.int64)
    if k < len(scores):
        kth = np.partition(scores, len(scores) - k)[len(scores) - k]
        above, level = np.flatnonzero(scores > kth), np.flatnonzero(scores == kth)
        rows = np.concatenate([above, level[: k - len(above)]])
    else:
        rows = np.arange(len(scores))
    return rows[np.lexsort((rows, -scores[rows]))]
