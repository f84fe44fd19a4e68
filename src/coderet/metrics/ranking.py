"""Ranking metrics: a run's hits against the judgements of its queries, in columns.

Definitions are trec_eval's (https://github.com/usnistgov/trec_eval) where it has one: nDCG with linear gain (Jarvelin
and Kekalainen, 2002), MRR, MAP, precision, recall and hit (its `success`). `ndcg-exp` has gain 2**grade - 1 (Burges et
al., 2005). A document is relevant if its grade is above 0; one that nobody judged, or judged 0 or less, earns nothing.

Names are `ndcg@10`, `mrr`, `recall@100`: the number is the cutoff, without one the whole run counts. `-folded` at the
end (`ndcg@10-folded`) is the duplicate-aware reading: documents of one group are one item, which stands where the best
of them was ranked and has the highest grade among them.

One tie rule for all: equal scores rank in descending document id. Corpora are stored in that order, so here it reads
"the lower row first". Which queries count: those with a relevant document. One of them that the run lacks scores 0; the
others are left out of the mean, and each kind is counted.

Left out: measures that know unjudged from irrelevant (bpref, condensed lists), and averages over the orders of a tie.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coderet.records import DataError
from coderet.registry import UnknownName, nearest

LARGEST_ROW = 2**32 - 2  # rows share 64 bits with a score or a query; the last of the 32-bit numbers is kept free

_QUERIES_AT_ONCE = 8192  # bounds the memory of scoring: of a memory-mapped run only so many lines are held


@dataclass(frozen=True)
class Relevant:
    """Relevant documents in columns of one length, sorted by query and within a query by rank."""

    queries: np.ndarray  # (R,) int64
    ranks: np.ndarray  # (R,) int64, counted from 1
    grades: np.ndarray  # (R,) float64, above 0

    @cached_property
    def ordinals(self) -> np.ndarray:
        """(R,) int64: 1 for the first relevant document of its query, 2 for the second, and so on."""
        return _ordinals(self.queries)


@dataclass(frozen=True)
class Judgements:
    """Qrels in columns: document row rows[i] has grade grades[i] for query queries[i], an index below query_count.

    Raises DataError for columns of unequal length, an index out of range, a grade that is not finite, and a document
    judged twice for one query.
    """

    queries: np.ndarray  # (P,) int64
    rows: np.ndarray  # (P,) int64
    grades: np.ndarray  # (P,) float64
    query_count: int

    def __post_init__(self) -> None:
        shapes = {self.queries.shape, self.rows.shape, self.grades.shape}
        if shapes != {(len(self.queries),)}:
            raise DataError(f"the columns of the qrels have shapes {shapes}; wanted three columns of one length")
        if len(self.queries) and not 0 <= self.queries.min() <= self.queries.max() < self.query_count:
            raise DataError(
                f"the qrels name queries {self.queries.min()} to {self.queries.max()}, but there are {self.query_count}"
            )
        if len(self.rows) and not 0 <= self.rows.min() <= self.rows.max() <= LARGEST_ROW:
            raise DataError(f"the qrels name rows {self.rows.min()} to {self.rows.max()}; wanted 0 to {LARGEST_ROW}")
        if not np.isfinite(self.grades).all():
            raise DataError(f"{np.sum(~np.isfinite(self.grades))} grades of the qrels are not finite numbers")
        repeated = len(self.rows) - len(np.unique(_keys(self.queries, self.rows)))
        if repeated:
            raise DataError(f"{repeated} judgements name a query and document again: keep one for each such pair")

    @cached_property
    def relevant(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys (R,) int64 of the relevant documents, ascending, and their grades (R,)."""
        above = self.grades > 0
        keys = _keys(self.queries[above], self.rows[above])
        order = np.argsort(keys)
        return keys[order], self.grades[above][order]

    @cached_property
    def ideal(self) -> Relevant:
        """The best ranking there is: each query's relevant documents by falling grade, ranks 1, 2, ..."""
        above = self.grades > 0
        order = np.lexsort((-self.grades[above], self.queries[above]))
        queries = self.queries[above][order]
        return Relevant(queries, _ordinals(queries), self.grades[above][order])

    @cached_property
    def relevant_counts(self) -> np.ndarray:
        """(query_count,) int64: how many relevant documents each query has."""
        return np.bincount(self.ideal.queries, minlength=self.query_count)

    def folded(self, groups: np.ndarray) -> "Judgements":
        """The same with groups in place of documents: a group has the highest grade among its judged members.

        groups is (N,): each document row's group.
        """
        rows = _groups_of(self.rows, groups)
        order = np.lexsort((-self.grades, rows, self.queries))
        best = order[_ordinals(_keys(self.queries, rows)[order]) == 1]
        return Judgements(self.queries[best], rows[best], self.grades[best], self.query_count)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many queries there were of each kind, and how deep the run is: it knows nothing beyond that rank."""

    scored: int  # have a relevant document and make up the mean
    missing: int  # of those, absent from the run: they score 0
    without_hits: int  # of those, in the run but with no hit: they score 0
    gold_in_tie: int  # of those, a relevant hit has exactly another hit's score: the tie rule decided its rank
    without_relevant: int  # have no relevant document: left out of the mean
    unknown: int  # in the run but not among the dataset's queries: ignored
    depth: int  # hits that a query of the run can have


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Per-query values: values[name][i] belongs to query queries[i]; queries ascend, each has a relevant document."""

    queries: np.ndarray  # (S,) int64
    values: Mapping[str, np.ndarray]  # metric name -> (S,) float64, in [0, 1]
    counts: Counts

    def mean(self, name: str) -> float:
        """Mean of one metric over the scored queries; DataError if there are none."""
        if not len(self.queries):
            raise DataError(
                f"{name} has no mean: none of {self.counts.without_relevant} queries has a relevant document; "
                "check that the qrels belong to these queries"
            )
        return float(self.values[name].mean())


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric's name taken apart; cutoff is None where the whole run counts."""

    kind: str
    cutoff: int | None
    folded: bool


