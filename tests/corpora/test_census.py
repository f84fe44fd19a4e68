import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coderet.corpora.census import census
from coderet.metrics import scorecards
from coderet.records import Corpus, Dataset, Qrels, Queries, Run, documents_batch, qrels_table, queries_table


def dataset(
    documents: dict[str, str],
    queries: dict[str, str],
    gold: list[tuple[str, str]],
    excluded: dict[str, list[str]] | None = None,
) -> Dataset:
    ids = sorted(documents, reverse=True)
    corpus = Corpus(
        "c", pa.Table.from_batches([documents_batch(ids, [""] * len(ids), [documents[each] for each in ids])])
    )
    return Dataset(
        "d",
        corpus,
        Queries(queries_table(list(queries), list(queries.values()), [(excluded or {}).get(q, []) for q in queries])),
        Qrels(qrels_table([q for q, _ in gold], [d for _, d in gold])),
    )


def test_the_same_text_under_two_ids_is_one_group_of_two_documents_and_one_affected_query():
    documents = {"t1": "SELECT a FROM x", "t9": "SELECT a FROM x\r\n", "t2": "SELECT b FROM y"}
    counts, groups = census(dataset(documents, {"q": "a of x"}, [("q", "t9")]))
    assert (counts["duplicate_groups"], counts["duplicate_documents"], counts["affected_queries"]) == (1, 2, 1)
    assert groups.tolist() == [0, 1, 0]  # rows t9, t2, t1


def test_line_ends_and_outer_blanks_tell_no_two_texts_apart_and_all_else_does():
    texts = ["a\nb", "a\r\nb", "\n a\rb\t", "a  b", "A\nb"]
    _, groups = census(dataset({str(place): text for place, text in enumerate(texts)}, {"q": "x"}, [("q", "0")]))
    assert groups[::-1].tolist() == [2, 2, 2, 1, 0]  # rows are 4, 3, 2, 1, 0


def test_two_equal_queries_with_different_gold_reach_a_hit_rate_of_one_half_at_best():
    counts, groups = census(dataset({"a": "x", "b": "y"}, {"q1": "same", "q2": " same\n"}, [("q1", "a"), ("q2", "b")]))
    assert (counts["duplicate_query_groups"], counts["conflicting_query_groups"]) == (1, 1)
    assert counts["best_reachable_hit@1"] == pytest.approx(0.5)
    assert groups is None


def test_queries_without_gold_and_empty_texts_are_counted():
    counts, _ = census(dataset({"a": " \n", "b": "y"}, {"q1": "one", "q2": "", "q3": "three"}, [("q1", "b")]))
    assert (counts["queries_without_gold"], counts["empty_documents"], counts["empty_queries"]) == (2, 1, 1)


def test_an_empty_dataset_has_counts_of_zero():
    counts, groups = census(dataset({}, {}, []))
    assert (counts["documents"], counts["queries"], groups) == (0, 0, None)


SECOND = 1 / math.log2(3)


@pytest.mark.parametrize(("gold", "strict"), [("c10", SECOND), ("c9", 1.0)])
def test_the_ceiling_of_a_document_with_one_copy_is_two_thirds_if_its_id_loses_and_the_mean_of_both_by_chance(
    gold, strict
):
    counts, _ = census(dataset({"c10": "x", "c9": "x", "a": "y"}, {"q": "which"}, [("q", gold)]))
    assert counts["ceiling_ndcg@10"] == pytest.approx(strict)
    assert counts["ceiling_ndcg@10-expected"] == pytest.approx((1 + SECOND) / 2)
    assert counts["ceiling_hit@1"] == (strict == 1.0)
    assert counts["ceiling_hit@1-expected"] == 1 / 2
    assert counts["best_reachable_hit@1"] == 1  # where copies count as one


def test_nine_in_ten_documents_with_a_copy_of_higher_id_leave_a_perfect_retriever_two_thirds():
    """94 % of the pairs of one benchmark stand in its corpus twice, and the gold one loses with probability 0.997."""
    texts = {f"q{place}": f"text {place}" for place in range(100)}
    documents = {f"c1-{place}": f"code {place}" for place in range(100)} | {f"c9-{p}": f"code {p}" for p in range(94)}
    counts, _ = census(dataset(documents, texts, [(f"q{place}", f"c1-{place}") for place in range(100)]))
    assert counts["ceiling_ndcg@10"] == pytest.approx(0.06 + 0.94 * SECOND) == pytest.approx(0.653, abs=5e-4)
    assert counts["ceiling_ndcg@10-expected"] == pytest.approx(0.827, abs=5e-4)


