"""What a dataset is made of: equal documents, equal queries, queries without gold, empty and overlong texts.

Texts are compared after line ends are made one and outer white space is taken off, nothing else. Documents of equal
text form a group; the strict scores treat its members as different, the `-folded` ones as one item. What no query may
hit is in no group: where a text is not to be had and an empty one stands for it, nobody knows what it equals.

The *ceiling* is what a retriever can get that sees texts alone and errs nowhere: equal queries get one ranking, equal
documents one score, and ties fall by the one rule (descending id). `-expected` is its mean over all orders of those
ties. What a query excludes may be gold and is no hit of it all the same: then the ceiling is below 1. Columns
throughout: nothing is held a query or a document but numbers.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coderet.metrics.measures import mean_discounts, ordinals, stretch_starts
from coderet.records import NO_HIT, Dataset

OVERLONG_CHARACTERS = 100_000
CUTOFF = 10  # of the ceiling's ndcg


def text_groups(texts: pa.ChunkedArray) -> np.ndarray:
    """(N,) int32: the group of each text, numbered by first appearance; equal texts share one."""
    digests = np.empty((len(texts), 16), np.uint8)
    place = 0
    for chunk in texts.chunks:
        for text in chunk.to_pylist():
            normal = text.replace("\r\n", "\n").replace("\r", "\n").strip()
            digests[place] = np.frombuffer(hashlib.blake2b(normal.encode(), digest_size=16).digest(), np.uint8)
            place += 1
    _, first, inverse = np.unique(digests.view("V16").ravel(), return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int32)
    order[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return order[inverse]


def census(dataset: Dataset) -> tuple[dict[str, Any], np.ndarray | None]:
    """The counts for the report, and each document's group, None if no two documents are equal."""
    documents, queries, qrels = dataset.corpus, dataset.queries, dataset.qrels.table
    groups = text_groups(documents.ids if len(documents) == 0 else documents.table["text"])
    groups = _set_apart(groups, _never_hits(dataset))
    sizes = np.bincount(groups, minlength=1)
    lengths = _lengths(documents.table["text"])
    gold = _gold(dataset)
    answered = len(np.unique(gold.queries))
    affected = len(np.unique(gold.queries[sizes[groups[gold.rows]] > 1]))
    counts = {
        "documents": len(documents),
        "queries": len(queries),
        "judgements": len(qrels),
        "relevant_judgements": len(gold.rows),
        "queries_without_gold": len(queries) - answered,
        "empty_documents": int((lengths == 0).sum()),
        "empty_queries": int((_lengths(queries.texts) == 0).sum()),
        "overlong_documents": int((lengths > OVERLONG_CHARACTERS).sum()),
        "overlong_characters": OVERLONG_CHARACTERS,
        "document_characters_median": float(np.median(lengths)) if len(lengths) else 0.0,
        "duplicate_groups": int((sizes > 1).sum()),
        "duplicate_documents": int(sizes[sizes > 1].sum()),
        "affected_queries": affected,
        **_equal_queries(gold, groups[gold.rows]),
        **_ceiling(gold, groups, sizes),
    }
    return counts, groups if (sizes > 1).any() else None


@dataclass(frozen=True)
class _Gold:
    """Relevant judgements in columns, sorted by query and within a query by falling grade."""

    queries: np.ndarray  # (R,) int64
    texts: np.ndarray  # (R,) int64: the group of the query's text
    rows: np.ndarray  # (R,) int64
    grades: np.ndarray  # (R,) float64
    reachable: np.ndarray  # (R,) float64: 0 for what its query excludes, else 1


def _never_hits(dataset: Dataset) -> np.ndarray:
    """The rows that every query excludes."""
    queries, rows = dataset.exclusions
    pairs = _pairs(rows, queries)  # a query may name a document twice
    known, counts = np.unique(pairs.left, return_counts=True)
    return known[counts == len(dataset.queries)]


