"""What a ranking is worth when equal scores are no order: over all orders of each tie, the expectation, best and worst.

A strict score lets a rule decide ties, and where a corpus holds one text twice, half of the score can be that rule's.
Three readings stand beside it, as endings of a metric's name:

- `-expected`: the mean over every order of every tie group, all equally likely, in closed form (McSherry and Najork,
  2008), not sampled;
- `-best` and `-worst`: the orders with the judged documents first, by falling grade, and last, by rising grade.

Ties are equal float32 scores. Assumed: that a tie group is what the run shows of it. A run that is cut at some depth
may have cut through the group of its last hit; documents beyond are in no order here, and such queries are counted
(`Counts.cut_in_tie`). With `-folded`, folding comes first: an item has the score of its best member, and the orders are
those of items. `ndcg-reranked` takes the expectation over what is no hit in each of the readings.

Left out: nothing; each metric of `measures.py` has its expectation here.
"""

from collections.abc import Callable

import numpy as np

from coderet.metrics.measures import (
    Formula,
    Ranking,
    Reading,
    bpref_scale,
    exponential,
    ideal_gain,
    linear,
    mean_discounts,
    mean_reciprocals,
    precision,
    shares,
    shares_within,
    shown,
    stretch_starts,
    totals,
)


def settled(ranking: Ranking) -> Ranking:
    """The ranking with its ties taken as the run has ordered them."""
    return Ranking.settled(ranking.queries, ranking.ranks, ranking.grades)


def best(ranking: Ranking) -> Ranking:
    """The ranking with its ties ordered by falling grade, what nobody judged last."""
    return _ordered(ranking, ascending=False)


def worst(ranking: Ranking) -> Ranking:
    """The ranking with its ties ordered by rising grade, what nobody judged first."""
    return _ordered(ranking, ascending=True)


