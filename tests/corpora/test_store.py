import numpy as np
import pyarrow as pa
import pytest

from coderet.corpora import store
from coderet.records import (
    Corpus,
    DataError,
    Draft,
    Run,
    documents_batch,
    problems_table,
    qrels_table,
    queries_table,
)


def draft(documents=("a", "c", "b"), queries=("q1", "q2"), gold=(("q1", "a"), ("q2", "b")), **more):
    batch = documents_batch(documents, [None] * len(documents), [f"text of {each}" for each in documents])
    return Draft(
        "only",
        [batch],
        queries_table(queries, [f"text of {each}" for each in queries]),
        qrels_table([q for q, _ in gold], [d for _, d in gold]),
        **more,
    )


def test_documents_are_stored_in_descending_id(tmp_path):
    store.write_benchmark(tmp_path / "b", [draft()])
    assert store.read_corpus(tmp_path / "b", "only").ids.to_pylist() == ["c", "b", "a"]


def test_ids_are_ordered_by_bytes_as_trec_eval_does(tmp_path):
    store.write_corpus(tmp_path / "c.arrow", [documents_batch(["é", "z", "Z", "10", "9"], [""] * 5, [""] * 5)])
    assert store.read_table(tmp_path / "c.arrow")["id"].to_pylist() == ["é", "z", "Z", "9", "10"]


def test_a_corpus_is_put_in_order_without_being_held(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "ROWS_A_CHUNK", 300)
    order = np.random.default_rng(0).permutation(12_000)
    parts = [[f"{number:05}" for number in order[start : start + 500]] for start in range(0, len(order), 500)]
    batches = (documents_batch(part, [None] * 500, [f"text of {each}" + 2000 * "." for each in part]) for part in parts)
    pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        assert store.write_corpus(tmp_path / "c.arrow", batches) == 12_000
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 6_000_000 < (tmp_path / "c.arrow").stat().st_size / 4
    table = store.read_table(tmp_path / "c.arrow")
    assert table["id"].to_pylist() == [f"{number:05}" for number in reversed(range(12_000))]
    assert [text[:13] for text in table["text"].to_pylist()] == [f"text of {each}" for each in table["id"].to_pylist()]
    assert [len(chunk) for chunk in table["id"].chunks] == [300] * 40
    assert Corpus("c", table).digest == Corpus("c", table.replace_schema_metadata(None)).digest


def test_a_benchmark_reads_back_as_it_was_written(tmp_path):
    store.write_benchmark(tmp_path / "b", [draft(depth=7, metrics=("mrr",))])
    dataset = store.read_dataset(tmp_path / "b", "only")
    assert store.datasets(tmp_path / "b") == store.corpora(tmp_path / "b") == ["only"]
    assert (dataset.depth, dataset.metrics) == (7, ("mrr",))
    assert dataset.queries.texts.to_pylist() == ["text of q1", "text of q2"]
    assert dataset.qrels.table.to_pylist() == [
        {"query_id": "q1", "document_id": "a", "grade": 1.0},
        {"query_id": "q2", "document_id": "b", "grade": 1.0},
    ]


PROBLEMS = problems_table(["p1", "p2", "p3"], ["q1", "q1", "q2"], [{"ask": "a"}, {"ask": "é"}, {"tests": [1, 2]}])


def test_problems_read_back_as_they_were_written(tmp_path):
    store.write_benchmark(tmp_path / "b", [draft(problems=PROBLEMS, posed="some", answering="x:Y")])
    assert store.problem_sets(tmp_path / "b") == ["some"]
    problems = store.read_problems(tmp_path / "b", "some")
    assert (problems.dataset, problems.answering, len(problems)) == ("only", "x:Y", 3)
    assert problems.contents == [{"ask": "a"}, {"ask": "é"}, {"tests": [1, 2]}]
    assert problems.without(["p1"]).ids == ["p2", "p3"]
    with pytest.raises(DataError, match=r"answering.left_out.some names 'p9', which is no problem of it"):
        problems.without(["p9"])


def test_what_problems_share_stands_once_and_every_one_of_them_holds_it(tmp_path):
    store.write_benchmark(tmp_path / "b", [draft(problems=PROBLEMS, shared={"files": ["é"]})])
    problems = store.read_problems(tmp_path / "b", "only")
    assert problems.contents[0] == {"ask": "a", "shared": {"files": ["é"]}}
    assert problems.contents[0]["shared"] is problems.without(["p1"]).contents[1]["shared"]


