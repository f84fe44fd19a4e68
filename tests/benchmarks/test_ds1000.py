import json

import pytest

from coderet.benchmarks import benchmark
from coderet.corpora import store
from coderet.records import DataError

CORPUS = [{"doc_id": "a", "doc_content": "A."}, {"doc_id": "b", "doc_content": "B."}]


def task(prompt, library, origin, *gold):
    docs = [{"title": title, "text": "short"} for title in gold]
    own = {"reference_code": "pass", "code_context": f"# of {prompt}"}
    return own | {"prompt": prompt, "metadata": {"library": library, "perturbation_origin_id": origin}, "docs": docs}


TASKS = [
    task("first\n", "Pandas", 0, "a"),
    task("a variant", "Pandas", 0, "a", "b"),
    task("the last variant", "Pandas", 0),
    task("other", "Numpy", 0, "b"),
    task("no gold", "Numpy", 4),
]


@pytest.fixture
def folder(write_lines):
    write_lines("neulab/docprompting-conala/conala-docs.jsonl", CORPUS)
    return write_lines("coderag_bench/canonical/ds1000_docs.json", TASKS)


def asked(draft):
    return dict(zip(draft.queries["id"].to_pylist(), draft.queries["text"].to_pylist(), strict=True))


def judged(draft):
    return {(row["query_id"], row["document_id"]) for row in draft.qrels.to_pylist()}


def test_every_task_is_asked_whole_with_its_own_gold(folder):
    (draft,) = benchmark("ds1000").collect(folder)
    assert asked(draft) == {
        "0_Pandas_0": "first\n",
        "1_Pandas_0": "a variant",
        "2_Pandas_0": "the last variant",
        "3_Numpy_0": "other",
        "4_Numpy_4": "no gold",
    }
    assert judged(draft) == {("0_Pandas_0", "0"), ("1_Pandas_0", "0"), ("1_Pandas_0", "1"), ("3_Numpy_0", "1")}


def test_the_paper_asks_the_last_variant_for_the_gold_of_all(folder):
    (draft,) = benchmark("ds1000-paper").collect(folder)
    assert asked(draft) == {"Pandas_0": "the last variant", "Numpy_0": "other", "Numpy_4": "no gold"}
    assert judged(draft) == {("Pandas_0", "0"), ("Pandas_0", "1"), ("Numpy_0", "1")}
    assert draft.queries_expected == 453


@pytest.mark.parametrize("kind", ["ds1000", "ds1000-paper"])
def test_every_task_is_a_problem_judged_by_its_own_test(kind, folder):
    (draft,) = benchmark(kind).collect(folder)
    ids = draft.problems["id"].to_pylist()
    assert ids == ["0_Pandas_0", "1_Pandas_0", "2_Pandas_0", "3_Numpy_0", "4_Numpy_4"]
    assert json.loads(draft.problems["problem"][1].as_py())["code_context"] == "# of a variant"
    own = [each.partition("_")[2] for each in ids] if kind == "ds1000-paper" else ids
    assert draft.problems["query_id"].to_pylist() == own


def test_another_file_is_refused(folder, write_lines):
    write_lines("coderag_bench/canonical/ds1000_docs.json", [{"prompt": "x", "metadata": {}}])
    with pytest.raises(DataError, match="not CodeRAG-Bench's file of DS-1000: record 0 lacks code_context"):
        list(benchmark("ds1000").collect(folder))


@pytest.mark.parametrize(
    ("kind", "queries", "with_gold", "gold"),
    [("ds1000-devdocs", 1000, 513, 740), ("ds1000-devdocs-paper", 453, 267, 461)],
)
def test_1000_tasks_or_453_origins(kind, queries, with_gold, gold, devdocs):
    dataset = store.read_dataset(devdocs("devdocs"), kind)
    qrels = dataset.qrels.table
    assert (len(dataset.queries), len(set(qrels["query_id"].to_pylist())), len(qrels)) == (queries, with_gold, gold)