def _set_apart(groups: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The groups with each of the rows in one of its own."""
    apart = groups.copy()
    apart[rows] = groups.max(initial=-1) + 1 + np.arange(len(rows))
    return apart


def _gold(dataset: Dataset) -> _Gold:
    qrels, ids = dataset.qrels.table, dataset.queries.ids
    relevant = qrels.filter(pc.greater(qrels["grade"], 0))
    found = pc.index_in(relevant["query_id"], value_set=ids.combine_chunks())
    queries = pc.fill_null(found, NO_HIT).to_numpy().astype(np.int64)
    rows = dataset.corpus.rows_of(relevant["document_id"])
    grades = relevant["grade"].to_numpy().astype(np.float64)
    texts = text_groups(dataset.queries.texts)[queries] if len(ids) else queries
    stride = len(dataset.corpus) + 1
    asked, excluded = dataset.exclusions
    reachable = (~np.isin(queries * stride + rows, asked * stride + excluded)).astype(np.float64)
    order = np.lexsort((rows, -grades, queries))
    return _Gold(queries[order], texts[order].astype(np.int64), rows[order], grades[order], reachable[order])


def _lengths(texts: pa.ChunkedArray) -> np.ndarray:
    """(N,) int64 characters, outer white space not counted; one chunk at a time, for trimming copies the text."""
    lengths = [pc.utf8_length(pc.utf8_trim_whitespace(chunk)).to_numpy().astype(np.int64) for chunk in texts.chunks]
    return np.concatenate(lengths or [np.empty(0, np.int64)])


def _equal_queries(gold: _Gold, groups: np.ndarray) -> dict[str, Any]:
    """Groups of equal query text, those that disagree on their gold, and the best hit@1 that one answer can get.

    A retriever sees the text alone, so it gives queries of equal text one first hit; that hit is right for the queries
    that have it as gold. Equal documents count as one: groups is (R,), that of each gold document.
    """
    first = np.flatnonzero(stretch_starts(gold.queries))  # of each query's judgements
    asked = np.bincount(gold.texts[first])
    own = _pairs(gold.queries, groups)
    reached = own.sums(gold.reachable) > 0
    answers = _pairs(gold.texts[own.first], groups[own.first])
    agreeing = answers.sums()
    conflicting = np.unique(answers.left[agreeing < asked[answers.left]])
    return {
        "duplicate_query_groups": int((asked > 1).sum()),
        "conflicting_query_groups": len(conflicting),
        "best_reachable_hit@1": _sum_of_best(answers.left, answers.sums(reached)) / len(first) if len(first) else 0.0,
    }


def _ceiling(gold: _Gold, groups: np.ndarray, sizes: np.ndarray) -> dict[str, float]:
    """The best hit@1 and ndcg@10 of one ranking a query text, strict and expected.

    Groups of equal documents are ranked by what a member is worth on average to all queries of the text. No other
    ranking is expected to score more. The strict ndcg is that of the same ranking; where gold lies in several groups of
    different sizes, another could be a little luckier. Gold that its query excludes is worth nothing; what else a query
    excludes is ranked like the rest.
    """
    discounts = 1 / np.log2(ordinals(gold.queries) + 1)
    ideal = np.bincount(gold.queries, gold.grades * discounts * (ordinals(gold.queries) <= CUTOFF))
    answered = max(int((ideal > 0).sum()), 1)
    worth = gold.reachable * gold.grades / ideal[gold.queries] / answered if len(gold.rows) else gold.grades
    place = _places_within(groups)[gold.rows]
    pairs = _pairs(gold.texts, groups[gold.rows])
    size = sizes[pairs.right]
    order = np.lexsort((pairs.right, -pairs.sums(worth) / size, pairs.left))
    above = np.empty(len(order), np.int64)
    above[order] = _running_within(pairs.left[order], size[order])
    before, size_here = above[pairs.of], size[pairs.of]
    single, everywhere = before + place, mean_discounts(before + 1, before + size_here, CUTOFF)
    leading = (place == 1) & (gold.reachable > 0)
    hits = _pairs(gold.texts[leading], gold.rows[leading])
    return {
        f"ceiling_ndcg@{CUTOFF}": float(np.sum(worth * mean_discounts(single, single, CUTOFF))),
        f"ceiling_ndcg@{CUTOFF}-expected": float(np.sum(worth * everywhere)),
        "ceiling_hit@1": _sum_of_best(hits.left, hits.sums()) / answered,
        "ceiling_hit@1-expected": _sum_of_best(pairs.left, pairs.sums(gold.reachable / size_here)) / answered,
    }


@dataclass(frozen=True)
class _Pairs:
    """The distinct pairs of two columns, ascending; first (G,) is a line of each, of (R,) the pair of each line."""

    left: np.ndarray
    right: np.ndarray
    first: np.ndarray
    of: np.ndarray

    def sums(self, amounts: np.ndarray | None = None) -> np.ndarray:
        """(G,) float64: the sum of amounts (R,) over each pair's lines, by default their number."""
        return np.bincount(self.of, amounts, minlength=len(self.left)).astype(np.float64)


def _pairs(left: np.ndarray, right: np.ndarray) -> _Pairs:
    order = np.lexsort((right, left))
    starts = stretch_starts(left[order], right[order])
    first = order[starts]
    of = np.empty(len(order), np.int64)
    of[order] = np.cumsum(starts) - 1
    return _Pairs(left[first], right[first], first, of)


def _places_within(groups: np.ndarray) -> np.ndarray:
    """(N,) int64: 1 for the first row of its group, 2 for the second: the order in which equal scores rank."""
    order = np.argsort(groups, kind="stable")
    places = np.empty(len(groups), np.int64)
    places[order] = ordinals(groups[order])
    return places


def _running_within(sorted_values: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """Sum of the amounts before each line within its stretch of equal values."""
    running = np.cumsum(amounts) - amounts
    return running - running[np.maximum.accumulate(np.where(stretch_starts(sorted_values), np.arange(len(running)), 0))]


def _sum_of_best(sorted_values: np.ndarray, amounts: np.ndarray) -> float:
    """The largest amount of each stretch of equal values, summed up."""
    starts = np.flatnonzero(stretch_starts(sorted_values))
    return float(np.maximum.reduceat(amounts, starts).sum()) if len(starts) else 0.0
