"""A run held against a dataset's judgements: one value a query and metric.

A benchmark names what is computed. Most metrics are of the ranking: those of `measures.py`, with a cutoff or without,
and with the endings of `ranking.py`, so that `ndcg@10-expected` stands beside `ndcg@10` where both are named.
`mrr-1000` and `mrr-1000-paper` are of a block (`blocks.py`), whose run names every document. Where documents are equal,
every ranking metric gets a `-folded` twin in which they are one item, unasked. `relative-rank` and
`budget-recall@1024` are of what has to be gone through (`reach.py`). Beside each ranking metric that is not folded
stands what a random order of the corpus would score (`chance.py`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coderet.metrics import blocks, ranking, reach, significance
from coderet.metrics.chance import chance
from coderet.metrics.needles import pieces
from coderet.metrics.significance import Resampled
from coderet.records import NO_HIT, DataError, Dataset, Run

BLOCK_METRICS = ("mrr-1000", "mrr-1000-paper")


@dataclass(frozen=True)
class Scorecard:
    """values[name] is (S,) float64, one number for each of the query_ids, all of which have a relevant document.

    counts tells how many queries were left out or counted as nothing, and why (`ranking.Counts`). random is the mean
    over the same queries that a random order would have, for metrics where it is known. apart: of a mixture of other
    datasets, which is in no mean with them. ranks: of the relevant documents, if `relative-rank` was asked for.
    """

    query_ids: pa.ChunkedArray
    values: dict[str, np.ndarray]
    counts: dict[str, int]
    random: dict[str, float] = field(default_factory=dict)
    apart: bool = False
    ranks: reach.Ranks | None = None


def score(dataset: Dataset, run: Run, metrics: Sequence[str], groups: np.ndarray | None = None) -> Scorecard:
    """The scorecard of a run; groups is (N,), the group of each document, or None if no two documents are equal.

    DataError if the run is on another corpus, or is cut before a metric's cutoff: recall@100 of 50 hits is recall@50.
    """
    if run.corpus.digest != dataset.corpus.digest:
        raise DataError(f"the run is on corpus {run.corpus.name}, the dataset on {dataset.corpus.name}; search again")
    ids = dataset.queries.ids
    places = _places(run.query_ids, ids)
    table = dataset.qrels.table
    judgements = ranking.Judgements(
        _places(table["query_id"], ids),
        dataset.corpus.rows_of(table["document_id"]),
        table["grade"].to_numpy().astype(np.float64),
        len(ids),
    )
    ranked = [name for name in metrics if name not in BLOCK_METRICS and not reach.is_reach(name)]
    cut = run.depth < len(run.corpus) and bool((run.rows[:, -1] != NO_HIT).any())
    for name in ranked:
        if cut and (ranking.parse(name).cutoff or 0) > run.depth:
            raise DataError(
                f"{name} of {dataset.name} wants more hits a query than the {run.depth} that the run was cut at; raise "
                "the benchmark's depth in params.yaml (of a reranked run, keep what is below), or take another metric"
            )
    floors = [each for each in ranked if not each.endswith("-folded") and not (cut and each.startswith("bpref"))]
    if groups is not None:
        ranked = list(dict.fromkeys(ranked + [f"{name.removesuffix('-folded')}-folded" for name in ranked]))
    else:
        groups = np.arange(len(run.corpus))  # for a folded metric that is asked for by name
    evaluation = ranking.evaluate(places, run.rows, run.scores, judgements, ranked, groups)
    counts = evaluation.counts if cut else replace(evaluation.counts, cut_in_tie=0)  # a whole run hides no ties
    by_chance = chance(judgements, len(run.corpus), floors, run.depth if cut else None, dataset.exclusions)
    random = {name: float(each.mean()) for name, each in by_chance.items() if len(each)}
    values = dict(evaluation.values)
    ranks = None
    if any(map(reach.is_reach, metrics)):
        ranks, found, floor = _reach(dataset, run, places, judgements, metrics, cut)
        values, random = values | found, random | floor
    if set(BLOCK_METRICS) & set(metrics):
        by_query, by_document = _block(run, places, judgements)
        both = dict(zip(BLOCK_METRICS, (by_query, by_document), strict=True))
        values |= {name: both[name] for name in metrics if name in both}
    scored = ids.take(pa.array(evaluation.queries))
    return Scorecard(scored, values, asdict(counts), random, bool(dataset.mixed_of), ranks)


def of_problems(ids: Sequence[str], values: Mapping[str, np.ndarray], counts: Mapping[str, int]) -> Scorecard:
    """The scorecard of answers: one value a problem and metric."""
    return Scorecard(pa.chunked_array([pa.array(ids, pa.large_string())]), dict(values), dict(counts))


def part(card: Scorecard, ids: Collection[str]) -> Scorecard:
    """The same of some of its queries."""
    return where(card, np.array([each in ids for each in card.query_ids.to_pylist()], bool))


def where(card: Scorecard, kept: np.ndarray) -> Scorecard:
    """The same of the queries for which kept (Q,) is true."""
    values = {metric: each[kept] for metric, each in card.values.items()}
    return Scorecard(card.query_ids.filter(pa.array(kept)), values, card.counts, apart=card.apart)


def _places(some: pa.ChunkedArray, ids: pa.ChunkedArray) -> np.ndarray:
    found = pc.index_in(some, value_set=ids.combine_chunks())
    return pc.fill_null(found, -1).to_numpy().astype(np.int64)


def _reach(
    dataset: Dataset, run: Run, places: np.ndarray, judgements: ranking.Judgements, metrics: Sequence[str], cut: bool
) -> tuple[reach.Ranks, dict[str, np.ndarray], dict[str, float]]:
    """The ranks, and values and floors of the metrics that are of what has to be gone through."""
    lines = np.full(judgements.query_count, -1)
    lines[places[places >= 0]] = np.flatnonzero(places >= 0)
    queries, hidden = dataset.exclusions
    candidates = np.full(judgements.query_count, len(run.corpus))
    candidates -= np.bincount(queries, minlength=judgements.query_count)
    ranks = reach.ranks(lines, run.rows, run.scores, judgements, candidates)
    values, random = {}, {}
    if reach.RELATIVE_RANK in metrics:
        values[reach.RELATIVE_RANK] = ranks.relative
        random[reach.RELATIVE_RANK] = float(np.mean(ranks.random_relative))
    budgets = {name: each for name in metrics if (each := reach.budget(name))}
    if budgets:
        texts = dataset.corpus.texts(("title", "text"))
        tokens = np.array([pieces(text) for text in texts.to_pylist()], np.int64)
        sizes = list(budgets.values())
        found = reach.within(lines, run.rows, run.scores, judgements, tokens, sizes, cut)
        floor = reach.random_within(judgements, tokens, sizes, (queries, hidden))
        values |= {name: found[:, column] for column, name in enumerate(budgets)}
        random |= {name: float(floor[:, column].mean()) for column, name in enumerate(budgets)}
    return ranks, values, random


def _block(run: Run, places: np.ndarray, judgements: ranking.Judgements) -> tuple[np.ndarray, np.ndarray]:
    """Reciprocal ranks of a block, in the order of its queries; the run may answer them in any order."""
    if sorted(places.tolist()) != list(range(judgements.query_count)):
        raise DataError(
            f"the run of a block must answer each of its {judgements.query_count} queries once; search again"
        )
    gold = np.full(judgements.query_count, -1, np.int64)
    gold[judgements.queries] = judgements.rows
    order = np.argsort(places)
    return blocks.block_reciprocal_ranks(run.rows[order], run.scores[order], gold)


def summary(
    cards: Mapping[str, Scorecard],
    mean: Literal["queries", "datasets"],
    resamples: int,
    level: float,
    seed: int,
    resampled: Resampled = "queries",
) -> dict[str, Any]:
    """The means of scorecards with their bootstrap intervals: of each dataset, and over all that have the metric.

    mean: `queries` weighs every query alike, `datasets` every dataset; those that stand apart are in neither. A
    figure's `random` is the score of a random order, absent where it is not known. resampled: what the intervals are
    drawn of (`significance.interval`). `ranks`, where they were asked for, are told by their median over all queries.
    DataError if metrics were asked for and no query of any dataset has a relevant document, for then there is nothing
    to take a mean of.
    """
    judged = {name: card for name, card in cards.items() if len(card.query_ids)}
    if not judged and any(card.values for card in cards.values()):
        raise DataError(f"no query of {', '.join(cards)} has a relevant document; check that the qrels belong to them")

    def figure(values: Sequence[np.ndarray]) -> dict[str, float]:
        low, high = significance.interval(values, resamples, level, seed, resampled)
        return {"value": float(np.mean([np.mean(each) for each in values])), "low": low, "high": high}

    def floor(metric: str, known: Sequence[Scorecard]) -> dict[str, float]:
        if not all(metric in card.random for card in known):
            return {}
        weights = [len(card.query_ids) for card in known] if mean == "queries" else None
        return {"random": float(np.average([card.random[metric] for card in known], weights=weights))}

    by_metric: dict[str, list[Scorecard]] = {}
    for card in judged.values():
        for metric in () if card.apart else card.values:
            by_metric.setdefault(metric, []).append(card)
    return {
        "datasets": {
            name: {
                "metrics": {metric: figure([values]) | floor(metric, [card]) for metric, values in card.values.items()}
                if name in judged
                else {},
                "queries": len(card.query_ids),
                "counts": card.counts,
            }
            | ({"apart": True} if card.apart else {})
            | ({"ranks": _medians([card.ranks])} if card.ranks else {})
            for name, card in cards.items()
        },
        "all": {
            metric: figure(_joined([card.values[metric] for card in known], mean))
            | {"queries": sum(len(card.query_ids) for card in known), "datasets": len(known)}
            | floor(metric, known)
            for metric, known in by_metric.items()
        },
        **({"ranks": _medians(ranked)} if (ranked := [each.ranks for each in judged.values() if each.ranks]) else {}),
    }


def _medians(ranks: Sequence[reach.Ranks]) -> dict[str, float]:
    """Over all queries: the median rank, that of a random order, and the median of their candidates."""
    columns = {
        name: np.concatenate([getattr(each, name) for each in ranks]) for name in ("found", "random", "candidates")
    }
    return {"median" if name == "found" else name: float(np.median(each)) for name, each in columns.items()}


def _joined(values: list[np.ndarray], mean: Literal["queries", "datasets"]) -> list[np.ndarray]:
    return [np.concatenate(values)] if mean == "queries" else values
