"""The scores that Anserini's `SimpleSearcher` reports, which is what Pyserini's `LuceneSearcher` answers with.

Anserini orders equal scores by *ascending* document id, rounds every score to four decimals and then lowers each one
that is not more than 0.0001 below its predecessor by 0.000001, twice as much if it is the second in a row, and so on
(its `ScoreTiesAdjusterReranker`). So an order that trec_eval would turn round is made to last: a paper's figure can
depend on it. From 32 up a float32 is too coarse for 0.000001 and scores may stay equal; whoever judges the run then
orders them by its own rule, here as there.
"""

import numpy as np

_DECIMALS = 1e4
_NEAR = np.float32(1e-4)
_STEP = np.float32(1e-6)


def lowered(scores: np.ndarray) -> np.ndarray:
    """(Q, k) float32 scores as SimpleSearcher gives them; each line ordered as Anserini orders it, -inf at its end."""
    rounded = (np.floor(scores.astype(np.float64) * _DECIMALS + 0.5) / _DECIMALS).astype(np.float32)
    in_a_row = np.zeros(len(scores), np.float32)
    for place in range(1, rounded.shape[1]):
        column = rounded[:, place]
        with np.errstate(invalid="ignore"):  # of nothing less nothing
            apart = rounded[:, place - 1] - column > _NEAR
        in_a_row = np.where(apart, np.float32(0), in_a_row + np.float32(1))
        rounded[:, place] = np.where(apart, column, column - _STEP * in_a_row)
    return rounded