def test_a_benchmark_without_problems_has_an_empty_folder_of_them(tmp_path):
    """DVC wants the output, and an empty folder adds nothing to the hash of the benchmarks."""
    store.write_benchmark(tmp_path / "b", [draft()])
    assert list((tmp_path / "b" / "problems").iterdir()) == []
    with pytest.raises(DataError, match=r"poses no problems; take b out of grid.answered"):
        store.problem_sets(tmp_path / "b")
    with pytest.raises(DataError, match=r"poses no problems called 'only'; it has: none"):
        store.read_problems(tmp_path / "b", "only")


@pytest.mark.parametrize(
    ("problems", "said"),
    [
        (problems_table(["p1", "p1"], ["q1", "q2"], [{}, {}]), "1 problem ids stand twice, 'p1' among them"),
        (problems_table(["p1", ""], ["q1", "q2"], [{}, {}]), "of 2 problems 1 have no id"),
        (problems_table(["p1"], ["q9"], [{}]), "1 of 1 problems name queries that there are not, 'q9' among them"),
        (problems_table([], [], []), "of 0 problems 0 have no id"),
    ],
)
def test_problems_that_are_not_whole_are_refused(tmp_path, problems, said):
    with pytest.raises(DataError, match=said):
        store.write_benchmark(tmp_path / "b", [draft(problems=problems)])
    with pytest.raises(DataError, match="only poses 3 problems, expected 4"):
        store.write_benchmark(tmp_path / "b", [draft(problems=PROBLEMS, problems_expected=4)])


def test_two_datasets_may_share_a_corpus(tmp_path):
    second = draft()._replace(name="again", documents="only")
    store.write_benchmark(tmp_path / "b", [draft(), second])
    assert store.corpora(tmp_path / "b") == ["only"]
    assert store.read_dataset(tmp_path / "b", "again").corpus.name == "only"


def test_a_mixture_has_the_documents_of_its_datasets_and_is_not_among_the_searched(tmp_path):
    other = draft(documents=("a",), gold=(("q1", "a"),))._replace(name="other")
    gold = qrels_table(["q1", "q2"], ["other/a", "only/b"])
    mixture = Draft("all", (), draft().queries, gold, mixed_of=("only", "other"))
    store.write_benchmark(tmp_path / "b", [draft(), other, mixture])
    assert store.corpora(tmp_path / "b") == ["only", "other"]
    assert store.datasets(tmp_path / "b") == ["only", "other", "all"]
    dataset = store.read_dataset(tmp_path / "b", "all")
    assert dataset.mixed_of == ("only", "other") == store.read_dataset(tmp_path / "b", "all", judged=False).mixed_of
    assert dataset.corpus.ids.to_pylist() == ["other/a", "only/c", "only/b", "only/a"]
    assert dataset.corpus.table["text"].to_pylist()[:2] == ["text of a", "text of c"]
    for part in ("only", "other"):
        found = store.read_dataset(tmp_path / "b", part)
        rows = np.zeros((2, 1), np.int64)
        run = Run.of(found.corpus, found.queries.ids, rows, np.ones((2, 1), np.float32))
        store.write_run(tmp_path / "runs" / f"{part}.arrow", run, {})
    parts = store.read_parts(tmp_path / "b", tmp_path / "runs", dataset)
    assert list(parts) == ["only", "other"] and len(parts["other"].corpus) == 1


@pytest.mark.parametrize(
    ("parts", "queries", "said"),
    [
        (
            ("only",),
            ("q1", "q2"),
            "all is mixed of only; wanted two or more of the datasets before it, .*: only, other",
        ),
        (("only", "only"), ("q1", "q2"), "all is mixed of only, only; wanted two or more"),
        (("only", "later"), ("q1", "q2"), "all is mixed of only, later; wanted two or more"),
        (("only", "other"), ("q2", "q1"), "all and only have different queries"),
    ],
)
def test_what_cannot_be_mixed_is_refused(tmp_path, parts, queries, said):
    mixture = draft(queries=queries)._replace(name="all", documents=(), mixed_of=parts)
    with pytest.raises(DataError, match=said):
        store.write_benchmark(tmp_path / "b", [draft(), draft()._replace(name="other"), mixture])


