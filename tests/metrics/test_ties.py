"""Rows stand in descending document id, so of equal scores the lower row ranks first in the strict reading."""

import itertools
import math
import time

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from coderet.metrics import ties
from coderet.metrics.measures import METRICS
from coderet.metrics.ranking import Judgements, evaluate

NAMES = [f"{kind}{cutoff}" for kind in METRICS for cutoff in ("", "@1", "@3") if kind + cutoff[:1] != "bpref@"]


def judged(grades: dict[int, float], queries: int = 1) -> Judgements:
    """The same judgements for each of the queries."""
    lines = np.repeat(np.arange(queries), len(grades))
    return Judgements(lines, np.tile(list(grades), queries), np.tile(list(grades.values()), queries), queries)


def scored(hits: dict[int, float], grades: dict[int, float], names: list[str], groups=None, depth=None):
    """Evaluation of one query with these hits, row -> score."""
    depth = depth or len(hits)
    rows, scores = np.full((1, depth), -1), np.full((1, depth), -np.inf, dtype=np.float32)
    rows[0, : len(hits)], scores[0, : len(hits)] = list(hits), list(hits.values())
    return evaluate(np.array([0]), rows, scores, judged(grades), names, groups)


def values(hits, grades, names, groups=None, depth=None) -> list[float]:
    evaluation = scored(hits, grades, names, groups, depth)
    return [evaluation.mean(name) for name in names]


def values_of_every_order(hits: dict[int, float], grades: dict[int, float], names: list[str]) -> np.ndarray:
    """(orders, names): the hits with their ties broken in each way there is, groups in place, no two scores equal."""
    falling = sorted(hits.values(), reverse=True)
    orders = np.array([each for each in itertools.permutations(hits) if [hits[row] for row in each] == falling])
    scores = np.broadcast_to(-np.arange(len(hits), dtype=np.float32), orders.shape)
    evaluation = evaluate(np.arange(len(orders)), orders, scores, judged(grades, len(orders)), names)
    return np.stack([evaluation.values[name] for name in names], axis=1)


def test_a_gold_document_that_loses_to_its_copy_has_two_thirds_strictly_and_more_on_average():
    """The case of the benchmark in which 94 % of all test texts stand in the corpus twice."""
    names = ["ndcg@10", "ndcg@10-expected", "ndcg@10-best", "ndcg@10-worst", "hit@1", "hit@1-expected", "mrr-expected"]
    copy, gold, other = 3, 4, 5
    found = values({copy: 0.9, gold: 0.9, other: 0.1}, {gold: 1}, names)
    assert found == pytest.approx([1 / math.log2(3), (1 + 1 / math.log2(3)) / 2, 1, 1 / math.log2(3), 0, 1 / 2, 3 / 4])
    assert found[0] == pytest.approx(0.631, abs=5e-4)
    assert found[1] == pytest.approx(0.8155, abs=5e-5)


def test_the_first_of_two_relevant_documents_among_three_is_first_in_two_of_three_orders():
    names = ["mrr-expected", "hit@1-expected", "precision@2-expected", "map-expected"]
    mrr, hit, precision, average = values({1: 1, 2: 1, 3: 1}, {2: 1, 3: 1}, names)
    assert mrr == pytest.approx((2 * 1 + 1 / 2) / 3)
    assert hit == pytest.approx(2 / 3)
    assert precision == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert average == pytest.approx(((1 + 1) / 2 + (1 + 2 / 3) / 2 + (1 / 2 + 2 / 3) / 2) / 3)


def runs() -> st.SearchStrategy[dict[int, float]]:
    return st.dictionaries(st.integers(0, 7), st.sampled_from([0.0, 0.25, 7.0]), min_size=1, max_size=6)


def grades() -> st.SearchStrategy[dict[int, float]]:
    some = st.dictionaries(st.integers(0, 9), st.sampled_from([-1, 0, 1 / 3, 1, 2, 3]), min_size=1, max_size=6)
    return some.filter(lambda found: max(found.values()) > 0)


@settings(max_examples=150, deadline=None)
@given(runs(), grades())
def test_expectation_best_and_worst_are_those_of_all_orders(hits, judgements):
    by_order = values_of_every_order(hits, judgements, NAMES)
    endings = {
        ending: values(hits, judgements, [f"{name}-{ending}" for name in NAMES])
        for ending in ("expected", "best", "worst")
    }
    for place, name in enumerate(NAMES):
        assert endings["expected"][place] == pytest.approx(by_order[:, place].mean(), abs=1e-12), name
        assert endings["best"][place] == pytest.approx(by_order[:, place].max(), abs=1e-12), name
        assert endings["worst"][place] == pytest.approx(by_order[:, place].min(), abs=1e-12), name


