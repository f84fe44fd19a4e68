"""Ranking metrics: a run's hits against the judgements of its queries, in columns.

`measures.py` says what a ranking is worth; here a run is put in order, held against the qrels and read in the ways that
a metric's name asks for. Names are `ndcg@10`, `mrr`, `recall@100`: the number is the cutoff, without one the whole run
counts. Two endings change the reading, the second after the first:

- `-expected`, `-best`, `-worst` (`ndcg@10-expected`): over all orders of equal scores; see `ties.py`;
- `-folded` (`ndcg@10-folded`): duplicate-aware. Documents of one group are one item, which stands where the best of
  them was ranked and has the highest grade among them.

One tie rule for all else: equal scores rank in descending document id. Corpora are stored in that order, so here it
reads "the lower row first". Which queries count: those with a relevant document. One of them that the run lacks scores
0; the others are left out of the mean, and each kind is counted.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from coderet.metrics import ties
from coderet.metrics.measures import METRICS, Ranking, Reading, ordinals
from coderet.records import DataError
from coderet.registry import UnknownName, nearest

LARGEST_ROW = 2**32 - 2  # rows share 64 bits with a score or a query; the last of the 32-bit numbers is kept free

_QUERIES_AT_ONCE = 8192  # bounds the memory of scoring: of a memory-mapped run only so many lines are held


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
    def by_key(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys (P,) int64 of the judged documents, ascending, and their grades (P,)."""
        keys = _keys(self.queries, self.rows)
        order = np.argsort(keys)
        return keys[order], self.grades[order]

    def grades_of(self, queries: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of documents, one for each of the queries, the places (J,) of the judged ones, and their grades (J,)."""
        known, grades = self.by_key
        keys = np.where(rows < 0, -1, _keys(queries, rows)).ravel()
        places = np.searchsorted(known, keys)
        judged = np.flatnonzero(np.append(known, -2)[places] == keys)  # -2: what is behind the last key equals none
        return judged, grades[places[judged]]

    @cached_property
    def pool(self) -> Ranking:
        """The best ranking there is: each query's judged documents by falling grade, ranks 1, 2, ..."""
        order = np.lexsort((-self.grades, self.queries))
        queries = self.queries[order]
        return Ranking.settled(queries, ordinals(queries), self.grades[order])

    @cached_property
    def relevant_counts(self) -> np.ndarray:
        """(query_count,) int64: how many relevant documents each query has."""
        return np.bincount(self.queries[self.grades > 0], minlength=self.query_count)

    def without(self, queries: np.ndarray, rows: np.ndarray) -> "Judgements":
        """The same less the judgements of these queries and rows, which stand side by side."""
        kept = ~np.isin(_keys(self.queries, self.rows), _keys(queries, rows))
        return Judgements(self.queries[kept], self.rows[kept], self.grades[kept], self.query_count)

    def folded(self, groups: np.ndarray) -> "Judgements":
        """The same with groups in place of documents: a group has the highest grade among its judged members.

        groups is (N,): each document row's group.
        """
        rows = _groups_of(self.rows, groups)
        order = np.lexsort((-self.grades, rows, self.queries))
        best = order[ordinals(_keys(self.queries, rows)[order]) == 1]
        return Judgements(self.queries[best], rows[best], self.grades[best], self.query_count)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many queries there were of each kind, and how deep the run is: it knows nothing beyond that rank."""

    scored: int  # have a relevant document and make up the mean
    missing: int  # of those, absent from the run: they score 0
    without_hits: int  # of those, in the run but with no hit: they score 0
    gold_in_tie: int  # of those, a relevant hit has exactly another hit's score: the tie rule decided its rank
    cut_in_tie: int  # of those, the last hit that the run's depth allows ties with the one above: more may tie unseen
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
    """A metric's name taken apart; cutoff is None where the whole run counts, ties "" where the rule decides them."""

    kind: str
    cutoff: int | None
    folded: bool
    ties: str = ""


def parse(name: str) -> Metric:
    """Take a name such as `ndcg@10`, `mrr-expected` or `recall@100-folded` apart.

    UnknownName with the nearest known kind otherwise, and for a cutoff where a metric knows none.
    """
    match = re.fullmatch(r"([a-z-]+?)(?:@([1-9]\d*))?(?:-(expected|best|worst))?(-folded)?", name)
    if match is None or match[1] not in METRICS:
        plain = re.sub(r"@.*|(-expected|-best|-worst)?(-folded)?$", "", name)
        raise UnknownName(
            f"{name!r} is no ranking metric; known: {', '.join(METRICS)}, each as it is or with a cutoff (ndcg@10), "
            f"then -expected, -best or -worst, and with -folded at the end.{nearest(plain, METRICS)}"
        )
    if match[2] and match[1] == "bpref":
        raise UnknownName(
            f"{name!r} has a cutoff, but bpref is of the whole run; write {name.replace('@' + match[2], '')}"
        )
    return Metric(match[1], int(match[2]) if match[2] else None, match[4] is not None, match[3] or "")


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
    Raises UnknownName for a metric, DataError for a query with two lines and a judged document that is hit twice.
    """
    wanted = {name: parse(name) for name in metrics}
    lines = _lines(run_queries, judgements.query_count)
    if not rows.shape == scores.shape == (len(run_queries), rows.shape[-1]):
        raise DataError(f"the run has {len(run_queries)} queries, but rows {rows.shape} and scores {scores.shape}")
    strict = _read(lines, rows, scores, judgements, None)
    open_ties = {False: strict.reading}
    if any(metric.folded for metric in wanted.values()):
        if groups is None:
            raise DataError("folded metrics need the group of each document row; give groups")
        open_ties[True] = _read(lines, rows, scores, judgements.folded(groups), groups).reading
    asked = {(metric.folded, metric.ties) for metric in wanted.values()}
    readings = {(folded, order): _with_ties(open_ties[folded], order) for folded, order in asked}
    queries = np.flatnonzero(judgements.relevant_counts)
    absent = lines[queries] < 0
    counts = Counts(
        scored=len(queries),
        missing=int(absent.sum()),
        without_hits=int((strict.reading.hits[queries][~absent] == 0).sum()),
        gold_in_tie=_queries_in_tie(strict.reading.found),
        cut_in_tie=strict.cut_in_tie,
        without_relevant=judgements.query_count - len(queries),
        unknown=int((run_queries < 0).sum()),
        depth=rows.shape[1],
    )
    values = {
        name: (ties.EXPECTED if metric.ties == "expected" else METRICS)[metric.kind](
            readings[metric.folded, metric.ties], metric.cutoff
        )[queries]
        for name, metric in wanted.items()
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


def find(queries: np.ndarray, rows: np.ndarray, scores: np.ndarray, judgements: Judgements) -> Ranking:
    """The judged documents among the hits, with their ties open.

    queries is (Q,), ascending; rows is (Q, k), best first, -1 where there is no hit; scores is (Q, k). Raises DataError
    if a judged document is a hit of one query twice, for then it would be paid twice.
    """
    cells, grades = judgements.grades_of(queries[:, None], rows)
    lines, columns = np.divmod(cells, max(rows.shape[1], 1))
    keys = _keys(queries[lines], rows.ravel()[cells])
    again = len(cells) - len(np.unique(keys))
    if again:
        raise DataError(f"{again} judged documents are hits of one query twice; a run names a document once a query")
    firsts, lasts = _tie_groups(rows, scores)
    return Ranking(queries[lines], columns + 1, grades, firsts.ravel()[cells] + 1, lasts.ravel()[cells] + 1)


@dataclass(frozen=True, slots=True)
class _Read:
    reading: Reading  # with its ties open
    cut_in_tie: int  # queries whose last hit ties with the one above and fills the run's depth


def _read(
    lines: np.ndarray, rows: np.ndarray, scores: np.ndarray, judgements: Judgements, groups: np.ndarray | None
) -> _Read:
    """Go through the run once, a block of queries at a time; with groups, over groups in place of documents."""
    queries = np.flatnonzero((judgements.relevant_counts > 0) & (lines >= 0))
    hits = np.zeros(judgements.query_count, dtype=np.int64)
    blocks = []
    cut = 0
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        block = queries[start : start + _QUERIES_AT_ONCE]
        items, item_scores = rank(rows[lines[block]], scores[lines[block]])
        if items.shape[1] > 1:
            cut += int(((items[:, -1] >= 0) & (item_scores[:, -1] == item_scores[:, -2])).sum())
        if groups is not None:
            in_groups, places = _folded(items, groups)
            items = np.take_along_axis(in_groups, places, axis=1)
            item_scores = np.take_along_axis(np.pad(item_scores, ((0, 0), (0, 1))), places, axis=1)
        hits[block] = (items >= 0).sum(axis=1)
        blocks.append(find(block, items, item_scores, judgements))
    columns = [
        np.concatenate([getattr(block, name) for block in blocks] or [np.empty(0, dtype)])
        for name, dtype in (
            ("queries", np.int64),
            ("ranks", np.int64),
            ("grades", np.float64),
            ("firsts", np.int64),
            ("lasts", np.int64),
        )
    ]
    return _Read(Reading(Ranking(*columns), judgements.pool, hits), cut)


def _with_ties(reading: Reading, order: str) -> Reading:
    """A reading with its ties open (`expected`), in their best or worst order, or by default as the rule has it."""
    if order == "expected":
        return reading
    ordered = {"best": ties.best, "worst": ties.worst}.get(order, ties.settled)
    return replace(reading, judged=ordered(reading.judged))


def _tie_groups(rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Q, k) each: the first and the last column of the tie group that each hit is in."""
    depth = rows.shape[1]
    columns = np.broadcast_to(np.arange(depth), rows.shape)
    same = (scores[:, 1:] == scores[:, :-1]) & (rows[:, 1:] >= 0)
    if not same.any():
        return columns, columns
    apart = np.pad(~same, ((0, 0), (1, 1)), constant_values=True)
    firsts = np.maximum.accumulate(np.where(apart[:, :-1], columns, 0), axis=1)
    lasts = np.minimum.accumulate(np.where(apart[:, 1:], columns, depth)[:, ::-1], axis=1)[:, ::-1]
    return firsts, lasts


def _queries_in_tie(found: Ranking) -> int:
    """How many queries have a relevant hit whose score another hit has too."""
    return len(np.unique(found.queries[found.lasts > found.firsts]))


def _folded(rows: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Items (Q, k + 1), the last column -1, and which columns (Q, k) to take of them, in order."""
    depth = rows.shape[1]
    bits = depth.bit_length()
    items = np.where(rows < 0, -1, _groups_of(np.maximum(rows, 0), groups))
    keys = np.sort(items << bits | np.arange(depth), axis=1)  # members of a group stand together, best first
    in_groups = keys >> bits
    first = in_groups >= 0
    first[:, 1:] &= in_groups[:, 1:] != in_groups[:, :-1]
    places = np.sort(np.where(first, keys & (1 << bits) - 1, depth), axis=1)
    return np.pad(items, ((0, 0), (0, 1)), constant_values=-1), places


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