def test_the_digest_of_a_corpus_does_not_depend_on_the_order_it_came_in(tmp_path):
    forward = [documents_batch(["a", "b"], ["", "t"], ["x", "y"])]
    backward = [documents_batch(["b"], ["t"], ["y"]), documents_batch(["a"], [None], ["x"])]
    for name, batches in (("f", forward), ("b", backward)):
        store.write_corpus(tmp_path / "corpora" / f"{name}.arrow", batches)
    digests = {store.read_corpus(tmp_path, name).digest for name in "fb"}
    recomputed = Corpus("f", store.read_table(tmp_path / "corpora" / "f.arrow").replace_schema_metadata(None)).digest
    assert digests == {recomputed}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"documents": ("a", "b", "a")}, "1 document ids stand twice, 'a' among them"),
        ({"documents": ("a", "b", "")}, "a document has an empty id"),
        ({"queries": ("q1", "q1")}, "1 query ids stand twice, 'q1' among them"),
        ({"queries": ("q1", "")}, "a query has an empty id"),
        ({"gold": (("q1", "nowhere"),)}, "1 of 1 judgements name documents that there are not, 'nowhere' among them"),
        ({"gold": (("nobody", "a"),)}, "1 of 1 judgements name queries that there are not, 'nobody' among them"),
        ({"gold": (("q1", "a"), ("q1", "a"))}, "judged twice"),
        ({"documents_expected": 4}, "only has 3 documents, expected 4"),
        ({"queries_expected": 1}, "only has 2 queries, expected 1"),
    ],
)
def test_a_benchmark_that_would_give_wrong_numbers_is_refused_whole(tmp_path, change, said):
    with pytest.raises(DataError, match=said):
        store.write_benchmark(tmp_path / "b", [draft(**change)])
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_stays_when_the_new_benchmark_is_refused(tmp_path):
    store.write_benchmark(tmp_path / "b", [draft()])
    with pytest.raises(DataError):
        store.write_benchmark(tmp_path / "b", [draft(documents=("a", "a"))])
    assert store.read_corpus(tmp_path / "b", "only").ids.to_pylist() == ["c", "b", "a"]


def test_a_document_or_a_query_without_text_is_refused(tmp_path):
    """As joining tokens gives, where one of them is null."""
    bad = draft()._replace(documents=[documents_batch(["a", "b"], ["", ""], ["x", None])])
    with pytest.raises(DataError, match=r"only: 1 documents have no text, 'b' among them"):
        store.write_benchmark(tmp_path / "b", [bad])
    bad = draft()._replace(queries=queries_table(["q1", "q2"], [None, "x"]))
    with pytest.raises(DataError, match=r"only: 1 queries have no text, 'q1' among them"):
        store.write_benchmark(tmp_path / "b", [bad])


def test_a_grade_that_is_not_a_number_is_refused(tmp_path):
    bad = draft()._replace(qrels=qrels_table(["q1"], ["a"], [float("nan")]))
    with pytest.raises(DataError, match="1 judgements have a grade that is not a number"):
        store.write_benchmark(tmp_path / "b", [bad])


@pytest.mark.parametrize(("change", "said"), [({"documents": ()}, "2 queries and 0 d"), ({"queries": ()}, "0 queries")])
def test_questions_without_judgements_need_questions_and_documents(tmp_path, change, said):
    with pytest.raises(DataError, match=rf"only has {said}.* wanted some of both"):
        store.write_benchmark(tmp_path / "b", [draft(**change, gold=())._replace(judged=False)])


def test_a_run_reads_back_as_it_was_written(tmp_path):
    store.write_benchmark(tmp_path / "b", [draft()])
    corpus = store.read_corpus(tmp_path / "b", "only")
    run = Run.of(corpus, pa.array(["q1", "q2"]), np.array([[1, 0], [2, -1]]), np.array([[0.5, 0.5], [0.25, 9.0]]))
    store.write_run(tmp_path / "r.arrow", run, {"k1": 1.2})
    assert store.run_settings(tmp_path / "r.arrow") == {"k1": 1.2}
    again = store.read_run(tmp_path / "r.arrow", corpus)
    assert again.rows.tolist() == [[0, 1], [2, -1]]
    assert again.scores.tolist() == [[0.5, 0.5], [0.25, -np.inf]]
    assert again.query_ids.to_pylist() == ["q1", "q2"]


def test_a_run_of_no_queries_or_of_an_empty_corpus_reads_back(tmp_path):
    corpus = Corpus("none", pa.Table.from_batches([documents_batch([], [], [])]))
    run = Run.of(corpus, pa.array(["q"], pa.large_string()), np.empty((1, 0)), np.empty((1, 0)))
    store.write_run(tmp_path / "r.arrow", run, {})
    assert store.read_run(tmp_path / "r.arrow", corpus).rows.tolist() == [[-1]]


