import pytest

from coderet.benchmarks import benchmark
from coderet.corpora import store
from coderet.records import DataError

CORPUS = [{"doc_id": "a", "doc_content": "A."}, {"doc_id": "b", "doc_content": "B."}]
TASKS = [
    {"task_id": 77, "intent": "sort `x`", "docs": [{"title": "b", "text": "B, short"}, {"title": "a", "text": "A"}]},
    {"task_id": 77, "intent": "do nothing", "docs": []},
    {"task_id": 78, "intent": "twice", "docs": [{"title": "a", "text": "A"}, {"title": "a", "text": "A"}]},
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
    with pytest.raises(DataError, match="not CodeRAG-Bench's file of ODEX"):
        list(benchmark("odex").collect(folder))


def test_439_queries_201_of_them_with_232_gold_documents(devdocs):
    dataset = store.read_dataset(devdocs("devdocs"), "odex-devdocs")
    qrels = dataset.qrels.table
    assert (len(dataset.corpus), len(dataset.queries), len(qrels)) == (35_728, 439, 232)
    assert len(set(qrels["query_id"].to_pylist())) == 201
