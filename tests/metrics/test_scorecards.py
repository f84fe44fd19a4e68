from dataclasses import replace

import numpy as np
import pytest
from small_runs import corpus, dataset, run

from coderet.metrics import scorecards
from coderet.records import DataError, Queries, queries_table


def test_only_queries_with_a_relevant_document_are_in_the_mean():
    documents = corpus("d1", "d2", "d3", "d4")
    judged = dataset(
        documents, ["q1", "q2", "q3", "q4", "q5"], {"q1": {"d1": 1}, "q2": {"d2": 1}, "q3": {"d3": 1}, "q4": {"d4": 0}}
    )
    hits = run(documents, {"q1": {"d1": 1.0}, "q2": {}, "q9": {"d1": 1.0}})
    card = scorecards.score(judged, hits, ["ndcg@10"])
    assert card.query_ids.to_pylist() == ["q1", "q2", "q3"]
    assert card.values["ndcg@10"].tolist() == [1.0, 0.0, 0.0]
    assert (card.counts["without_relevant"], card.counts["missing"], card.counts["unknown"]) == (2, 1, 1)
    figure = scorecards.summary({"d": card}, "queries", 500, 0.95, 0)["all"]["ndcg@10"]
    assert figure["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_a_scorer_that_gives_all_documents_one_score_is_judged_alike_in_every_order(order):
    documents = corpus(*"abc")
    hits = run(documents, {"q": dict.fromkeys(order, 0.5)})
    card = scorecards.score(dataset(documents, ["q"], {"q": {"a": 1}}), hits, ["mrr", "ndcg@10", "hit@1"])
    assert card.values["mrr"][0] == pytest.approx(1 / 3)
    assert card.values["ndcg@10"][0] == pytest.approx(0.5)
    assert card.values["hit@1"][0] == 0
    assert card.counts["gold_in_tie"] == 1


def test_equal_documents_count_as_one_in_the_folded_score_only():
    documents = corpus("t1", "t2", "t9")  # rows: t9 0, t2 1, t1 2; t1 and t9 have equal text
    hits = run(documents, {"q": {"t9": 0.5, "t1": 0.5, "t2": 0.1}})
    gold_low = scorecards.score(dataset(documents, ["q"], {"q": {"t1": 1}}), hits, ["hit@1"], np.array([0, 1, 0]))
    assert (gold_low.values["hit@1"][0], gold_low.values["hit@1-folded"][0]) == (0, 1)
    gold_high = scorecards.score(dataset(documents, ["q"], {"q": {"t9": 1}}), hits, ["hit@1"], np.array([0, 1, 0]))
    assert (gold_high.values["hit@1"][0], gold_high.values["hit@1-folded"][0]) == (1, 1)


def test_readings_over_the_orders_of_a_tie_stand_beside_the_strict_score_where_they_are_named():
    documents = corpus("t1", "t2", "t9")
    hits = run(documents, {"q": {"t9": 0.5, "t1": 0.5, "t2": 0.1}})
    names = ["ndcg@10", "ndcg@10-expected", "ndcg@10-best", "ndcg@10-worst"]
    card = scorecards.score(dataset(documents, ["q"], {"q": {"t1": 1}}), hits, names, np.array([0, 1, 0]))
    second = 1 / np.log2(3)
    assert [card.values[name][0] for name in names] == pytest.approx([second, (1 + second) / 2, 1, second])
    assert [card.values[f"{name}-folded"][0] for name in names] == [1, 1, 1, 1]
    assert len(card.values) == 2 * len(names)


def test_a_folded_metric_may_be_named_whether_documents_are_equal_or_not():
    documents = corpus("a", "b")
    judged, hits = dataset(documents, ["q"], {"q": {"a": 1}}), run(documents, {"q": {"b": 0.9, "a": 0.8}}, depth=2)
    assert scorecards.score(judged, hits, ["mrr-folded"]).values["mrr-folded"].tolist() == [1 / 2]
    assert set(scorecards.score(judged, hits, ["mrr", "mrr-folded"], np.zeros(2, int)).values) == {"mrr", "mrr-folded"}


def test_a_tie_at_the_end_of_a_run_hides_others_only_if_the_run_is_cut():
    documents = corpus("a", "b", "c")
    judged = dataset(documents, ["q"], {"q": {"a": 1}})
    cut = run(documents, {"q": {"a": 0.5, "b": 0.5}}, depth=2)
    whole = run(documents, {"q": {"a": 0.5, "b": 0.5, "c": 0.5}}, depth=3)
    assert [scorecards.score(judged, hits, ["mrr"]).counts["cut_in_tie"] for hits in (cut, whole)] == [1, 0]


def test_challenge_metrics_read_annotations_that_are_qrels():
    documents = corpus("a", "b", "c", "d", "e")
    grades = {"q": {"a": 4 / 3, "b": 0, "c": 3}, "none": {"a": 0, "b": 0}}
    judged = dataset(documents, ["q", "none"], grades)
    hits = run(documents, {"q": {"e": 0.9, "a": 0.8, "b": 0.7}, "none": {"a": 1.0}}, depth=3)
    names = ["ndcg-all", "ndcg-exp", "ndcg-within", "ndcg-reranked", "judged@2"]
    card = scorecards.score(judged, hits, names)
    ideal = 7 + (2 ** (4 / 3) - 1) / np.log2(3)
    assert card.query_ids.to_pylist() == ["q"]  # all grades of the other are 0
    gain = 2 ** (4 / 3) - 1
    wanted = [gain / np.log2(3) / ideal] * 2 + [gain / ideal, (gain + 7 / 2) / ideal, 1 / 2]
    assert [card.values[name][0] for name in names] == pytest.approx(wanted, rel=1e-6)


def test_beside_a_metric_stands_what_a_random_order_would_score():
    documents = corpus("a", "b", "c", "d")
    judged = dataset(documents, ["q"], {"q": {"a": 1}})
    hits = run(documents, {"q": {"a": 0.9}}, depth=2)
    card = scorecards.score(judged, hits, ["hit@1", "mrr", "bpref"], np.array([0, 1, 1, 2]))
    assert card.random == pytest.approx({"hit@1": 1 / 4, "mrr": (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, "bpref": 1})
    cut = scorecards.score(judged, run(documents, {"q": {"a": 0.9, "b": 0.8}}, depth=2), ["mrr", "bpref"])
    assert cut.random == pytest.approx({"mrr": (1 + 1 / 2) / 4})  # hits end at the second
    summary = scorecards.summary({"d": card}, "queries", 100, 0.95, 0)
    assert summary["all"]["hit@1"]["random"] == summary["datasets"]["d"]["metrics"]["hit@1"]["random"] == 1 / 4
    assert "random" not in summary["all"]["hit@1-folded"]


def test_in_a_random_order_stands_nothing_that_the_query_excludes():
    documents = corpus("a", "b", "c", "d")
    judged = dataset(documents, ["q"], {"q": {"a": 1}})
    excluding = replace(judged, queries=Queries(queries_table(["q"], ["q"], excluded=[["b", "c", "of no corpus"]])))
    card = scorecards.score(excluding, run(documents, {"q": {"a": 0.9}}, depth=2), ["hit@1"])
    assert card.random == {"hit@1": 1 / 2}


def test_a_mixture_is_in_no_mean_with_what_it_is_mixed_of():
    documents = corpus("a", "b", "c", "d")
    right, wrong = run(documents, {"q": {"a": 0.9}}), run(documents, {"q": {"b": 0.9}})
    judged = dataset(documents, ["q"], {"q": {"a": 1}})
    cards = {
        "one": scorecards.score(judged, right, ["hit@1"]),
        "all": scorecards.score(replace(judged, mixed_of=("one", "other")), wrong, ["hit@1"]),
    }
    for mean in ("datasets", "queries"):
        summary = scorecards.summary(cards, mean, 100, 0.95, 0)
        assert (summary["all"]["hit@1"]["value"], summary["all"]["hit@1"]["datasets"]) == (1, 1)
    assert summary["datasets"]["all"]["metrics"]["hit@1"]["value"] == 0
    assert summary["datasets"]["all"]["apart"] and "apart" not in summary["datasets"]["one"]


def test_a_block_is_read_by_rows_and_by_columns():
    documents = corpus("a", "b")
    judged = dataset(documents, ["qa", "qb"], {"qa": {"a": 1}, "qb": {"b": 1}})
    # qa ranks a first; for qb, a beats b. Of document a, qb scores higher than qa; of document b, qb is first.
    hits = run(documents, {"qb": {"a": 0.9, "b": 0.8}, "qa": {"a": 0.5, "b": 0.1}}, depth=2)
    card = scorecards.score(judged, hits, ["mrr-1000", "mrr-1000-paper"])
    assert card.query_ids.to_pylist() == ["qa", "qb"]
    assert card.values["mrr-1000"].tolist() == [1.0, 0.5]
    assert card.values["mrr-1000-paper"].tolist() == [0.5, 1.0]


def test_a_block_whose_run_lacks_a_query_is_refused():
    documents = corpus("a", "b")
    judged = dataset(documents, ["qa", "qb"], {"qa": {"a": 1}, "qb": {"b": 1}})
    with pytest.raises(DataError, match="must answer each of its 2 queries once"):
        scorecards.score(judged, run(documents, {"qa": {"a": 1.0, "b": 0.5}}, depth=2), ["mrr-1000"])


def test_a_run_on_another_corpus_is_refused():
    judged = dataset(corpus("a"), ["q"], {"q": {"a": 1}})
    with pytest.raises(DataError, match="search again"):
        scorecards.score(judged, run(corpus("b", name="other"), {"q": {"b": 1.0}}), ["mrr"])


def test_a_cutoff_beyond_what_the_run_was_cut_at_is_refused():
    documents = corpus("a", "b", "c")
    judged = dataset(documents, ["q"], {"q": {"c": 1}})
    cut = run(documents, {"q": {"a": 0.9, "b": 0.8}}, depth=2)
    with pytest.raises(DataError, match=r"recall@3 of d wants more hits a query than the 2"):
        scorecards.score(judged, cut, ["mrr", "recall@3"])
    assert scorecards.score(judged, cut, ["mrr", "recall@2"]).values["recall@2"].tolist() == [0.0]


def test_a_run_that_found_no_more_or_names_every_document_has_any_cutoff():
    documents = corpus("a", "b", "c")
    judged = dataset(documents, ["q"], {"q": {"b": 1}})
    few = run(documents, {"q": {"a": 0.9}}, depth=2)
    whole = run(documents, {"q": {"a": 0.9, "b": 0.8, "c": 0.7}}, depth=3)
    assert [scorecards.score(judged, hits, ["recall@10"]).values["recall@10"][0] for hits in (few, whole)] == [0, 1]


def test_the_mean_weighs_queries_or_datasets_as_the_benchmark_says():
    documents = corpus("a", "b")
    one = scorecards.score(dataset(documents, ["q"], {"q": {"a": 1}}), run(documents, {"q": {"a": 1.0}}), ["hit@1"])
    three = scorecards.score(
        dataset(documents, ["x", "y", "z"], {each: {"a": 1} for each in "xyz"}),
        run(documents, {each: {"b": 1.0} for each in "xyz"}),
        ["hit@1"],
    )
    cards = {"one": one, "three": three}
    assert scorecards.summary(cards, "queries", 100, 0.95, 0)["all"]["hit@1"]["value"] == 0.25
    summary = scorecards.summary(cards, "datasets", 100, 0.95, 0)
    assert summary["all"]["hit@1"]["value"] == 0.5
    assert (summary["all"]["hit@1"]["queries"], summary["all"]["hit@1"]["datasets"]) == (4, 2)
    assert summary["datasets"]["three"]["metrics"]["hit@1"] == {
        **{"value": 0.0, "low": 0.0, "high": 0.0},
        "random": 0.5,
    }


def test_the_floor_of_a_mean_weighs_as_the_mean_does():
    pair, four = corpus("a", "b"), corpus("a", "b", "c", "d")
    one = scorecards.score(dataset(pair, ["q"], {"q": {"a": 1}}), run(pair, {"q": {"a": 1.0}}), ["hit@1"])
    gold = {each: {"a": 1} for each in "xyz"}
    three = scorecards.score(dataset(four, list(gold), gold), run(four, {each: {"b": 1.0} for each in gold}), ["hit@1"])
    for mean, floor in (("queries", (1 / 2 + 3 / 4) / 4), ("datasets", (1 / 2 + 1 / 4) / 2)):
        assert scorecards.summary({"one": one, "three": three}, mean, 100, 0.95, 0)["all"]["hit@1"]["random"] == floor


def test_a_benchmark_without_any_relevant_document_has_no_mean():
    documents = corpus("a")
    card = scorecards.score(dataset(documents, ["q"], {"q": {"a": 0}}), run(documents, {"q": {"a": 1.0}}), ["hit@1"])
    with pytest.raises(DataError, match="no query of d has a relevant document"):
        scorecards.summary({"d": card}, "queries", 100, 0.95, 0)


def test_where_no_metric_is_asked_for_there_is_no_mean_and_no_error():
    documents = corpus("d1", "d2")
    card = scorecards.score(dataset(documents, ["q1"], {}), run(documents, {"q1": {"d1": 1.0}}), [])
    summary = scorecards.summary({"d": card}, "queries", 10, 0.95, 0)
    assert summary["all"] == {} and summary["datasets"]["d"]["counts"]["without_relevant"] == 1
    with pytest.raises(DataError, match="no query of d has a relevant document"):
        scorecards.summary(
            {"d": scorecards.score(dataset(documents, ["q1"], {}), run(documents, {"q1": {"d1": 1.0}}), ["mrr"])},
            "queries",
            10,
            0.95,
            0,
        )


def test_a_part_of_a_scorecard_has_the_values_of_its_queries():
    card = scorecards.of_problems(["a", "b", "c"], {"m": np.array([1.0, 0.5, 0.0])}, {"samples": 3})
    part = scorecards.part(card, {"c", "a"})
    assert part.query_ids.to_pylist() == ["a", "c"] and part.values["m"].tolist() == [1.0, 0.0]
    assert len(scorecards.part(card, set()).query_ids) == 0