def test_a_run_is_not_read_onto_another_corpus(tmp_path):
    store.write_benchmark(tmp_path / "b", [draft()])
    store.write_benchmark(tmp_path / "c", [draft(documents=("a", "b", "d"))])
    corpus, other = (store.read_corpus(tmp_path / each, "only") for each in "bc")
    store.write_run(tmp_path / "r.arrow", Run.of(corpus, pa.array(["q1"]), np.array([[0]]), np.array([[1.0]])), {})
    with pytest.raises(DataError, match="made on another corpus"):
        store.read_run(tmp_path / "r.arrow", other)


def test_a_file_cut_short_is_an_error_that_names_it(tmp_path):
    store.write_corpus(tmp_path / "c.arrow", [documents_batch(["a"], [""], ["x" * 1000])])
    whole = (tmp_path / "c.arrow").read_bytes()
    (tmp_path / "c.arrow").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"c\.arrow is cut short"):
        store.read_table(tmp_path / "c.arrow")


def test_pairs_cut_short_are_an_error_that_names_them(tmp_path):
    row = ["p", "r", "f.py", "python", "f", "q", "c", 1, 2]
    table = pa.Table.from_pylist([dict(zip(store.PAIRS.names, row, strict=True))], schema=store.PAIRS)
    assert store.write_pairs(tmp_path / "p.parquet", [table]) == 1
    assert store.read_pairs(tmp_path / "p.parquet", ["code"])["code"].to_pylist() == ["c"]
    with pytest.raises(DataError, match=r"p\.parquet lacks source; it has the columns pair_id, repository"):
        store.read_pairs(tmp_path / "p.parquet", ["code", "source"])
    whole = (tmp_path / "p.parquet").read_bytes()
    (tmp_path / "p.parquet").write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"p\.parquet is cut short"):
        store.read_pairs(tmp_path / "p.parquet")


def test_json_refuses_a_number_that_is_not_finite(tmp_path):
    with pytest.raises(ValueError, match="Out of range float"):
        store.write_json(tmp_path / "x.json", {"ndcg": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_left_is_no_part_of_the_next_writing(tmp_path):
    left = tmp_path / ".made.partial"
    left.mkdir()
    (left / "old").touch()
    with store.new_folder(tmp_path / "made") as folder:
        (folder / "new").touch()
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["new"]
    assert not left.exists()


@pytest.mark.parametrize("content", ["{}", "[]", "[1]", "null"])
@pytest.mark.parametrize("part", ["corpora/corpora.json", "queries/datasets.json", "qrels/datasets.json"])
def test_a_list_of_another_shape_is_an_error_that_names_the_file(tmp_path, part, content):
    store.write_benchmark(tmp_path / "b", [draft()])
    (tmp_path / "b" / part).write_text(content)
    with pytest.raises(DataError, match=f"{part} .*run: dvc repro collect@b"):
        store.corpora(tmp_path / "b")
        store.read_dataset(tmp_path / "b", store.datasets(tmp_path / "b")[0])


def test_groups_cut_short_are_an_error_that_names_them(tmp_path):
    store.write_benchmark(tmp_path / "b", [draft()])
    store.write_duplicates(tmp_path / "b", "d", np.zeros(3))
    path = tmp_path / "b/qrels/d.groups.npy"
    for size in (0, path.stat().st_size - 1):
        path.write_bytes(path.read_bytes()[:size] if size else b"")
        with pytest.raises(DataError, match="is cut short"):
            store.read_duplicates(tmp_path / "b", "d")
        store.write_duplicates(tmp_path / "b", "d", np.zeros(3))


def test_a_dataset_of_questions_only_is_kept_if_it_says_so(tmp_path):
    unjudged = draft(gold=())
    with pytest.raises(DataError, match="none of 0 judgements"):
        store.write_benchmark(tmp_path / "b", [unjudged])
    store.write_benchmark(tmp_path / "b", [unjudged._replace(judged=False)])
    assert len(store.read_dataset(tmp_path / "b", "only").qrels) == 0


def test_the_packages_that_a_benchmark_is_made_of_are_kept_with_it(tmp_path):
    store.write_benchmark(tmp_path / "b", [draft()], ["flask", "attrs", "flask"])
    assert store.packages(tmp_path / "b") == ["attrs", "flask"]