@settings(max_examples=30, deadline=None)
@given(runs(), grades(), st.lists(st.integers(0, 4), min_size=10, max_size=10))
def test_folding_comes_first_and_the_orders_are_those_of_items(hits, judgements, groups):
    items: dict[int, float] = {}
    for row, score in hits.items():
        items[groups[row]] = max(items.get(groups[row], -1), score)
    folded: dict[int, float] = {}
    for row, grade in judgements.items():
        folded[groups[row]] = max(folded.get(groups[row], -1), grade)
    for ending in ("expected", "best", "worst"):
        ours = values(hits, judgements, [f"{name}-{ending}-folded" for name in NAMES], np.array(groups))
        wanted = values(items, folded, [f"{name}-{ending}" for name in NAMES])
        assert ours == pytest.approx(wanted, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(runs(), grades())
def test_the_strict_score_is_trec_evals_and_lies_between_worst_and_best(hits, judgements):
    whole = {row: int(np.ceil(grade)) for row, grade in judgements.items() if grade >= 0}
    ours = {"ndcg@3": "ndcg_cut_3", "map": "map", "mrr": "recip_rank", "recall@3": "recall_3", "hit@1": "success_1"}
    evaluator = pytrec_eval.RelevanceEvaluator(
        {"q": {f"d{9 - row}": grade for row, grade in whole.items()}}, set(ours.values())
    )
    theirs = evaluator.evaluate({"q": {f"d{9 - row}": score for row, score in hits.items()}})["q"]
    for name, measure in ours.items():
        low, strict, high = values(hits, whole, [f"{name}-worst", name, f"{name}-best"])
        assert strict == pytest.approx(theirs[measure], abs=1e-6)
        assert low <= strict <= high


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(6)), grades())
def test_without_ties_all_readings_are_the_strict_one(order, judgements):
    hits = {row: float(-place) for place, row in enumerate(order)}
    strict = values(hits, judgements, NAMES)
    for ending in ("expected", "best", "worst"):
        assert values(hits, judgements, [f"{name}-{ending}" for name in NAMES]) == pytest.approx(strict, abs=1e-15)


def test_scores_tie_in_single_precision():
    names = ["hit@1-expected"]
    assert values({1: 0.5, 2: 0.5 + 1e-10}, {1: 1}, names) == [1 / 2]
    assert values({1: 0.5, 2: 0.5 + 1e-7}, {1: 1}, names) == [0]


def test_a_tie_group_at_the_end_of_a_full_line_is_counted_for_more_of_it_may_be_unseen():
    tied = {1: 0.9, 2: 0.5, 3: 0.5}
    assert scored(tied, {1: 1}, ["mrr"]).counts.cut_in_tie == 1
    assert scored(tied, {1: 1}, ["mrr"], depth=4).counts.cut_in_tie == 0  # there were no more hits
    assert scored({1: 0.9, 2: 0.9, 3: 0.5}, {1: 1}, ["mrr"]).counts.cut_in_tie == 0


def test_a_query_without_a_hit_or_missing_has_nothing_in_each_reading():
    names = [f"{name}-{ending}" for name in NAMES for ending in ("expected", "best", "worst") if "reranked" not in name]
    assert set(values({}, {1: 1}, names, depth=2)) == {0}


def test_every_metric_has_an_expectation():
    assert list(ties.EXPECTED) == list(METRICS)


def test_the_expectation_over_large_groups_of_many_queries_costs_little():
    random = np.random.default_rng(0)
    queries, depth = 4_000, 100
    rows = np.argsort(random.random((queries, 2 * depth)), axis=1)[:, :depth]
    scores = random.integers(0, 5, (queries, depth)).astype(np.float32)
    lines = np.repeat(np.arange(queries), 3)
    judgements = Judgements(lines, rows[:, :3].ravel(), np.ones(3 * queries), queries)
    names = [f"{name}-expected" for name in NAMES]
    start = time.perf_counter()
    evaluation = evaluate(np.arange(queries), rows, scores, judgements, names)
    assert time.perf_counter() - start < 5  # a fifth of a second; in a loop over orders it would never end
    assert 0 < evaluation.mean("mrr-expected") < 1
