"""Rows stand in descending document id: of two documents with one score the one in the lower row ranks first."""

import itertools
import math

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from coderet.metrics import ranking
from coderet.metrics.ranking import Judgements, evaluate, parse, rank
from coderet.records import DataError
from coderet.registry import UnknownName


def judged(*judgements: tuple[int, int, float], query_count: int = 1) -> Judgements:
    """Judgements from (query, row, grade)."""
    columns = np.array(judgements, dtype=np.float64).reshape(-1, 3)
    return Judgements(columns[:, 0].astype(int), columns[:, 1].astype(int), columns[:, 2], query_count)


def score_of(
    metric: str, rows: list[int], *judgements: tuple[int, int, float], groups: list[int] | None = None
) -> float:
    """Value of one query whose hits are these rows, best first."""
    evaluation = evaluate(
        np.array([0]),
        np.array([rows]),
        np.arange(len(rows), 0, -1, dtype=np.float32)[None],
        judged(*judgements),
        [metric],
        None if groups is None else np.array(groups),
    )
    return evaluation.mean(metric)


# One query: rows 5, 7 and 9 are relevant with grades 3, 2 and 1; row 9 is found second, row 5 fourth, row 7 not at all.
HITS = [8, 9, 6, 5]
GRADES = ((0, 5, 3), (0, 7, 2), (0, 9, 1), (0, 8, 0))


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("ndcg", (1 / math.log2(3) + 3 / math.log2(5)) / (3 + 2 / math.log2(3) + 1 / 2)),
        ("ndcg@2", (1 / math.log2(3)) / (3 + 2 / math.log2(3))),
        ("ndcg-exp", (1 / math.log2(3) + 7 / math.log2(5)) / (7 + 3 / math.log2(3) + 1 / 2)),
        ("ndcg-exp@1", 0),
        ("mrr", 1 / 2),
        ("mrr@1", 0),
        ("map", (1 / 2 + 2 / 4) / 3),
        ("map@2", (1 / 2) / 3),
        ("precision", 2 / 4),
        ("precision@2", 1 / 2),
        ("precision@10", 2 / 10),
        ("recall", 2 / 3),
        ("recall@3", 1 / 3),
        ("hit", 1),
        ("hit@1", 0),
        ("hit@2", 1),
        # The judged hits are rows 8, 9 and 5, of grades 0, 1 and 3; row 7, of grade 2, is not found.
        ("ndcg-all", (1 / math.log2(3) + 7 / math.log2(5)) / (7 + 3 / math.log2(3) + 1 / 2)),
        ("ndcg-within", (1 / math.log2(3) + 7 / 2) / (7 + 3 / math.log2(3) + 1 / 2)),
        ("ndcg-within@2", (1 / math.log2(3)) / (7 + 3 / math.log2(3))),
        ("ndcg-reranked", (1 / math.log2(3) + 7 / 2 + 3 / math.log2(5)) / (7 + 3 / math.log2(3) + 1 / 2)),
        ("judged", 3 / 4),
        ("judged@1", 1),
        ("judged@10", 3 / 4),
        ("bpref", (0 + 0) / 3),
    ],
)
def test_a_metric_has_the_value_worked_out_by_hand(metric, value):
    assert score_of(metric, HITS, *GRADES) == pytest.approx(value)


def test_precision_without_cutoff_divides_by_the_hits_there_are():
    assert score_of("precision", [5, 8, -1, -1], (0, 5, 1)) == 1 / 2


def test_a_fractional_grade_is_relevant_and_a_negative_one_is_not():
    assert score_of("ndcg", [1, 2], (0, 1, -1), (0, 2, 1 / 3)) == pytest.approx(1 / math.log2(3))
    assert score_of("mrr", [1, 2], (0, 1, -1), (0, 2, 1 / 3)) == 1 / 2


# D1: equal scores


