import json

import pytest

from coderet.benchmarks import benchmark, odex
from coderet.corpora import store
from coderet.records import DataError

CORPUS = [{"doc_id": "a", "doc_content": "A."}, {"doc_id": "b", "doc_content": "B."}]
CODE = {
    "prompt": "def f_77(x):\n\treturn ",
    "suffix": "",
    "canonical_solution": "sorted(x)",
    "test_start": "\ndef check(candidate):",
    "test": ["\n    assert candidate([2, 1]) == [1, 2]\n"],
    "entry_point": "f_77",
    "library": [],
}
TASKS = [
    CODE
    | {"task_id": 77, "intent": "sort `x`", "docs": [{"title": "b", "text": "B, short"}, {"title": "a", "text": "A"}]},
    CODE | {"task_id": 77, "intent": "do nothing", "docs": []},
    CODE | {"task_id": 78, "intent": "twice", "docs": [{"title": "a", "text": "A"}, {"title": "a", "text": "A"}]},
]


@pytest.fixture
def folder(write_lines):
    write_lines("neulab/docprompting-conala/conala-docs.jsonl", CORPUS)
    return write_lines("coderag_bench/canonical/odex_docs.json", TASKS)


def test_the_query_is_the_intent_and_gold_is_found_by_title(folder, documents_of):
    (draft,) = benchmark("odex").collect(folder)
    assert draft.queries.select(["id", "text"]).to_pylist() == [
        {"id": "0_77", "text": "sort `x`"},
        {"id": "1_77", "text": "do nothing"},
        {"id": "2_78", "text": "twice"},
    ]
    assert [tuple(row.values()) for row in draft.qrels.to_pylist()] == [
        ("0_77", "1", 1.0),
        ("0_77", "0", 1.0),
        ("2_78", "0", 1.0),
    ]
    # The document is the corpus's text, not the shortened one of the gold.
    assert documents_of(draft)["1"] == {"id": "1", "title": "b", "text": "B."}
    assert (draft.documents_expected, draft.queries_expected) == (34_003, 439)


def test_another_file_is_refused(folder, write_lines):
    write_lines("coderag_bench/canonical/odex_docs.json", [{"task_id": "HumanEval/0", "docs": []}])
    with pytest.raises(DataError, match="is not the file of ODEX that is wanted: record 0 lacks canonical_solution"):
        list(benchmark("odex").collect(folder))


def test_a_problem_has_its_querys_id_for_task_ids_are_not_unique(folder):
    (draft,) = benchmark("odex").collect(folder)
    assert draft.problems["id"].to_pylist() == draft.problems["query_id"].to_pylist() == ["0_77", "1_77", "2_78"]
    assert json.loads(draft.problems["problem"][1].as_py()) == CODE | {"intent": "do nothing"}


def test_a_language_without_gold_is_there_to_be_answered(folder, write_lines):
    asked = CODE | {"task_id": 5, "intent": "並べ替える"}
    write_lines("odex/ja_test.jsonl", [asked])
    (draft,) = benchmark("odex-ja").collect(folder)
    assert draft.queries["text"].to_pylist() == ["並べ替える"] and not draft.judged and draft.queries_expected == 164
    assert json.loads(draft.problems["problem"][0].as_py())["intent"] == "並べ替える"


def test_the_hard_tasks_alone_can_be_posed(folder, write_lines):
    task_id = int(odex.HARD[0].partition("_")[2])
    write_lines("coderag_bench/canonical/odex_docs.json", [TASKS[1]] * 15 + [TASKS[1] | {"task_id": task_id}])
    (draft,) = benchmark("odex").collect(folder, posed="odex-hard")
    assert draft.problems["id"].to_pylist() == ["15_29784889"] and (draft.posed, draft.problems_expected) == (
        "odex-hard",
        29,
    )
    assert len(draft.queries) == 16


def test_the_hard_tasks_are_a_fixed_list_of_29(devdocs):
    queries = store.read_dataset(devdocs("devdocs"), "odex-devdocs").queries.ids.to_pylist()
    assert len(set(odex.HARD)) == 29 and set(odex.HARD) <= set(queries)


def test_439_queries_201_of_them_with_232_gold_documents(devdocs):
    dataset = store.read_dataset(devdocs("devdocs"), "odex-devdocs")
    qrels = dataset.qrels.table
    assert (len(dataset.corpus), len(dataset.queries), len(qrels)) == (35_728, 439, 232)
    assert len(set(qrels["query_id"].to_pylist())) == 201
