"""What a ranking is worth: the formulas behind the names of metrics, over columns of judged hits.

Definitions are trec_eval's (https://github.com/usnistgov/trec_eval) where it has one: nDCG with linear gain (Jarvelin
and Kekalainen, 2002), MRR, MAP, precision, recall, hit (its `success`) and bpref (Buckley and Voorhees, 2004). A
document is relevant if its grade is above 0; one that nobody judged, or judged 0 or less, earns nothing.

`ndcg-exp` has gain 2**grade - 1 (Burges et al., 2005). The CodeSearchNet Challenge (2019) reads it in two ways:
`ndcg-all` is `ndcg-exp` by its other name, `ndcg-within` lets judged hits alone take a rank (Sakai's condensed list). A
judged document that is no hit is missed by both, so both grow with the length of the run. `ndcg-reranked` does not: it
ranks all judged documents, those that are no hit behind the others in no order, by its expectation.

Left out: expected reciprocal rank and rank-biased precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Ranking:
    """Judged documents in columns of one length, sorted by query and within a query by rank.

    Where a tie is left open, firsts and lasts are the ranks that its group takes up; where it is settled, both are the
    document's own rank.
    """

    queries: np.ndarray  # (R,) int64
    ranks: np.ndarray  # (R,) int64, counted from 1
    grades: np.ndarray  # (R,) float64
    firsts: np.ndarray  # (R,) int64
    lasts: np.ndarray  # (R,) int64

    @classmethod
    def settled(cls, queries: np.ndarray, ranks: np.ndarray, grades: np.ndarray) -> "Ranking":
        """A ranking without open ties."""
        return cls(queries, ranks, grades, ranks, ranks)

    @cached_property
    def ordinals(self) -> np.ndarray:
        """(R,) int64: 1 for the first of these documents of its query, 2 for the second, and so on."""
        return ordinals(self.queries)

    @cached_property
    def group_sizes(self) -> np.ndarray:
        """(G,) int64: how many of these documents are in each tie group that holds any, in their order."""
        starts = np.flatnonzero(stretch_starts(self.queries, self.firsts))
        return np.diff(np.append(starts, len(self.queries)))

    @cached_property
    def relevant(self) -> "Ranking":
        """Those with a grade above 0."""
        return self.where(self.grades > 0)

    @cached_property
    def condensed(self) -> "Ranking":
        """The same with ranks counted over these documents alone."""
        sizes = self.group_sizes
        ends = np.cumsum(sizes)
        firsts, lasts = self.ordinals[ends - sizes], self.ordinals[ends - 1]
        return Ranking(self.queries, self.ordinals, self.grades, np.repeat(firsts, sizes), np.repeat(lasts, sizes))

    def where(self, kept: np.ndarray) -> "Ranking":
        """Those documents that kept (R,) bool says."""
        return Ranking(self.queries[kept], self.ranks[kept], self.grades[kept], self.firsts[kept], self.lasts[kept])


@dataclass(frozen=True)
class Reading:
    """All that a metric looks at: the judged hits, the judged documents there are, and the number of hits a query."""

    judged: Ranking
    pool: Ranking  # every judged document, by falling grade
    hits: np.ndarray  # (query_count,) int64, judged or not

    @property
    def found(self) -> Ranking:
        """The relevant hits."""
        return self.judged.relevant

    @property
    def ideal(self) -> Ranking:
        """The best ranking there is."""
        return self.pool.relevant

    @cached_property
    def condensed(self) -> "Reading":
        """The same over judged hits alone."""
        return Reading(self.judged.condensed, self.pool, self._counted(self.judged))

    @cached_property
    def relevant(self) -> np.ndarray:
        """(query_count,) int64: relevant documents, found or not."""
        return self._counted(self.ideal)

    @cached_property
    def judgements(self) -> np.ndarray:
        """(query_count,) int64: judged documents, found or not."""
        return self._counted(self.pool)

    def _counted(self, ranking: Ranking) -> np.ndarray:
        return np.bincount(ranking.queries, minlength=len(self.hits))


Formula = Callable[[Reading, int | None], np.ndarray]


def ndcg(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Discounted grades over those of the ideal ranking, both cut at the same rank; the discount is log2(rank + 1)."""
    return _normalised_gain(reading, cutoff, linear)