def test_d1_the_gold_document_of_a_tie_is_ranked_by_id_in_every_order_and_chunking():
    row_of = {"c": 0, "b": 1, "a": 2}
    metrics = ["mrr", "ndcg@10", "hit@1"]
    results = []
    for order in itertools.permutations("abc"):
        rows, scores = np.array([[row_of[name] for name in order]]), np.full((1, 3), 0.5, dtype=np.float32)
        whole = rank(rows, scores)
        chunks = [rank(rows[:, part], scores[:, part]) for part in (slice(0, 2), slice(2, 3))]
        merged = rank(*(np.concatenate(parts, axis=1) for parts in zip(*chunks, strict=True)))
        results += [
            evaluate(np.array([0]), *run, judged((0, 2, 1)), metrics) for run in (whole, merged, (rows, scores))
        ]
    assert {result.mean("mrr") for result in results} == {1 / 3}
    assert {result.mean("ndcg@10") for result in results} == {0.5}
    assert {result.mean("hit@1") for result in results} == {0.0}
    assert {result.counts.gold_in_tie for result in results} == {1}


def test_a_tie_that_the_gold_document_is_outside_of_is_not_counted():
    scores = np.array([[0.9, 0.5, 0.5, -np.inf]], dtype=np.float32)
    evaluation = evaluate(np.array([0]), np.array([[2, 0, 1, -1]]), scores, judged((0, 2, 1)), ["mrr"])
    assert evaluation.counts.gold_in_tie == 0


def test_a_hit_does_not_tie_with_a_missing_one():
    scores = np.full((1, 2), -np.inf, dtype=np.float32)
    assert evaluate(np.array([0]), np.array([[2, -1]]), scores, judged((0, 2, 1)), ["mrr"]).counts.gold_in_tie == 0


def test_minus_zero_ties_with_zero():
    rows, _ = rank(np.array([[4, 3]]), np.array([[0.0, -0.0]], dtype=np.float32))
    assert rows.tolist() == [[3, 4]]


def test_ranking_puts_missing_hits_last_whatever_their_score_says():
    rows, scores = rank(np.array([[-1, 4, 3, 6]]), np.array([[9, -2.5, -np.inf, 1e-40]], dtype=np.float32))
    assert rows.tolist() == [[6, 4, 3, -1]]
    assert scores.tolist() == [[np.float32(1e-40), -2.5, -np.inf, -np.inf]]


@given(st.lists(st.tuples(st.integers(-1, 9), st.floats(width=32, allow_nan=False)), min_size=1, max_size=8))
def test_ranking_sorts_by_score_descending_and_row_ascending(hits):
    rows, scores = (np.array([column]) for column in zip(*hits, strict=True))
    ranked = rank(rows, scores.astype(np.float32))
    wanted = sorted((hit for hit in hits if hit[0] >= 0), key=lambda hit: (-hit[1], hit[0]))
    assert [pair for pair in zip(ranked[0][0], ranked[1][0], strict=True) if pair[0] >= 0] == wanted


def test_a_score_that_is_nan_is_refused():
    with pytest.raises(DataError, match="1 scores of the run are NaN"):
        rank(np.array([[1, 2]]), np.array([[np.nan, 1]], dtype=np.float32))


def test_scores_of_another_precision_are_refused_for_rounding_would_make_ties():
    with pytest.raises(TypeError, match="float64"):
        rank(np.array([[1, 2]]), np.array([[1 + 1e-12, 1]]))


# D2: which queries are averaged


