import numpy as np
import pyarrow as pa
import pytest

from coderet.records import (
    NO_HIT,
    Corpus,
    DataError,
    Queries,
    Run,
    TableDigest,
    assemble,
    documents_batch,
    qrels_table,
    queries_table,
)


def corpus_of(ids: list[str], titles: list[str | None] | None = None, texts: list[str] | None = None) -> Corpus:
    batch = documents_batch(ids, titles or [""] * len(ids), texts or ids)
    return Corpus("c", pa.Table.from_batches([batch]))


def run_of(corpus: Corpus, rows: list[list[int]], scores: list[list[float]]) -> Run:
    return Run.of(corpus, pa.array([f"q{i}" for i in range(len(rows))], pa.large_string()), np.array(rows), scores)


def hits(run: Run) -> list[list[str]]:
    ids = run.corpus.ids.to_pylist()
    return [[ids[row] for row in rows if row != NO_HIT] for rows in run.rows.tolist()]


# D1


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_equal_scores_rank_in_descending_id_in_whatever_order_they_come(order):
    run = run_of(corpus_of(["c", "b", "a"]), [list(order)], [[0.5, 0.5, 0.5]])
    assert hits(run) == [["c", "b", "a"]]


def test_a_higher_score_comes_before_a_lower_row():
    assert hits(run_of(corpus_of(["c", "b", "a"]), [[0, 1, 2]], [[0.1, 0.5, 0.5]])) == [["b", "a", "c"]]


def test_missing_hits_come_last_with_a_score_of_minus_infinity():
    run = run_of(corpus_of(["b", "a"]), [[NO_HIT, 1, NO_HIT]], [[9.0, -1.0, 0.0]])
    assert run.rows.tolist() == [[1, NO_HIT, NO_HIT]]
    assert run.scores.tolist() == [[-1.0, -np.inf, -np.inf]]


def test_a_repeated_document_a_row_outside_the_corpus_and_a_score_that_is_no_number_are_refused():
    corpus = corpus_of(["b", "a"])
    with pytest.raises(DataError, match="same document twice"):
        run_of(corpus, [[1, 1]], [[0.2, 0.1]])
    with pytest.raises(DataError, match="corpus c has 2 documents"):
        run_of(corpus, [[0, 2]], [[0.2, 0.1]])
    with pytest.raises(DataError, match="1 hits have a score that is not a number"):
        run_of(corpus, [[0, 1]], [[0.2, np.nan]])
    with pytest.raises(DataError, match="do not belong together"):
        Run.of(corpus, pa.array(["q"], pa.large_string()), np.zeros((2, 1)), np.zeros((2, 1)))


def test_a_run_of_no_queries_and_one_of_no_hits_are_runs():
    corpus = corpus_of(["a"])
    assert len(Run.of(corpus, pa.array([], pa.large_string()), np.empty((0, 3)), np.empty((0, 3)))) == 0
    assert hits(run_of(corpus, [[NO_HIT]], [[0.0]])) == [[]]


# D5


def code_to_code(exclude_self: bool) -> tuple[Run, Queries]:
    """Case D5, searched as deep as one hit of each query needs."""
    corpus = corpus_of(["f3", "f2", "f1"])
    queries = Queries(queries_table(["f1", "f3"], ["", ""], [["f1"], ["f3"]] if exclude_self else None))
    rows = np.array([[2, 1, 0], [0, 2, 1]])  # f1, f2, f3 and f3, f1, f2
    scores = np.array([[1.0, 0.9, 0.8], [1.0, 0.7, 0.1]])
    depth = 1 + queries.largest_exclusion
    return Run.of(corpus, queries.ids, rows[:, :depth], scores[:, :depth]), queries


def test_a_query_that_is_a_document_does_not_find_itself_but_others_do():
    run, queries = code_to_code(exclude_self=True)
    assert hits(run.without(queries.table["excluded"]).top(1)) == [["f2"], ["f1"]]


def test_without_exclusion_every_such_query_finds_itself_first():
    run, queries = code_to_code(exclude_self=False)
    assert hits(run.without(queries.table["excluded"]).top(1)) == [["f1"], ["f3"]]


def test_a_query_id_that_happens_to_be_a_document_id_drops_nothing():
    corpus = corpus_of(["8", "7"])
    queries = Queries(queries_table(["7"], ["text"]))
    assert queries.largest_exclusion == 0
    run = Run.of(corpus, queries.ids, np.array([[1, 0]]), np.array([[0.9, 0.1]]))
    assert hits(run.without(queries.table["excluded"])) == [["7", "8"]]


