"""Runs to a run: by ranks alone, or by the scores of a dense and a lexical run.

A document is worth what it earns of every run that has it among its hits. Documents that earn the same stand in the
one order.
"""

from collections.abc import Sequence

import numpy as np

from coderet.records import NO_HIT, DataError, Run


def rrf(runs: Sequence[Run], *, k: float = 60, weights: Sequence[float] | None = None) -> Run:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009), as deep as the deepest of the runs.

    A document earns 1 / (k + rank) of every run that has it, rank counted from 1; a run that has not contributes
    nothing. Only ranks count, so runs whose scores cannot be compared can be fused. k is the paper's constant, the
    larger the less the first ranks stand out. weights are one factor a run, 1 if not given. DataError if the runs,
    which are over one corpus and the same queries, do not belong together.
    """
    factors = [1.0] * len(runs) if weights is None else [float(each) for each in weights]
    if not runs or len(factors) != len(runs) or not all(0 <= each < np.inf for each in factors) or not 0 <= k < np.inf:
        raise DataError(
            f"{len(runs)} runs, weights {weights}, k {k}: wanted runs, a weight from 0 on for each, k from 0 on"
        )
    _check(runs)
    places = [np.broadcast_to(np.arange(run.depth), run.rows.shape) for run in runs]
    return _fused(runs, [factor / (k + 1.0 + place) for factor, place in zip(factors, places, strict=True)])


def weighted(runs: Sequence[Run], *, weight: float, saturation: float) -> Run:
    """A lexical and a dense run, in this order: the dense score plus weight times the lexical evidence.

    Evidence is the lexical score as a share of the query's best one, or of saturation if that is larger: it reaches 1
    where words are found that tell much, and stays small where even the best document holds few of them. It is no
    min-max of the query's hits, which would call the best 1 however little it has.

    A document that the dense run has not among its hits is worth that run's lowest score for the query, which it
    cannot exceed by much or it would be there; of a lexical run that has it not it earns nothing. DataError if
    there are not two runs, if they do not belong together, or if a lexical score is negative.
    """
    if len(runs) != 2 or not 0 <= weight < np.inf or not 0 < saturation < np.inf:
        raise DataError(
            f"{len(runs)} runs, weight {weight}, saturation {saturation}: wanted two runs, the lexical and the dense "
            "one, a weight from 0 on and a saturation above 0"
        )
    _check(runs)
    lexical, dense = runs
    found, known = lexical.rows != NO_HIT, dense.rows != NO_HIT
    lowest = np.min(lexical.scores, where=found, initial=np.inf)
    if lowest < 0:
        raise DataError(
            f"the lexical run has a score of {lowest}; wanted scores from 0 on, as BM25's are: name the "
            "lexical member first"
        )
    best = np.max(lexical.scores, axis=1, where=found, initial=0.0, keepdims=True).astype(np.float64)
    evidence = weight * np.where(found, lexical.scores, 0.0) / np.maximum(best, saturation)
    floor = np.min(dense.scores, axis=1, where=known, initial=np.inf).astype(np.float64)
    floor = np.where(known.any(axis=1), floor, 0.0)
    above = np.where(known, dense.scores, 0.0) - np.where(known, floor[:, None], 0.0)
    return _fused(runs, [evidence, above], floor)


def _check(runs: Sequence[Run]) -> None:
    """DataError unless runs are over one corpus and the same queries."""
    corpus, queries = runs[0].corpus, runs[0].query_ids
    for run in runs[1:]:
        if run.corpus is not corpus and run.corpus.digest != corpus.digest:
            raise DataError(f"runs over corpora {corpus.name} and {run.corpus.name} cannot be fused")
        if not run.query_ids.equals(queries):
            raise DataError(f"runs over {len(queries)} and {len(run)} queries that are not the same cannot be fused")


def _fused(runs: Sequence[Run], earned: Sequence[np.ndarray], base: np.ndarray | None = None) -> Run:
    """The run of documents by the sum of what they have earned, (Q, k) a run, and of their query's base (Q,)."""
    corpus, queries = runs[0].corpus, runs[0].query_ids
    hits = [np.nonzero(run.rows != NO_HIT) for run in runs]
    owner = np.concatenate([query for query, _ in hits])
    row = np.concatenate([run.rows[hit] for run, hit in zip(runs, hits, strict=True)])
    amounts = np.concatenate([each[hit] for each, hit in zip(earned, hits, strict=True)])
    keys, which = np.unique(owner * (len(corpus) + 1) + row, return_inverse=True)
    owner, row = keys // (len(corpus) + 1), keys % (len(corpus) + 1)
    sums = np.bincount(which, amounts, len(keys))
    totals = (sums if base is None else sums + base[owner]).astype(np.float32)

    best_first = np.lexsort((row, -totals, owner))
    owner, row, totals = owner[best_first], row[best_first], totals[best_first]
    rank = np.arange(len(owner)) - np.searchsorted(owner, owner)
    depth = max(run.depth for run in runs)
    kept = rank < depth
    fused_rows = np.full((len(queries), depth), NO_HIT, np.int64)
    fused_scores = np.full((len(queries), depth), -np.inf, np.float32)
    fused_rows[owner[kept], rank[kept]] = row[kept]
    fused_scores[owner[kept], rank[kept]] = totals[kept]
    return Run.of(corpus, queries, fused_rows, fused_scores)
