import numpy as np
import pytest
from small_runs import corpus, dataset, run

from coderet.metrics import reach, scorecards
from coderet.metrics.needles import pieces
from coderet.metrics.ranking import Judgements
from coderet.records import DataError, Queries, queries_table

FOUR = corpus("d1", "d2", "d3", "d4")


def card(gold, hits, metrics=("mrr", "relative-rank"), documents=FOUR, depth=4):
    return scorecards.score(dataset(documents, list(gold), gold), run(documents, hits, depth), metrics)


def test_the_rank_is_that_of_the_first_relevant_document():
    found = card({"q": {"d1": 1, "d2": 1}}, {"q": {"d3": 3.0, "d2": 2.0, "d1": 1.0}})
    assert found.ranks.found.tolist() == [2.0] and found.values["relative-rank"].tolist() == [pytest.approx(1 / 3)]


def test_among_equal_scores_it_is_expected_over_their_orders():
    assert card({"q": {"d1": 1}}, {"q": {"d1": 1.0, "d2": 1.0, "d3": 1.0}}).ranks.found.tolist() == [2.0]
    # of three equal ones two are relevant: the first of these is at 1 in two thirds of the orders, else at 2
    both = card({"q": {"d1": 1, "d2": 1}}, {"q": {"d1": 1.0, "d2": 1.0, "d3": 1.0}})
    assert both.ranks.found.tolist() == [pytest.approx(4 / 3)]


def test_what_is_no_hit_comes_behind_in_any_order():
    found = card({"q": {"d1": 1}, "r": {"d1": 1}, "s": {"d2": 1}}, {"q": {"d4": 1.0}, "r": {}})
    assert found.ranks.found.tolist() == [3.0, 2.5, 2.5]  # of ranks 2 to 4; of all; of a query that the run lacks


def test_a_random_order_s_rank_is_the_middle():
    found = card({"q": {"d1": 1}, "r": {"d1": 1, "d2": 1}}, {"q": {}, "r": {}})
    assert found.ranks.random.tolist() == [2.5, pytest.approx(5 / 3)]
    assert found.random["relative-rank"] == pytest.approx((1.5 / 3 + 2 / 9) / 2)


def test_what_a_query_excludes_is_no_candidate():
    judged = dataset(FOUR, ["q"], {"q": {"d1": 1}})
    object.__setattr__(judged, "queries", Queries(queries_table(["q"], ["q"], excluded=[["d3", "d4"]])))
    found = scorecards.score(judged, run(FOUR, {"q": {"d2": 2.0, "d1": 1.0}}, 4), ["relative-rank", "budget-recall@9"])
    assert found.ranks.candidates.tolist() == [2] and found.values["relative-rank"].tolist() == [1.0]


def test_a_budget_is_spent_from_the_first_hit_on_and_the_needle_counts_if_it_is_whole_in_it():
    # every document has its id as its text, of two pieces
    assert pieces("d1") == 2
    hits = {"q": {"d2": 2.0, "d1": 1.0}}
    found = card({"q": {"d1": 1}}, hits, ("mrr", "budget-recall@3", "budget-recall@4"))
    assert [found.values[f"budget-recall@{size}"].tolist() for size in (3, 4)] == [[0.0], [1.0]]


def test_a_random_order_reads_the_needle_as_often_as_all_orders_say():
    tokens = np.array([1, 2, 3])
    judged = Judgements(np.array([0]), np.array([2]), np.array([1.0]), 1)
    # needle of 3 first: 2 of 6 orders; behind 1: 1 + 3 = 4; behind 2: 5; behind both: 6
    chance = reach.random_within(judged, tokens, [2, 3, 4, 5, 6])
    assert chance[0] == pytest.approx([0, 1 / 3, 1 / 2, 2 / 3, 1], abs=0.06)
    assert chance[0][[0, 1, 4]] == pytest.approx([0, 1 / 3, 1])  # these are exact
    two = Judgements(np.array([0, 0]), np.array([1, 2]), np.ones(2), 1)
    assert reach.random_within(two, np.array([9, 1, 1]), [1, 10])[0] == pytest.approx([2 / 3, 1])


def test_a_run_that_was_cut_before_the_budget_is_spent_is_refused():
    with pytest.raises(DataError, match=r"budget-recall@9 wants the first hits that have 9 tokens together, and .* 2"):
        card({"q": {"d1": 1}}, {"q": {"d2": 2.0}}, ("mrr", "budget-recall@9"), depth=1)


def test_the_median_rank_stands_beside_the_means():
    gold = {"q": {"d1": 1}, "r": {"d1": 1}, "s": {"d1": 1}}
    hits = {"q": {"d1": 1.0}, "r": {"d2": 2.0, "d1": 1.0}, "s": {"d1": 1.0}}
    told = scorecards.summary({"d": card(gold, hits)}, "datasets", 10, 0.95, 0)
    assert told["ranks"] == told["datasets"]["d"]["ranks"] == {"median": 1.0, "random": 2.5, "candidates": 4.0}


def test_pieces_are_words_digits_marks_and_indented_lines():
    assert pieces("getValue2(x_y)\n    pass") == len(["get", "Value", "2", "(", "x", "_", "y", ")", "\n    ", "pass"])
    assert pieces("") == 0


def test_whole_datasets_are_resampled_where_their_queries_depend_on_each_other():
    from coderet.metrics.significance import interval

    alike = [np.array([0.0, 1.0] * 20), np.array([1.0, 0.0] * 20)]
    assert interval(alike, resampled="datasets") == (0.5, 0.5)  # the two have one mean
    assert interval(alike)[0] < 0.5 < interval(alike)[1]
    apart = [np.zeros(40), np.ones(40)]
    assert interval(apart, resampled="datasets") == (0.0, 1.0) and interval(apart) == (0.5, 0.5)
    assert interval(alike[:1], resampled="datasets") == interval(alike[:1])