def parse(name: str) -> Metric:
    """Take a name such as `ndcg@10` or `recall@100-folded` apart; UnknownName with the nearest known kind otherwise."""
    match = re.fullmatch(r"([a-z-]+?)(?:@([1-9]\d*))?(-folded)?", name)
    if match is None or match[1] not in METRICS:
        raise UnknownName(
            f"{name!r} is no ranking metric; known: {', '.join(METRICS)}, each as it is or with a cutoff (ndcg@10), "
            f"and with -folded at the end.{nearest(re.sub(r'@.*|-folded$', '', name), METRICS)}"
        )
    return Metric(kind=match[1], cutoff=int(match[2]) if match[2] else None, folded=match[3] is not None)


def evaluate(
    run_queries: np.ndarray,
    rows: np.ndarray,
    scores: np.ndarray,
    judgements: Judgements,
    metrics: Sequence[str],
    groups: np.ndarray | None = None,
) -> Evaluation:
    """Score a run: one value a metric for every query that has a relevant document.

    run_queries is (Q,) integers: which of the dataset's queries each line of the run answers, -1 for none of them. rows
    is (Q, k) integers, -1 where there is no hit; scores is (Q, k) float32. The order of a line's hits is not trusted:
    `rank` sets it. groups is (N,) integers from 0, equal for documents that count as one; only folded metrics want it.
    Raises UnknownName for a metric, DataError for a query with two lines and a relevant document that is hit twice.
    """
    wanted = {name: parse(name) for name in metrics}
    lines = _lines(run_queries, judgements.query_count)
    if not rows.shape == scores.shape == (len(run_queries), rows.shape[-1]):
        raise DataError(f"the run has {len(run_queries)} queries, but rows {rows.shape} and scores {scores.shape}")
    strict = _read(lines, rows, scores, judgements, None)
    readings = {False: strict}
    if any(metric.folded for metric in wanted.values()):
        if groups is None:
            raise DataError("folded metrics need the group of each document row; give groups")
        readings[True] = _read(lines, rows, scores, judgements.folded(groups), groups)
    queries = np.flatnonzero(judgements.relevant_counts)
    absent = lines[queries] < 0
    counts = Counts(
        scored=len(queries),
        missing=int(absent.sum()),
        without_hits=int((strict.hits[queries][~absent] == 0).sum()),
        gold_in_tie=strict.tied,
        without_relevant=judgements.query_count - len(queries),
        unknown=int((run_queries < 0).sum()),
        depth=rows.shape[1],
    )
    values = {
        name: METRICS[metric.kind](readings[metric.folded], metric.cutoff)[queries] for name, metric in wanted.items()
    }
    return Evaluation(queries, values, counts)