def ndcg_exp(reading: Reading, cutoff: int | None) -> np.ndarray:
    """nDCG with gain 2**grade - 1."""
    return _normalised_gain(reading, cutoff, exponential)


def ndcg_within(reading: Reading, cutoff: int | None) -> np.ndarray:
    """nDCG with gain 2**grade - 1 of the judged hits alone; a cutoff counts these."""
    return ndcg_exp(reading.condensed, cutoff)


def ndcg_reranked(reading: Reading, cutoff: int | None) -> np.ndarray:
    """nDCG with gain 2**grade - 1 of all judged documents, those that are no hit last and in no order."""
    condensed = reading.condensed
    found = condensed.found
    gains = exponential(found.grades)
    gained = totals(reading, found, gains / np.log2(found.ranks + 1), cutoff)
    whole = totals(reading, reading.ideal, exponential(reading.ideal.grades), None)
    missing = np.maximum(whole - totals(reading, found, gains, None), 0)
    behind = mean_discounts(condensed.hits + 1, reading.judgements, cutoff)
    return shares(gained + missing * behind, ideal_gain(reading, cutoff, exponential))


def reciprocal_rank(reading: Reading, cutoff: int | None) -> np.ndarray:
    """1 / rank of the first relevant hit; 0 without one."""
    found = reading.found
    return totals(reading, found, (found.ordinals == 1) / found.ranks, cutoff)