def test_equal_queries_share_one_ranking_so_the_second_answer_is_second():
    counts, _ = census(dataset({"a": "x", "b": "y"}, {"q1": "same", "q2": "same"}, [("q1", "a"), ("q2", "b")]))
    assert counts["ceiling_ndcg@10"] == counts["ceiling_ndcg@10-expected"] == pytest.approx((1 + SECOND) / 2)
    assert counts["ceiling_hit@1"] == counts["ceiling_hit@1-expected"] == 1 / 2


def test_equal_queries_with_equal_gold_do_not_conflict_and_copies_are_one_gold():
    documents = {"a": "x", "b": "x", "c": "y"}
    counts, _ = census(
        dataset(documents, {"q1": "same", "q2": "same", "q3": "other"}, [("q1", "a"), ("q2", "b"), ("q2", "a")])
    )
    assert (counts["duplicate_query_groups"], counts["conflicting_query_groups"]) == (1, 0)
    assert (counts["best_reachable_hit@1"], counts["queries_without_gold"]) == (1, 1)


def test_a_gold_beyond_the_tenth_copy_is_out_of_reach():
    documents = {f"d{place:02}": "x" for place in range(12)}
    counts, _ = census(dataset(documents, {"q": "which"}, [("q", "d00")]))
    assert counts["ceiling_ndcg@10"] == 0
    assert counts["ceiling_ndcg@10-expected"] == pytest.approx(
        sum(1 / math.log2(rank + 1) for rank in range(1, 11)) / 12
    )


def test_documents_that_no_query_may_hit_are_nobodys_copies():
    documents = {"lost1": "", "lost2": "", "a": "x", "b": "x"}
    out = {"q1": ["lost1", "lost2"], "q2": ["lost2", "lost1", "lost1"]}
    counts, groups = census(dataset(documents, {"q1": "one", "q2": "two"}, [("q1", "a")], out))
    assert (counts["duplicate_groups"], counts["duplicate_documents"], counts["empty_documents"]) == (1, 2, 2)
    assert len(set(groups.tolist())) == 3
    counts, groups = census(dataset(documents, {"q1": "one", "q2": "two"}, [("q1", "a")], {"q1": out["q1"]}))
    assert counts["duplicate_groups"] == 2  # q2 may hit both, and cannot tell them apart


def test_gold_that_its_query_excludes_is_beyond_the_ceiling_and_within_the_ideal():
    documents = {"a": "x", "b": "y", "lost": ""}
    gold = [("q1", "a"), ("q1", "lost"), ("q2", "lost")]
    counts, groups = census(dataset(documents, {"q1": "one", "q2": "two"}, gold, {q: ["lost"] for q in ("q1", "q2")}))
    assert counts["queries_without_gold"] == 0
    assert counts["ceiling_ndcg@10"] == counts["ceiling_ndcg@10-expected"] == pytest.approx(1 / (1 + SECOND) / 2)
    assert counts["ceiling_hit@1"] == counts["ceiling_hit@1-expected"] == counts["best_reachable_hit@1"] == 1 / 2
    assert groups is None


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.lists(st.integers(0, 1), min_size=1, max_size=3),
    st.data(),
)
def test_no_ranking_of_the_distinct_texts_has_a_higher_expectation_than_the_ceiling(texts, questions, data):
    ids = [f"d{place}" for place in range(len(texts))]
    gold = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(questions) - 1), st.sampled_from(ids)), min_size=1, max_size=6, unique=True
        )
    )
    asked = {f"q{place}": f"question {text}" for place, text in enumerate(questions)}
    made = dataset(
        {each: f"text {text}" for each, text in zip(ids, texts, strict=True)}, asked, [(f"q{q}", d) for q, d in gold]
    )
    counts, _ = census(made)
    names = ["ndcg@10-expected", "hit@1-expected", "hit@1"]
    best = dict.fromkeys(names, 0.0)
    own = np.array([int(each.as_py().removeprefix("text ")) for each in made.corpus.table["text"]])
    distinct = sorted(set(texts))
    orders = [dict(zip(each, range(len(distinct)), strict=True)) for each in itertools.permutations(distinct)]
    for first, second in itertools.product(orders, orders):
        scores = np.array([[-(first if text == 0 else second)[each] for each in own] for text in questions])
        rows = np.tile(np.arange(len(own)), (len(questions), 1))
        run = Run.of(made.corpus, made.queries.ids, rows, scores.astype(np.float32))
        card = scorecards.score(made, run, names)
        for name in names:
            best[name] = max(best[name], float(card.values[name].mean()))
    for name in names:
        assert counts[f"ceiling_{name}"] == pytest.approx(best[name])
