"""How far down a ranking one goes until the needle is met: in documents, and in tokens that a reader would read.

- `relative-rank`: (rank - 1) / (candidates - 1) of the first relevant document, so that rankings of unlike length
  compare: 0 is the first, 1 the last, 0.5 a random order's. `rank` itself is told by its median.
- `budget-recall@2048`: whether the first relevant document stands whole among the first hits that have so many tokens
  together. The first hit that does not fit ends them, as a prompt would end. Equal scores stand as the rule has them.

A rank is the expectation over all orders of equal scores. What a run does not name stands behind its hits, in any
order, all equally likely: that is so of a run as deep as its corpus; of one that was cut it is the middle of what may
be. Tokens are `needles.pieces` of title and text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coderet.metrics.measures import Ranking, stretch_starts
from coderet.metrics.ranking import Judgements, find, rank
from coderet.records import DataError

RELATIVE_RANK = "relative-rank"
ORDERS = 100  # that are drawn for the chance level of a budget; the needle's own place in each is summed over


def budget(name: str) -> int | None:
    """The tokens of `budget-recall@1024`; None for another metric."""
    found = re.fullmatch(r"budget-recall@([1-9]\d*)", name)
    return int(found[1]) if found else None


def is_reach(name: str) -> bool:
    """Whether a metric is one of this module's."""
    return name == RELATIVE_RANK or budget(name) is not None


@dataclass(frozen=True)
class Ranks:
    """Of each query with a relevant document: its expected rank, a random order's, and of how many candidates."""

    found: np.ndarray  # (S,) float64, from 1
    random: np.ndarray  # (S,) float64
    candidates: np.ndarray  # (S,) int64

    @property
    def relative(self) -> np.ndarray:
        return _relative(self.found, self.candidates)

    @property
    def random_relative(self) -> np.ndarray:
        return _relative(self.random, self.candidates)


def _relative(ranks: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    return (ranks - 1) / np.maximum(1, candidates - 1)


def ranks(
    lines: np.ndarray, rows: np.ndarray, scores: np.ndarray, judgements: Judgements, candidates: np.ndarray
) -> Ranks:
    """lines is (Q,): the line of the run that answers each query, -1 for none. candidates is (Q,): the documents that
    each may hit. rows and scores are the run's, as `ranking.evaluate` has them."""
    queries = np.flatnonzero(judgements.relevant_counts)
    relevant, room = judgements.relevant_counts[queries], candidates[queries]
    hits, found = _behind(lines, rows, scores, queries, judgements)
    expected = hits + 1 + (room - hits - relevant) / (relevant + 1)
    leading = found.where(stretch_starts(found.queries))
    of_query = np.searchsorted(leading.queries, found.queries)
    sharing = np.bincount(of_query, found.firsts == leading.firsts[of_query], len(leading.queries))
    tied = leading.lasts - leading.firsts + 1
    expected[np.searchsorted(queries, leading.queries)] = leading.firsts + (tied - sharing) / (sharing + 1)
    return Ranks(expected, 1 + (room - relevant) / (relevant + 1), room)


def _behind(
    lines: np.ndarray, rows: np.ndarray, scores: np.ndarray, queries: np.ndarray, judgements: Judgements
) -> tuple[np.ndarray, Ranking]:
    """The number of each query's hits, and the relevant ones with their ties."""
    answered = queries[lines[queries] >= 0]
    ranked = rank(rows[lines[answered]], scores[lines[answered]])
    hits = np.zeros(len(queries), np.int64)
    hits[np.searchsorted(queries, answered)] = (ranked[0] >= 0).sum(axis=1)
    found = find(answered, *ranked, judgements)
    return hits, found.where(found.grades > 0)


def within(
    lines: np.ndarray,
    rows: np.ndarray,
    scores: np.ndarray,
    judgements: Judgements,
    tokens: np.ndarray,
    budgets: Sequence[int],
    cut: bool = False,
) -> np.ndarray:
    """(S, B) float64, 1 where the first relevant document is read within a budget. tokens is (N,), of each document.

    cut: whether the run ends before its corpus. DataError if a budget goes on where such a run ends.
    """
    queries = np.flatnonzero(judgements.relevant_counts)
    reached = np.zeros((len(queries), len(budgets)))
    for place, query in enumerate(queries.tolist()):
        if lines[query] < 0:
            continue
        ranked, _ = rank(rows[[lines[query]]], scores[[lines[query]]])
        hits = ranked[0][ranked[0] >= 0]
        spent = np.cumsum(tokens[hits])
        at, grades = judgements.grades_of(np.full(len(hits), query), hits)
        at = at[grades > 0]
        if len(at):
            reached[place] = spent[at.min()] <= np.asarray(budgets)
        elif cut and len(hits) == rows.shape[1] and (short := [each for each in budgets if each > spent[-1]]):
            raise DataError(
                f"budget-recall@{short[0]} wants the first hits that have {short[0]} tokens together, and a query's "
                f"{len(hits)} hits have {spent[-1]}; raise the benchmark's depth in params.yaml"
            )
    return reached


def random_within(
    judgements: Judgements,
    tokens: np.ndarray,
    budgets: Sequence[int],
    excluded: tuple[np.ndarray, np.ndarray] | None = None,
    seed: int = 0,
) -> np.ndarray:
    """(S, B) float64: how likely a random order of the candidates reads a relevant document within each budget.

    The other documents are drawn in ORDERS orders; the place of the first relevant one among them is summed over in
    closed form, so that rare chances are told, too.
    """
    queries = np.flatnonzero(judgements.relevant_counts)
    orders = np.random.default_rng(seed).permuted(np.tile(np.arange(len(tokens)), (ORDERS, 1)), axis=1)
    found = np.zeros((len(queries), len(budgets)))
    for place, query in enumerate(queries.tolist()):
        gold = judgements.rows[(judgements.queries == query) & (judgements.grades > 0)]
        other = np.ones(len(tokens), bool)
        other[gold] = False
        if excluded is not None:
            other[excluded[1][excluded[0] == query]] = False
        drawn = tokens[orders[other[orders]].reshape(ORDERS, -1)]
        before = np.concatenate([np.zeros((ORDERS, 1), np.int64), np.cumsum(drawn, axis=1)], axis=1)
        chances = _first_places(int(other.sum()), len(gold))
        for column, each in enumerate(budgets):
            fits = before[None] + tokens[gold][:, None, None] <= each
            found[place, column] = float((fits @ chances).mean())
    return found


def _first_places(others: int, relevant: int) -> np.ndarray:
    """(others + 1,): how likely so many of the others stand before the first relevant one."""
    documents = others + relevant
    before = np.arange(others)
    steps = (documents - before - relevant) / np.maximum(1, documents - before - 1)
    return np.asarray(relevant / documents * np.append(1.0, np.cumprod(steps)))
