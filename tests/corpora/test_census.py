import pyarrow as pa
import pytest

from coderet.corpora.census import census
from coderet.records import Corpus, Dataset, Qrels, Queries, documents_batch, qrels_table, queries_table


def dataset(documents: dict[str, str], queries: dict[str, str], gold: list[tuple[str, str]]) -> Dataset:
    ids = sorted(documents, reverse=True)
    corpus = Corpus(
        "c", pa.Table.from_batches([documents_batch(ids, [""] * len(ids), [documents[each] for each in ids])])
    )
    return Dataset(
        "d",
        corpus,
        Queries(queries_table(list(queries), list(queries.values()))),
        Qrels(qrels_table([q for q, _ in gold], [d for _, d in gold])),
    )


def test_the_same_text_under_two_ids_is_one_group_of_two_documents_and_one_affected_query():
    documents = {"t1": "SELECT a FROM x", "t9": "SELECT a FROM x\r\n", "t2": "SELECT b FROM y"}
    counts, groups = census(dataset(documents, {"q": "a of x"}, [("q", "t9")]))
    assert (counts["duplicate_groups"], counts["duplicate_documents"], counts["affected_queries"]) == (1, 2, 1)
    assert groups.tolist() == [0, 1, 0]  # rows t9, t2, t1


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
