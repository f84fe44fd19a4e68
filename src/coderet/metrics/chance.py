"""What an order drawn by lot would score: the floor under a metric, exact and in closed form.

Where few documents are judged, or nearly all of them relevant, a metric starts far above 0: of the judged pool of the
CodeSearchNet Challenge 300 functions drawn by lot score two thirds by `ndcg-within`. A whole corpus in random order is
one tie group, so `ties.py` knows its value; no random numbers are drawn.

Left out: folded metrics, whose items are drawn by lot the sooner the more copies they have.
"""

from collections.abc import Sequence
from math import lgamma

import numpy as np

from coderet.metrics import ties
from coderet.metrics.measures import Ranking, Reading, exponential, ideal_gain, linear, shares, totals
from coderet.metrics.ranking import Judgements, Metric, parse
from coderet.records import DataError

GAINS = {"ndcg": linear, "ndcg-exp": exponential, "ndcg-all": exponential}


def chance(
    judgements: Judgements, documents: int, metrics: Sequence[str], depth: int | None = None
) -> dict[str, np.ndarray]:
    """Expected value of each metric for every query with a relevant document, in order: (S,) float64.

    documents: how many the corpus has, all ranked in random order; of them the first depth are hits, by default all.
    The endings -expected, -best and -worst change nothing, for a random order has no ties. DataError for folded
    metrics, for `bpref` of a run that is cut, and if the corpus has fewer documents than a query has judgements.
    """
    judged = judgements.pool
    most = int(judged.ranks.max(initial=0))
    if most > documents:
        raise DataError(f"a query has {most} judged documents, but the corpus has {documents}; give its own size")
    depth = documents if depth is None else min(depth, documents)
    everywhere = Ranking(
        judged.queries, judged.ranks, judged.grades, np.ones_like(judged.ranks), np.full_like(judged.ranks, documents)
    )
    whole = Reading(everywhere, judged, np.full(judgements.query_count, documents))
    scored = judgements.relevant_counts > 0
    values = {}
    for name in metrics:
        metric = parse(name)
        if metric.folded:
            raise DataError(f"{name} has no floor here: folded items are not equally likely to come first")
        values[name] = _value(whole, metric, documents, depth)[scored]
    return values


def _value(whole: Reading, metric: Metric, documents: int, depth: int) -> np.ndarray:
    """(query_count,) float64. Ending the run at its depth is a cutoff, but for what a metric divides by."""
    kind, cutoff = metric.kind, metric.cutoff
    formula = ties.EXPECTED[kind]
    if depth == documents or kind == "ndcg-reranked":  # what is no hit follows there, in random order too
        return formula(whole, cutoff)
    if kind == "bpref":
        raise DataError("bpref has no floor here where the run is cut; search as deep as the corpus, or leave it out")
    if kind == "ndcg-within":
        return _within_of_first(whole, documents, depth, cutoff)
    shown = min(cutoff or depth, depth)
    value = formula(whole, shown)
    if kind == "precision":
        return value * shown / (cutoff or shown)
    if kind in GAINS:
        return value * shares(ideal_gain(whole, shown, GAINS[kind]), ideal_gain(whole, cutoff, GAINS[kind]))
    return value


def _within_of_first(whole: Reading, documents: int, depth: int, cutoff: int | None) -> np.ndarray:
    """`ndcg-within` of the first depth documents: the j-th judged one is a hit if these hold at least j."""
    pool = whole.pool
    by_size = np.zeros(int(whole.judgements.max(initial=0)) + 1)
    for size in np.unique(whole.judgements[whole.judgements > 0]).tolist():
        places = np.arange(1, min(size, depth, cutoff or size) + 1)
        by_size[size] = (_chances_of_at_least(places, documents, size, depth) / np.log2(places + 1)).sum() / size
    gained = totals(whole, pool.relevant, exponential(pool.relevant.grades), None) * by_size[whole.judgements]
    return shares(gained, ideal_gain(whole, cutoff, exponential))


def _chances_of_at_least(numbers: np.ndarray, documents: int, judged: int, depth: int) -> np.ndarray:
    """P(the first depth of the documents hold at least so many judged ones), by the hypergeometric distribution."""
    held = range(max(0, depth - (documents - judged)), min(judged, depth) + 1)
    logs = np.array([_log_ways(judged, each) + _log_ways(documents - judged, depth - each) for each in held])
    ways = np.exp(logs - logs.max())
    at_least = np.cumsum(ways[::-1])[::-1] / ways.sum()
    return at_least[np.maximum(numbers - held.start, 0)]


def _log_ways(items: int, drawn: int) -> float:
    return lgamma(items + 1) - lgamma(drawn + 1) - lgamma(items - drawn + 1)