def test_d2_queries_with_a_relevant_document_make_up_the_mean_and_the_others_are_counted():
    # q1 .. q5 are 0 .. 4, d1 .. d4 rows 3 .. 0; the run holds q1, q2 (nothing found) and q9, which is no query of ours
    judgements = judged((0, 3, 1), (1, 2, 1), (2, 1, 1), (3, 0, 0), query_count=5)
    rows, scores = np.array([[3], [-1], [3]]), np.array([[1], [-np.inf], [1]], dtype=np.float32)
    evaluation = evaluate(np.array([0, 1, -1]), rows, scores, judgements, ["ndcg@10"])
    assert evaluation.mean("ndcg@10") == pytest.approx(1 / 3)
    assert evaluation.queries.tolist() == [0, 1, 2]
    assert evaluation.values["ndcg@10"].tolist() == [1, 0, 0]
    assert evaluation.counts == ranking.Counts(
        scored=3, missing=1, without_hits=1, gold_in_tie=0, cut_in_tie=0, without_relevant=2, unknown=1, depth=1
    )
    without = evaluate(
        np.array([0, 1]), rows[:2], scores[:2], judged((0, 3, 1), (1, 2, 1), (2, 1, 1), query_count=3), ["ndcg@10"]
    )
    assert without.values["ndcg@10"].tolist() == evaluation.values["ndcg@10"].tolist()


def test_a_mean_over_no_query_is_refused():
    evaluation = evaluate(np.array([0]), np.array([[1]]), np.ones((1, 1), dtype=np.float32), judged((0, 1, 0)), ["mrr"])
    with pytest.raises(DataError, match="none of 1 queries has a relevant document"):
        evaluation.mean("mrr")


# D3: the same text under two ids


T9, T2, T1 = 0, 1, 2
GROUPS = [0, 1, 0]  # t1 and t9 have one text


@pytest.mark.parametrize(("gold", "strict"), [(T9, 1), (T1, 0)])
def test_d3_the_strict_score_follows_the_tie_rule_and_the_folded_one_treats_copies_as_one(gold, strict):
    scores = np.array([[1, 1, 0.5]], dtype=np.float32)
    evaluation = evaluate(
        np.array([0]),
        np.array([[T1, T9, T2]]),
        scores,
        judged((0, gold, 1)),
        ["hit@1", "hit@1-folded"],
        np.array(GROUPS),
    )
    assert evaluation.mean("hit@1") == strict
    assert evaluation.mean("hit@1-folded") == 1


def test_ranks_close_up_where_a_later_copy_was():
    assert score_of("mrr", [T1, T9, T2], (0, T2, 1)) == 1 / 3
    assert score_of("mrr-folded", [T1, T9, T2], (0, T2, 1), groups=GROUPS) == 1 / 2


def test_a_group_has_its_members_highest_grade_and_is_one_relevant_item():
    copies = ((0, T1, 1), (0, T9, 3), (0, T2, 2))
    assert score_of("recall@1", [T1, T2], *copies) == 1 / 3
    assert score_of("recall@1-folded", [T1, T2], *copies, groups=GROUPS) == 1 / 2
    assert score_of("ndcg@2-folded", [T2, T1], *copies, groups=GROUPS) == pytest.approx(
        (2 + 3 / math.log2(3)) / (3 + 2 / math.log2(3))
    )


@given(st.data())
def test_folding_changes_nothing_where_no_text_comes_twice(data):
    judgements, run = data.draw(st.tuples(qrels(), runs()))
    names = [f"{kind}{cutoff}" for kind in ranking.METRICS for cutoff in ("", "@2") if kind + cutoff != "bpref@2"]
    names += [f"{name}-{order}" for name in names for order in ("expected", "best", "worst")]
    folded = [f"{name}-folded" for name in names]
    evaluation = evaluate(
        *columns(run), judged(*judgements, query_count=QUERIES), names + folded, np.arange(DOCUMENTS)[::-1]
    )
    for name in names:
        assert evaluation.values[name].tolist() == evaluation.values[f"{name}-folded"].tolist()


# Agreement with trec_eval

QUERIES, DOCUMENTS, DEPTH = 4, 6, 5
OURS_AND_THEIRS = {
    **{f"ndcg@{k}": f"ndcg_cut_{k}" for k in (1, 3, 10)},
    **{f"map@{k}": f"map_cut_{k}" for k in (1, 3, 10)},
    **{f"precision@{k}": f"P_{k}" for k in (1, 3, 10)},
    **{f"recall@{k}": f"recall_{k}" for k in (1, 3, 10)},
    **{f"hit@{k}": f"success_{k}" for k in (1, 3, 10)},
    "ndcg": "ndcg",
    "map": "map",
    "mrr": "recip_rank",
    "precision": "set_P",
    "recall": "set_recall",
}
MEASURES = {"ndcg", "map", "recip_rank", "set_P", "set_recall"} | {
    f"{family}.1,3,10" for family in ("ndcg_cut", "map_cut", "P", "recall", "success")
}


