"""What an order drawn by lot would score: the floor under a metric, exact and in closed form.

Where few documents are judged, or nearly all of them relevant, a metric starts far above 0: of the judged pool of the
CodeSearchNet Challenge 300 functions drawn by lot score two thirds by `ndcg-within`. A whole corpus in random order is
one tie group, so `ties.py` knows its value; no random numbers are drawn. What a query excludes stands in no order: it
is never a hit, and where it is judged it stays in the ideal ranking.

Left out: folded metrics, whose items are drawn by lot the sooner the more copies they have.
"""

from collections.abc import Callable, Sequence
from math import lgamma

import numpy as np

from coderet.metrics import ties
from coderet.metrics.measures import Ranking, Reading, exponential, ideal_gain, linear, shares, totals
from coderet.metrics.ranking import Judgements, Metric, parse
from coderet.records import DataError

GAINS = {"ndcg": linear, "ndcg-exp": exponential, "ndcg-all": exponential}


def chance(
    judgements: Judgements,
    documents: int,
    metrics: Sequence[str],
    depth: int | None = None,
    excluded: tuple[np.ndarray, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """Expected value of each metric for every query with a relevant document, in order: (S,) float64.

    documents: how many the corpus has, all ranked in random order; of them the first depth are hits, by default all.
    excluded: (E,) queries and (E,) rows of the documents that they may not hit. The endings -expected, -best and
    -worst change nothing, for a random order has no ties. DataError for folded metrics, for `bpref` of a run that is
    cut, and if the corpus has fewer documents than a query has judgements.
    """
    pool = judgements.pool
    most = int(pool.ranks.max(initial=0))
    if most > documents:
        raise DataError(f"a query has {most} judged documents, but the corpus has {documents}; give its own size")
    reachable, judged = np.full(judgements.query_count, documents), pool
    if excluded is not None and len(excluded[0]):
        pairs = np.unique(np.stack(excluded, axis=1), axis=0)
        reachable -= np.bincount(pairs[:, 0], minlength=judgements.query_count)
        judged = judgements.without(pairs[:, 0], pairs[:, 1]).pool
    everywhere = Ranking(
        judged.queries, judged.ranks, judged.grades, np.ones_like(judged.ranks), reachable[judged.queries]
    )
    whole = Reading(everywhere, pool, reachable)
    scored = judgements.relevant_counts > 0
    values = {}
    for name in metrics:
        metric = parse(name)
        if metric.folded:
            raise DataError(f"{name} has no floor here: folded items are not equally likely to come first")
        values[name] = _value(whole, metric, depth)[scored]
    return values


def _value(whole: Reading, metric: Metric, depth: int | None) -> np.ndarray:
    """(query_count,) float64. Ending the run at its depth is a cutoff, but for what a metric divides by."""
    kind, cutoff = metric.kind, metric.cutoff
    formula = ties.EXPECTED[kind]
    if depth is None or depth >= whole.hits.max(initial=0):
        return formula(whole, cutoff)
    if kind == "bpref":
        raise DataError("bpref has no floor here where the run is cut; search as deep as the corpus, or leave it out")
    if kind == "ndcg-within":
        return _within_of_first(whole, depth, cutoff)
    if kind == "ndcg-reranked":
        return _reranked_of_first(whole, depth, cutoff)
    shown = min(cutoff or depth, depth)
    value = formula(whole, shown)
    if kind == "precision":
        return shares(value * shown, np.full_like(whole.hits, cutoff) if cutoff else np.minimum(shown, whole.hits))
    if kind in GAINS:
        return value * shares(ideal_gain(whole, shown, GAINS[kind]), ideal_gain(whole, cutoff, GAINS[kind]))
    return value


def _within_of_first(whole: Reading, depth: int, cutoff: int | None) -> np.ndarray:
    """`ndcg-within` of the first depth documents: the j-th judged one is a hit if these hold at least j."""

    def worth(documents: int, size: int, _: int) -> tuple[float, float]:
        places = np.arange(1, min(size, depth, cutoff or size) + 1)
        held, chances = _numbers_held(documents, size, depth)
        at_least = np.append(np.cumsum(chances[::-1])[::-1], 0.0)
        likely = at_least[np.clip(places - held[0], 0, len(held))]
        return float((likely / np.log2(places + 1)).sum()) / max(size, 1), 0.0

    return _gained(whole, cutoff, worth)


def _reranked_of_first(whole: Reading, depth: int, cutoff: int | None) -> np.ndarray:
    """`ndcg-reranked` of the first depth documents: judged ones beyond, and excluded ones, are behind in one group."""

    def worth(documents: int, size: int, hidden: int) -> tuple[float, float]:
        places = np.arange(1, size + hidden + 1)
        discounts = np.where(places <= (cutoff or size + hidden), 1 / np.log2(places + 1), 0)
        before = np.append(0.0, np.cumsum(discounts))
        held, chances = _numbers_held(documents, size, depth)
        behind = shares(before[-1] - before[held], size + hidden - held)
        found = float(chances @ (before[held] + (size - held) * behind))
        return found / max(size, 1), float(chances @ behind)

    return _gained(whole, cutoff, worth)


def _gained(whole: Reading, cutoff: int | None, worth: Callable[[int, int, int], tuple[float, float]]) -> np.ndarray:
    """Exponential gains by the ideal ones.

    worth: of how many documents, how many judged ones among them and how many excluded judged ones, to the expected
    discount of one of the former and one of the latter.
    """
    sizes = np.bincount(whole.judged.queries, minlength=len(whole.hits))
    cases = np.stack([whole.hits, sizes, whole.judgements - sizes], axis=1)
    distinct, case_of = np.unique(cases, axis=0, return_inverse=True)
    worths = np.array([worth(*case) for case in distinct.tolist()])[case_of.ravel()]
    found = totals(whole, whole.found, exponential(whole.found.grades), None)
    there = totals(whole, whole.ideal, exponential(whole.ideal.grades), None)
    return shares(found * worths[:, 0] + (there - found) * worths[:, 1], ideal_gain(whole, cutoff, exponential))


def _numbers_held(documents: int, judged: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """How many judged ones the first depth of the documents can hold, and how likely: hypergeometric."""
    depth = min(depth, documents)
    held = np.arange(max(0, depth - (documents - judged)), min(judged, depth) + 1)
    logs = np.array([_log_ways(judged, each) + _log_ways(documents - judged, depth - each) for each in held.tolist()])
    ways = np.exp(logs - logs.max())
    return held, ways / ways.sum()


def _log_ways(items: int, drawn: int) -> float:
    return lgamma(items + 1) - lgamma(drawn + 1) - lgamma(items - drawn + 1)