def average_precision(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Sum of the precisions at each relevant hit over the number of relevant documents, whatever the cutoff."""
    found = reading.found
    return shares(totals(reading, found, found.ordinals / found.ranks, cutoff), reading.relevant)


def precision(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Relevant hits over the cutoff, even where the run is shorter; without a cutoff, over the number of hits."""
    places = reading.hits if cutoff is None else np.full_like(reading.hits, cutoff)
    return shares(_counts(reading, reading.found, cutoff), places)


def recall(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Relevant hits over the number of relevant documents."""
    return shares(_counts(reading, reading.found, cutoff), reading.relevant)


def hit(reading: Reading, cutoff: int | None) -> np.ndarray:
    """1 if there is a relevant hit, else 0."""
    return (_counts(reading, reading.found, cutoff) > 0).astype(np.float64)


def judged(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Share of the hits that somebody judged, relevant or not: how far the other metrics can be trusted."""
    return shares(_counts(reading, reading.judged, cutoff), shown(reading, cutoff))


def bpref(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Over the relevant documents, 1 less the share of judged irrelevant hits above; unjudged hits count for nothing.

    As in trec_eval only the first of them count, as many as there are relevant documents, and there is no cutoff; a
    negative grade, which trec_eval takes for unjudged, is a judgement here.
    """
    hits, above = reading.judged, reading.judged.grades > 0
    found = hits.where(above)
    worse = np.minimum(hits.ordinals[above] - found.ordinals, reading.relevant[found.queries])
    lost = shares(worse, bpref_scale(reading)[found.queries])
    return shares(totals(reading, found, 1 - lost, None), reading.relevant)


METRICS: dict[str, Formula] = {
    "ndcg": ndcg,
    "ndcg-exp": ndcg_exp,
    "ndcg-all": ndcg_exp,
    "ndcg-within": ndcg_within,
    "ndcg-reranked": ndcg_reranked,
    "mrr": reciprocal_rank,
    "map": average_precision,
    "precision": precision,
    "recall": recall,
    "hit": hit,
    "judged": judged,
    "bpref": bpref,
}


def linear(grades: np.ndarray) -> np.ndarray:
    return grades


def exponential(grades: np.ndarray) -> np.ndarray:
    return np.exp2(grades) - 1


def ideal_gain(reading: Reading, cutoff: int | None, gain: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """(query_count,) float64: discounted gain of the ideal ranking."""
    return totals(reading, reading.ideal, gain(reading.ideal.grades) / np.log2(reading.ideal.ranks + 1), cutoff)


def bpref_scale(reading: Reading) -> np.ndarray:
    """(query_count,) int64: how many irrelevant hits above a relevant one take all its worth."""
    return np.minimum(reading.relevant, reading.judgements - reading.relevant)


def shown(reading: Reading, cutoff: int | None) -> np.ndarray:
    """(query_count,) int64: the hits up to the cutoff."""
    return reading.hits if cutoff is None else np.minimum(reading.hits, cutoff)


def totals(reading: Reading, ranking: Ranking, amounts: np.ndarray, cutoff: int | None) -> np.ndarray:
    """(query_count,) float64: the sum of amounts (R,) over each query's documents of the ranking up to the cutoff."""
    if cutoff is not None:
        amounts = np.where(ranking.ranks <= cutoff, amounts, 0)
    return np.bincount(ranking.queries, weights=amounts, minlength=len(reading.hits))


def shares(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, and 0 where the whole is 0: no hit, or a query that is left out."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def mean_discounts(firsts: np.ndarray, lasts: np.ndarray, cutoff: int | None) -> np.ndarray:
    """Mean of 1 / log2(rank + 1) over the ranks from first to last, those beyond the cutoff counting 0."""
    return _means_over_ranks(lambda ranks: 1 / np.log2(ranks + 1), firsts, lasts, cutoff)


def mean_reciprocals(firsts: np.ndarray, lasts: np.ndarray, cutoff: int | None) -> np.ndarray:
    """Mean of 1 / rank over the ranks from first to last, those beyond the cutoff counting 0."""
    return _means_over_ranks(lambda ranks: 1 / ranks, firsts, lasts, cutoff)


def shares_within(firsts: np.ndarray, lasts: np.ndarray, cutoff: int | None) -> np.ndarray:
    """Share of the ranks from first to last that lie up to the cutoff."""
    sizes = lasts - firsts + 1
    return sizes / sizes if cutoff is None else np.clip(cutoff - firsts + 1, 0, sizes) / sizes


def ordinals(sorted_values: np.ndarray) -> np.ndarray:
    """(R,) int64: 1, 2, ... within each stretch of equal values."""
    places = np.arange(len(sorted_values))
    return places - np.maximum.accumulate(np.where(stretch_starts(sorted_values), places, 0)) + 1


def stretch_starts(*columns: np.ndarray) -> np.ndarray:
    """(R,) bool: where a stretch of equal lines of the columns begins."""
    starts = np.ones(len(columns[0]), dtype=bool)
    if len(starts):
        starts[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return starts


def _normalised_gain(reading: Reading, cutoff: int | None, gain: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    found = reading.found
    gained = totals(reading, found, gain(found.grades) / np.log2(found.ranks + 1), cutoff)
    return shares(gained, ideal_gain(reading, cutoff, gain))


def _counts(reading: Reading, ranking: Ranking, cutoff: int | None) -> np.ndarray:
    return totals(reading, ranking, np.ones(len(ranking.ranks)), cutoff)


def _means_over_ranks(
    worth: Callable[[np.ndarray], np.ndarray], firsts: np.ndarray, lasts: np.ndarray, cutoff: int | None
) -> np.ndarray:
    """By running sums; a single rank is worth just what it is. No ranks, last before first, are worth 0."""
    sizes = lasts - firsts + 1
    deepest = int(lasts.max(initial=0)) if cutoff is None else min(int(lasts.max(initial=0)), cutoff)
    sums = np.append(0.0, np.cumsum(worth(np.arange(1.0, deepest + 1))))
    means = shares(sums[np.minimum(lasts, deepest)] - sums[np.minimum(firsts - 1, deepest)], sizes)
    single = sizes == 1
    return np.where(single, np.where(firsts <= deepest, worth(firsts), 0), means)