def rank(rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each line's hits, best first: by score descending, then by row ascending.

    rows is (Q, k) integers, -1 where there is no hit; scores is (Q, k) float32. Returns int64 and float32 so shaped,
    the same for every order of the input; missing hits are last, with row -1 and score -inf. Raises DataError for NaN
    scores and rows out of range, TypeError for scores of another type: rounding them here would make ties that the
    retriever did not give.
    """
    if scores.dtype != np.float32:
        raise TypeError(f"scores are {scores.dtype}, wanted float32: round them once, where the run is made")
    if rows.size and not -1 <= rows.min() <= rows.max() <= LARGEST_ROW:
        raise DataError(f"the run names rows {rows.min()} to {rows.max()}; wanted -1 (no hit) to {LARGEST_ROW}")
    missing = rows < 0
    unordered = np.isnan(scores) & ~missing
    if unordered.any():
        raise DataError(f"{unordered.sum()} scores of the run are NaN and have no rank; mend its retriever")
    # One unsigned number a hit, ascending as hits rank: score above, row below.
    keys = _descending(scores).astype(np.uint64) << np.uint64(32) | rows.astype(np.uint64)
    keys[missing] = np.iinfo(np.uint64).max
    keys.sort(axis=1)
    missing = keys == np.iinfo(np.uint64).max
    ranked_rows = np.where(missing, -1, (keys & np.uint64(2**32 - 1)).astype(np.int64))
    ranked_scores = np.where(missing, np.float32(-np.inf), _scores_of((keys >> np.uint64(32)).astype(np.uint32)))
    return ranked_rows, ranked_scores


def fold(rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Groups in place of rows, each where its best hit was: later hits of a group go and the ranks close up.

    rows is (Q, k), best first, -1 where there is no hit; groups is (N,) integers from 0, each document row's group.
    Returns (Q, k) int64 groups, -1 at the right end.
    """
    depth = rows.shape[1]
    bits = depth.bit_length()
    items = np.where(rows < 0, -1, _groups_of(np.maximum(rows, 0), groups))
    keys = np.sort(items << bits | np.arange(depth), axis=1)  # members of a group stand together, best first
    in_groups = keys >> bits
    first = in_groups >= 0
    first[:, 1:] &= in_groups[:, 1:] != in_groups[:, :-1]
    places = np.sort(np.where(first, keys & (1 << bits) - 1, depth), axis=1)
    return np.take_along_axis(np.pad(items, ((0, 0), (0, 1)), constant_values=-1), places, axis=1)


def find(queries: np.ndarray, rows: np.ndarray, judgements: Judgements) -> Relevant:
    """The relevant documents among the hits.

    queries is (Q,), ascending; rows is (Q, k), best first, -1 where there is no hit. Raises DataError if a relevant
    document is a hit of one query twice, for then it would be paid twice.
    """
    known, grades = judgements.relevant
    keys = np.where(rows < 0, -1, _keys(queries[:, None], rows)).ravel()
    places = np.searchsorted(known, keys)
    cells = np.flatnonzero(np.append(known, -2)[places] == keys)  # -2: what is behind the last key equals none
    again = len(cells) - len(np.unique(keys[cells]))
    if again:
        raise DataError(f"{again} relevant documents are hits of one query twice; a run names a document once a query")
    lines, columns = np.divmod(cells, max(rows.shape[1], 1))
    return Relevant(queries[lines], columns + 1, grades[places[cells]])


@dataclass(frozen=True, slots=True)
class Reading:
    """All that a metric looks at: the relevant hits, the ideal ranking and two counts a query."""

    found: Relevant
    ideal: Relevant
    hits: np.ndarray  # (query_count,) int64, relevant or not
    relevant: np.ndarray  # (query_count,) int64, found or not
    tied: int  # queries with a relevant hit that has exactly another hit's score


def ndcg(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Discounted grades over those of the ideal ranking, both cut at the same rank; the discount is log2(rank + 1)."""
    return _normalised_gain(reading, cutoff, lambda grades: grades)


def ndcg_exp(reading: Reading, cutoff: int | None) -> np.ndarray:
    """nDCG with gain 2**grade - 1."""
    return _normalised_gain(reading, cutoff, lambda grades: np.exp2(grades) - 1)


def reciprocal_rank(reading: Reading, cutoff: int | None) -> np.ndarray:
    """1 / rank of the first relevant hit; 0 without one."""
    found = reading.found
    return _totals(reading, found, (found.ordinals == 1) / found.ranks, cutoff)


def average_precision(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Sum of the precisions at each relevant hit over the number of relevant documents, whatever the cutoff."""
    found = reading.found
    return _shares(_totals(reading, found, found.ordinals / found.ranks, cutoff), reading.relevant)


def precision(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Relevant hits over the cutoff, even where the run is shorter; without a cutoff, over the number of hits."""
    places = reading.hits if cutoff is None else np.full_like(reading.hits, cutoff)
    return _shares(_relevant_hits(reading, cutoff), places)


def recall(reading: Reading, cutoff: int | None) -> np.ndarray:
    """Relevant hits over the number of relevant documents."""
    return _shares(_relevant_hits(reading, cutoff), reading.relevant)


def hit(reading: Reading, cutoff: int | None) -> np.ndarray:
    """1 if there is a relevant hit, else 0."""
    return (_relevant_hits(reading, cutoff) > 0).astype(np.float64)


METRICS: dict[str, Callable[[Reading, int | None], np.ndarray]] = {
    "ndcg": ndcg,
    "ndcg-exp": ndcg_exp,
    "mrr": reciprocal_rank,
    "map": average_precision,
    "precision": precision,
    "recall": recall,
    "hit": hit,
}


def _read(
    lines: np.ndarray, rows: np.ndarray, scores: np.ndarray, judgements: Judgements, groups: np.ndarray | None
) -> Reading:
    """Go through the run once, a block of queries at a time; with groups, over groups in place of documents."""
    queries = np.flatnonzero((judgements.relevant_counts > 0) & (lines >= 0))
    hits = np.zeros(judgements.query_count, dtype=np.int64)
    blocks = []
    tied = 0
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        block = queries[start : start + _QUERIES_AT_ONCE]
        block_rows, block_scores = rank(rows[lines[block]], scores[lines[block]])
        items = block_rows if groups is None else fold(block_rows, groups)
        found = find(block, items, judgements)
        hits[block] = (items >= 0).sum(axis=1)
        if groups is None:
            tied += _queries_in_tie(found, block, block_rows, block_scores)
        blocks.append(found)
    columns = [
        np.concatenate([getattr(block, name) for block in blocks] or [np.empty(0, dtype)])
        for name, dtype in (("queries", np.int64), ("ranks", np.int64), ("grades", np.float64))
    ]
    return Reading(Relevant(*columns), judgements.ideal, hits, judgements.relevant_counts, tied)


def _queries_in_tie(found: Relevant, queries: np.ndarray, rows: np.ndarray, scores: np.ndarray) -> int:
    """How many of the queries have a relevant hit whose score its neighbour above or below has too."""
    same = (scores[:, 1:] == scores[:, :-1]) & (rows[:, 1:] >= 0)
    tied = np.pad(same, ((0, 0), (1, 0))) | np.pad(same, ((0, 0), (0, 1)))
    in_tie = tied[np.searchsorted(queries, found.queries), found.ranks - 1]
    return len(np.unique(found.queries[in_tie]))


def _lines(run_queries: np.ndarray, query_count: int) -> np.ndarray:
    """(query_count,) int64: the run's line of each query, -1 for none."""
    known = run_queries[run_queries >= 0]
    if len(known) and known.max() >= query_count:
        raise DataError(f"the run names query {known.max()}, but there are {query_count}; give -1 for unknown queries")
    if len(np.unique(known)) < len(known):
        raise DataError(f"{len(known) - len(np.unique(known))} queries have more than one line in the run; wanted one")
    lines = np.full(query_count, -1, dtype=np.int64)
    lines[known] = np.flatnonzero(run_queries >= 0)
    return lines


def _normalised_gain(reading: Reading, cutoff: int | None, gain: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    actual, ideal = (
        _totals(reading, ranking, gain(ranking.grades) / np.log2(ranking.ranks + 1), cutoff)
        for ranking in (reading.found, reading.ideal)
    )
    return _shares(actual, ideal)


def _relevant_hits(reading: Reading, cutoff: int | None) -> np.ndarray:
    return _totals(reading, reading.found, np.ones(len(reading.found.ranks)), cutoff)


def _totals(reading: Reading, ranking: Relevant, amounts: np.ndarray, cutoff: int | None) -> np.ndarray:
    """(query_count,) float64: the sum of amounts (R,) over each query's documents of the ranking up to the cutoff."""
    if cutoff is not None:
        amounts = np.where(ranking.ranks <= cutoff, amounts, 0)
    return np.bincount(ranking.queries, weights=amounts, minlength=len(reading.hits))


def _shares(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, and 0 where the whole is 0: no hit, or a query that is left out."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def _ordinals(sorted_values: np.ndarray) -> np.ndarray:
    """(R,) int64: 1, 2, ... within each stretch of equal values."""
    places = np.arange(len(sorted_values))
    starts = np.append(True, sorted_values[1:] != sorted_values[:-1])[: len(places)]
    return places - np.maximum.accumulate(np.where(starts, places, 0)) + 1


def _keys(queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """One int64 for a query and a row, ascending by query and then by row."""
    return queries.astype(np.int64) << 32 | rows


def _groups_of(rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
    if rows.size and rows.max() >= len(groups):
        raise DataError(f"row {rows.max()} has no group: groups were given for {len(groups)} documents")
    if len(groups) and groups.min() < 0:
        raise DataError(f"a document has group {groups.min()}; wanted integers from 0")
    return groups[rows].astype(np.int64)


def _descending(scores: np.ndarray) -> np.ndarray:
    """uint32 numbers that ascend as the float32 scores descend, equal for equal scores."""
    bits = (scores + np.float32(0)).view(np.uint32)  # adding 0 makes -0.0 and 0.0 one
    return _flipped_if_positive(bits)


def _scores_of(numbers: np.ndarray) -> np.ndarray:
    return _flipped_if_positive(numbers).view(np.float32)


def _flipped_if_positive(bits: np.ndarray) -> np.ndarray:
    """All bits but the sign turned round in positive floats: those ascend with their bits, negative ones descend."""
    return np.where(bits < 2**31, ~bits & np.uint32(2**31 - 1), bits)