def expected_ndcg(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Each relevant document is equally likely at each rank of its group, and gains add up."""
    return _expected_gain(reading, cutoff, linear)


def expected_ndcg_exp(reading: Reading, cutoff: int | None) -> np.ndarray:
    return _expected_gain(reading, cutoff, exponential)


def expected_ndcg_within(reading: Reading, cutoff: int | None) -> np.ndarray:
    return _expected_gain(reading.condensed, cutoff, exponential)


def expected_ndcg_reranked(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Documents that are no hit are one more group, behind the others."""
    condensed = reading.condensed
    found = condensed.found
    gains = exponential(found.grades)
    gained = _sums(reading, found, gains * mean_discounts(found.firsts, found.lasts, cutoff))
    whole = _sums(reading, reading.ideal, exponential(reading.ideal.grades))
    missing = np.maximum(whole - _sums(reading, found, gains), 0)
    behind = mean_discounts(condensed.hits + 1, reading.judgements, cutoff)
    return shares(gained + missing * behind, ideal_gain(reading, cutoff, exponential))


def expected_reciprocal_rank(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Sum of P(the first relevant hit has this rank) / rank over the ranks of the first group with a relevant hit."""
    leading, relevant = _leading_groups(reading.found)
    values = mean_reciprocals(leading.firsts, leading.lasts, cutoff)
    several = np.flatnonzero((relevant > 1) & (leading.lasts > leading.firsts))
    cases = np.stack([leading.firsts[several], leading.lasts[several], relevant[several]], axis=1)
    distinct, case_of = np.unique(cases, axis=0, return_inverse=True)
    by_case = [_reciprocal_of_first(first, last, number, cutoff) for first, last, number in distinct.tolist()]
    values[several] = np.array(by_case, dtype=np.float64)[case_of.ravel()]
    return _sums(reading, leading, values)


def expected_average_precision(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Within a group the relevant documents above one at place i of n are i / (n - 1) of the group's others."""
    found = reading.found
    groups, relevant = _groups(found)
    sizes = groups.lasts - groups.firsts + 1
    others = np.divide(relevant - 1, sizes - 1, out=np.zeros(len(sizes)), where=sizes > 1)
    shown_ranks = sizes * shares_within(groups.firsts, groups.lasts, cutoff)
    reciprocals = sizes * mean_reciprocals(groups.firsts, groups.lasts, cutoff)
    before = found.ordinals[stretch_starts(found.queries, found.firsts)] - 1
    precisions = (before + 1 - others * groups.firsts) * reciprocals + others * shown_ranks
    return shares(_sums(reading, groups, relevant / sizes * precisions), reading.relevant)


def expected_precision(reading: Reading, cutoff: int | None) -> np.ndarray:
    if cutoff is None:
        return precision(reading, None)
    return _expected_counts(reading, reading.found, cutoff) / cutoff


def expected_recall(reading: Reading, cutoff: int | None) -> np.ndarray:
    return shares(_expected_counts(reading, reading.found, cutoff), reading.relevant)


def expected_hit(reading: Reading, cutoff: int | None) -> np.ndarray:
    """1 less the chance that the places up to the cutoff hold none of the first group's relevant documents."""
    leading, relevant = _leading_groups(reading.found)
    sizes = leading.lasts - leading.firsts + 1
    places = sizes if cutoff is None else np.clip(cutoff - leading.firsts + 1, 0, sizes)
    none = np.ones(len(sizes))
    for drawn in range(int(relevant.max(initial=0))):  # the next of them lies behind the cutoff too
        left = np.maximum(sizes - drawn, 1)
        none *= np.where(drawn < relevant, np.clip(left - places, 0, None) / left, 1)
    return _sums(reading, leading, 1 - none)


def expected_judged(reading: Reading, cutoff: int | None) -> np.ndarray:
    return shares(_expected_counts(reading, reading.judged, cutoff), shown(reading, cutoff))


def expected_bpref(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Of a group's irrelevant judged hits each number from none to all is equally likely above a relevant one."""
    hits = reading.judged
    above = hits.grades > 0
    starts = stretch_starts(hits.queries, hits.firsts)
    group_of = np.cumsum(starts) - 1
    worse = np.bincount(group_of, weights=~above, minlength=int(starts.sum())).astype(np.int64)
    running = np.cumsum(worse) - worse  # in all groups before, of other queries too
    query_starts = stretch_starts(hits.queries)
    running -= np.maximum.accumulate(np.where(query_starts[starts], running, 0)) if len(running) else 0
    before, beside = running[group_of][above], worse[group_of][above]
    found = hits.where(above)
    limit = reading.relevant[found.queries]
    lost = (_sum_up_to(before + beside, limit) - _sum_up_to(before - 1, limit)) / (beside + 1)
    values = 1 - shares(lost, bpref_scale(reading)[found.queries])
    return shares(_sums(reading, found, values), reading.relevant)


EXPECTED: dict[str, Formula] = {
    "ndcg": expected_ndcg,
    "ndcg-exp": expected_ndcg_exp,
    "ndcg-all": expected_ndcg_exp,
    "ndcg-within": expected_ndcg_within,
    "ndcg-reranked": expected_ndcg_reranked,
    "mrr": expected_reciprocal_rank,
    "map": expected_average_precision,
    "precision": expected_precision,
    "recall": expected_recall,
    "hit": expected_hit,
    "judged": expected_judged,
    "bpref": expected_bpref,
}


def _ordered(ranking: Ranking, ascending: bool) -> Ranking:
    """Each group's documents by grade, put to the front of its ranks or, ascending, to their end."""
    order = np.lexsort((ranking.grades if ascending else -ranking.grades, ranking.firsts, ranking.queries))
    sizes = ranking.group_sizes
    starts = np.cumsum(sizes) - sizes
    within = np.arange(len(order)) - np.repeat(starts, sizes)
    starting = ranking.lasts - np.repeat(sizes, sizes) + 1 if ascending else ranking.firsts
    return Ranking.settled(ranking.queries, starting + within, ranking.grades[order])


def _expected_gain(reading: Reading, cutoff: int | None, gain: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    found = reading.found
    gained = _sums(reading, found, gain(found.grades) * mean_discounts(found.firsts, found.lasts, cutoff))
    return shares(gained, ideal_gain(reading, cutoff, gain))


def _expected_counts(reading: Reading, ranking: Ranking, cutoff: int | None) -> np.ndarray:
    return _sums(reading, ranking, shares_within(ranking.firsts, ranking.lasts, cutoff))


def _sums(reading: Reading, ranking: Ranking, amounts: np.ndarray) -> np.ndarray:
    """(query_count,) float64 sums of amounts that have been cut already."""
    return totals(reading, ranking, amounts, None)


def _groups(found: Ranking) -> tuple[Ranking, np.ndarray]:
    """One document for each tie group that has any, and (G,) how many it has."""
    return found.where(stretch_starts(found.queries, found.firsts)), found.group_sizes


def _leading_groups(found: Ranking) -> tuple[Ranking, np.ndarray]:
    """The same for the first group of each query."""
    groups, sizes = _groups(found)
    leading = groups.ordinals == 1
    return groups.where(leading), sizes[leading]


def _reciprocal_of_first(first: int, last: int, relevant: int, cutoff: int | None) -> float:
    size = last - first + 1
    skipped = np.arange(size - relevant + 1)  # irrelevant ones before the first relevant one
    still = np.append(1.0, np.cumprod((size - relevant - skipped[:-1]) / (size - skipped[:-1])))
    ranks = first + skipped
    worth = 1 / ranks if cutoff is None else np.where(ranks <= cutoff, 1 / ranks, 0)
    return float(np.sum(still * relevant / (size - skipped) * worth))


def _sum_up_to(last: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """min(0, limit) + min(1, limit) + ... + min(last, limit); 0 for a last of -1."""
    low = np.minimum(last, limit)
    return low * (low + 1) / 2 + np.maximum(last - limit, 0) * limit