def test_hits_close_up_over_those_taken_out_and_a_query_may_lose_several_or_none():
    run = run_of(corpus_of(["d", "c", "b", "a"]), [[0, 1, 2, 3], [3, 2, 1, 0]], [[4, 3, 2, 1], [4, 3, 2, 1]])
    excluded = queries_table(["q0", "q1"], ["", ""], [["d", "b", "unknown"], []])["excluded"]
    left = run.without(excluded)
    assert hits(left) == [["c", "a"], ["a", "b", "c", "d"]]
    assert left.scores[0].tolist() == [3, 1, -np.inf, -np.inf]


def test_a_copy_under_another_id_is_not_the_query_itself():
    run = run_of(corpus_of(["b", "a"], texts=["same", "same"]), [[0, 1]], [[1.0, 1.0]])
    assert hits(run.without(queries_table(["a"], [""], [["a"]])["excluded"])) == [["b"]]


def test_exclusion_works_on_columns_of_several_chunks():
    run = run_of(corpus_of(["b", "a"]), [[0, 1], [0, 1]], [[1.0, 0.5], [1.0, 0.5]])
    halves = [queries_table([q], [""], [[d]])["excluded"].chunk(0) for q, d in (("q0", "b"), ("q1", "a"))]
    assert hits(run.without(pa.chunked_array(halves))) == [["a"], ["b"]]


# D4


def test_the_title_joins_the_text_by_one_space_where_both_are_asked_for():
    corpus = corpus_of(["a"], ["binary search"], ["def f(a, x): ..."])
    assert corpus.texts(("text",)).to_pylist() == ["def f(a, x): ..."]
    assert corpus.texts(("title", "text")).to_pylist() == ["binary search def f(a, x): ..."]


@pytest.mark.parametrize("title", [None, ""])
def test_a_title_that_is_missing_or_empty_leaves_only_the_text(title):
    assert corpus_of(["a"], [title], ["x"]).texts(("title", "text")).to_pylist() == ["x"]


def test_a_document_whose_fields_are_all_empty_keeps_its_row():
    corpus = corpus_of(["c", "b", "a"], ["t", "", ""], ["x", "", "z"])
    assert corpus.texts(("title", "text")).to_pylist() == ["t x", "", "z"]


def test_fields_that_are_not_there_are_refused():
    table = corpus_of(["a"]).table
    with pytest.raises(DataError, match="wanted one or both of title, text"):
        assemble(table, ("body",))
    with pytest.raises(DataError, match="wanted one or both of title, text"):
        assemble(table, ())


def test_texts_of_some_rows_are_those_rows_of_all_texts():
    corpus = corpus_of(["c", "b", "a"], ["t", "", "u"], ["x", "y", "z"])
    assert corpus.texts(("title", "text"), slice(1, 3)).to_pylist() == ["y", "u z"]


def test_rows_of_ids_and_no_hit_where_there_is_none():
    corpus = corpus_of(["c", "b", "a"])
    assert corpus.rows_of(pa.array(["a", "x", "c"], pa.large_string())).tolist() == [2, NO_HIT, 0]


# Identity


def test_the_digest_sees_every_field_and_no_chunk():
    one = corpus_of(["b", "a"], ["", "t"], ["x", "y"])
    halves = pa.concat_tables([one.table.slice(0, 1), one.table.slice(1, 1)])
    assert Corpus("other name", halves).digest == one.digest
    others = [
        corpus_of(["b", "aa"], ["", "t"], ["x", "y"]),
        corpus_of(["b", "a"], ["", "u"], ["x", "y"]),
        corpus_of(["b", "a"], ["", "t"], ["xy", ""]),
        corpus_of(["b", "a"], ["t", ""], ["x", "y"]),
    ]
    assert len({each.digest for each in others} | {one.digest}) == 5


def test_the_digest_of_a_slice_is_that_of_its_rows():
    whole = corpus_of(["c", "b", "a"])
    assert Corpus("c", whole.table.slice(1, 2)).digest == corpus_of(["b", "a"]).digest


def test_a_digest_may_be_made_batch_by_batch():
    table = qrels_table(["q"], ["d"]).select(["query_id", "document_id"])
    twice = pa.concat_tables([table, table])
    streamed = TableDigest(table.schema).update(table).update(table)
    assert streamed.hexdigest() == TableDigest(table.schema).update(twice).hexdigest()
