"""Runs to a run: reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009).

A document earns 1 / (k + rank) of every run that has it among its hits, rank counted from 1; a run that has not
contributes nothing. Only ranks count, so runs whose scores cannot be compared can be fused. Documents that earn the
same stand in the one order.
"""

from collections.abc import Sequence

import numpy as np

from coderet.records import NO_HIT, DataError, Run


def rrf(runs: Sequence[Run], *, k: float = 60, weights: Sequence[float] | None = None) -> Run:
    """The fusion of runs over one corpus and the same queries, as deep as the deepest of them.

    k is the paper's constant, the larger the less the first ranks stand out. weights are one factor a run, 1 if not
    given. DataError if the runs do not belong together.
    """
    factors = [1.0] * len(runs) if weights is None else [float(each) for each in weights]
    if not runs or len(factors) != len(runs) or not all(0 <= each < np.inf for each in factors) or not 0 <= k < np.inf:
        raise DataError(
            f"{len(runs)} runs, weights {weights}, k {k}: wanted runs, a weight from 0 on for each, k from 0 on"
        )
    corpus, queries = runs[0].corpus, runs[0].query_ids
    for run in runs[1:]:
        if run.corpus is not corpus and run.corpus.digest != corpus.digest:
            raise DataError(f"runs over corpora {corpus.name} and {run.corpus.name} cannot be fused")
        if not run.query_ids.equals(queries):
            raise DataError(f"runs over {len(queries)} and {len(run)} queries that are not the same cannot be fused")

    owners, rows, earned = [], [], []
    for run, factor in zip(runs, factors, strict=True):
        query, place = np.nonzero(run.rows != NO_HIT)
        owners.append(query)
        rows.append(run.rows[query, place])
        earned.append(factor / (k + 1.0 + place))
    owner, row = np.concatenate(owners), np.concatenate(rows)
    keys, which = np.unique(owner * (len(corpus) + 1) + row, return_inverse=True)
    totals = np.bincount(which, np.concatenate(earned), len(keys)).astype(np.float32)
    owner, row = keys // (len(corpus) + 1), keys % (len(corpus) + 1)

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