def qrels() -> st.SearchStrategy[list[tuple[int, int, int]]]:
    """(query, row, grade), negative grades among them."""
    places = st.tuples(st.integers(0, QUERIES - 1), st.integers(0, DOCUMENTS - 1))
    grades = st.dictionaries(places, st.integers(-2, 3), max_size=QUERIES * DOCUMENTS)
    return grades.map(lambda found: [(query, row, grade) for (query, row), grade in found.items()])


def runs() -> st.SearchStrategy[dict[int, dict[int, float]]]:
    """query -> row -> score, with many ties, queries without hits and queries missing."""
    hits = st.dictionaries(st.integers(0, DOCUMENTS - 1), st.sampled_from([-1.5, 0.0, 0.25, 7.0]), max_size=DEPTH)
    return st.dictionaries(st.integers(0, QUERIES - 1), hits)


def columns(run: dict[int, dict[int, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    queries = np.array(list(run), dtype=np.int64)
    rows, scores = np.full((len(run), DEPTH), -1), np.full((len(run), DEPTH), -np.inf, dtype=np.float32)
    for line, hits in enumerate(run.values()):
        rows[line, : len(hits)], scores[line, : len(hits)] = list(hits), list(hits.values())
    return queries, rows, scores


@settings(max_examples=300, deadline=None)
@given(qrels(), runs())
def test_all_metrics_agree_with_trec_eval_on_ties_negative_grades_and_missing_queries(judgements, run):
    ours = evaluate(*columns(run), judged(*judgements, query_count=QUERIES), list(OURS_AND_THEIRS))
    document_id = [f"d{DOCUMENTS - row}" for row in range(DOCUMENTS)]  # descending
    their_qrels: dict[str, dict[str, int]] = {}
    for query, row, grade in judgements:
        if query in ours.queries:  # a query with negative grades alone makes pytrec_eval 0.5.11 write beyond its memory
            their_qrels.setdefault(str(query), {})[document_id[row]] = grade
    their_run = {str(query): {document_id[row]: score for row, score in hits.items()} for query, hits in run.items()}
    theirs = pytrec_eval.RelevanceEvaluator(their_qrels, MEASURES).evaluate(their_run)
    assert ours.queries.tolist() == sorted({query for query, _, grade in judgements if grade > 0})
    for name, measure in OURS_AND_THEIRS.items():
        wanted = [theirs.get(str(query), {}).get(measure, 0.0) for query in ours.queries]
        assert ours.values[name] == pytest.approx(wanted, abs=1e-6), name


@settings(max_examples=100, deadline=None)
@given(qrels(), runs())
def test_bpref_agrees_with_trec_eval_which_takes_negative_grades_for_unjudged(judgements, run):
    judgements = [each for each in judgements if each[2] >= 0]
    ours = evaluate(*columns(run), judged(*judgements, query_count=QUERIES), ["bpref"])
    their_qrels: dict[str, dict[str, int]] = {}
    for query, row, grade in judgements:
        their_qrels.setdefault(str(query), {})[f"d{DOCUMENTS - row}"] = grade
    their_run = {
        str(query): {f"d{DOCUMENTS - row}": score for row, score in hits.items()} for query, hits in run.items()
    }
    theirs = pytrec_eval.RelevanceEvaluator(their_qrels, {"bpref"}).evaluate(their_run)
    wanted = [theirs.get(str(query), {}).get("bpref", 0.0) for query in ours.queries]
    assert ours.values["bpref"] == pytest.approx(wanted, abs=1e-6)


def test_blocks_of_queries_do_not_show_in_the_result(monkeypatch):
    random = np.random.default_rng(0)
    rows = random.permuted(np.tile(np.arange(9), (7, 1)), axis=1)
    scores = random.integers(0, 3, (7, 9)).astype(np.float32)
    judgements = judged(*((query, query, 1) for query in range(7)), query_count=7)
    run = (random.permutation(7), rows, scores)
    whole = evaluate(*run, judgements, ["mrr", "precision"])
    monkeypatch.setattr(ranking, "_QUERIES_AT_ONCE", 2)
    parts = evaluate(*run, judgements, ["mrr", "precision"])
    assert parts.values["mrr"].tolist() == whole.values["mrr"].tolist()
    assert len(set(whole.values["mrr"])) > 1
    assert parts.counts == whole.counts


# Names and bad input


def test_a_name_is_taken_apart():
    assert parse("ndcg-exp@10-folded") == ranking.Metric("ndcg-exp", 10, True)
    assert parse("mrr") == ranking.Metric("mrr", None, False)
    assert parse("ndcg-exp@10-expected-folded") == ranking.Metric("ndcg-exp", 10, True, "expected")


@pytest.mark.parametrize("name", ["ncdg@10", "ndcg@0", "ndcg@", "ndcg@10.5", "mrr-1000", "", "recall @5"])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(UnknownName, match="is no ranking metric; known: ndcg"):
        parse(name)


@pytest.mark.parametrize("name", ["ncdg@10", "ncdg@10-expected", "ncdg-best-folded"])
def test_the_nearest_name_is_offered(name):
    with pytest.raises(UnknownName, match=r"Did you mean ndcg\?"):
        parse(name)


def test_bpref_loses_no_more_than_all_whatever_stands_above():
    above = [(0, row, 0) for row in (2, 3, 4)]
    assert score_of("bpref", [2, 3, 4, 1], *above, (0, 1, 1)) == 0
    assert score_of("bpref", [5, 2, 3, 4, 1], *above, (0, 1, 1), (0, 5, 1)) == 1 / 2


def test_bpref_has_no_cutoff():
    with pytest.raises(UnknownName, match="write bpref-best"):
        parse("bpref@10-best")


def test_folded_metrics_without_groups_are_refused():
    with pytest.raises(DataError, match="give groups"):
        score_of("mrr-folded", [1], (0, 1, 1))


def test_a_row_without_a_group_is_refused():
    with pytest.raises(DataError, match="row 3 has no group"):
        score_of("mrr-folded", [3], (0, 1, 1), groups=[0, 1])


def test_a_relevant_document_hit_twice_is_refused():
    with pytest.raises(DataError, match="hits of one query twice"):
        score_of("ndcg", [1, 1], (0, 1, 1))


def test_a_query_with_two_lines_is_refused():
    with pytest.raises(DataError, match="more than one line"):
        evaluate(np.array([0, 0]), np.array([[1], [1]]), np.ones((2, 1), dtype=np.float32), judged((0, 1, 1)), ["mrr"])


def test_a_run_naming_a_query_that_is_not_there_is_refused():
    with pytest.raises(DataError, match="names query 3, but there are 1"):
        evaluate(np.array([3]), np.array([[1]]), np.ones((1, 1), dtype=np.float32), judged((0, 1, 1)), ["mrr"])


@pytest.mark.parametrize(
    ("judgement", "message"),
    [((1, 0, 1), "name queries"), ((0, -1, 1), "name rows"), ((0, 0, math.nan), "not finite"), ((0, 5, 2), "again")],
)
def test_wrong_qrels_are_refused(judgement, message):
    with pytest.raises(DataError, match=message):
        judged((0, 5, 1), judgement)


def test_a_run_without_lines_scores_zero_and_is_counted():
    empty = np.empty((0, 3))
    evaluation = evaluate(np.empty(0, int), empty.astype(int), empty.astype(np.float32), judged((0, 1, 1)), ["mrr"])
    assert evaluation.mean("mrr") == 0
    assert evaluation.counts.missing == 1
