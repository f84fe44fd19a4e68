import pytest

from coderet.benchmarks import benchmark, mbpp
from coderet.corpora import store
from coderet.corpora.released import json_lines
from coderet.records import DataError

PROBLEMS = [
    {"task_id": 1, "text": "Add one.", "code": "def add_one(n):\r\n\treturn n + 1"},
    {
        "task_id": 11,
        "text": "Double a number.",
        "code": "FACTOR = 2\ndef double (n):\n    return FACTOR * n\ndef g(): 0",
    },
    {"task_id": 12, "text": "Give zero.", "code": "zero = lambda: 0"},
    {"task_id": 511, "text": "Halve.", "code": "def halve(n): return n / 2"},
    {"task_id": 974, "text": "Negate.", "code": "def negate(n): return -n"},
]


def test_the_document_is_the_task_as_a_comment_and_its_solution(write_lines, documents_of):
    (draft,) = benchmark("mbpp").collect(write_lines("mbpp/mbpp.jsonl", PROBLEMS))
    assert documents_of(draft) == {
        "11_code": {
            "id": "11_code",
            "title": "double ",  # with its blank, as published
            "text": "# Double a number.\nFACTOR = 2\ndef double (n):\n    return FACTOR * n\ndef g(): 0",
        },
        "12_code": {"id": "12_code", "title": "", "text": "# Give zero.\nzero = lambda: 0"},
    }
    assert draft.queries.to_pylist() == [
        {"id": "11_doc", "text": "Double a number.", "excluded": [], "withheld": ["11_code"]},
        {"id": "12_doc", "text": "Give zero.", "excluded": [], "withheld": ["12_code"]},
    ]
    assert draft.qrels.to_pylist() == [
        {"query_id": "11_doc", "document_id": "11_code", "grade": 1.0},
        {"query_id": "12_doc", "document_id": "12_code", "grade": 1.0},
    ]


def test_the_papers_corpus_has_train_and_validation_too_but_not_the_ten_prompts(write_lines, documents_of):
    (draft,) = benchmark("mbpp-paper").collect(write_lines("mbpp/mbpp.jsonl", PROBLEMS))
    assert set(documents_of(draft)) == {"974_code", "511_code", "11_code", "12_code"}
    assert draft.queries["id"].to_pylist() == ["11_doc", "12_doc"]


def test_other_files_and_half_files_are_refused(write_lines, tmp_path):
    with pytest.raises(DataError, match="wanted task_id, text and code of MBPP"):
        list(benchmark("mbpp").collect(write_lines("mbpp/mbpp.jsonl", [{"task_id": "HumanEval/0"}])))
    with pytest.raises(DataError, match="has 2 documents, expected 500"):
        write_lines("mbpp/mbpp.jsonl", PROBLEMS)
        store.write_benchmark(tmp_path / "b", benchmark("mbpp").collect(tmp_path))


@pytest.mark.parametrize(("kind", "documents", "percent"), [("mbpp-paper", 964, 98.56), ("mbpp", 500, 99.21)])
def test_bm25_gives_the_papers_98_6_over_964_documents(kind, documents, percent, bm25_of, real_data, documents_of):
    (draft,) = benchmark(kind).collect(real_data)
    assert len(documents_of(draft)) == documents
    assert bm25_of(benchmark(kind), real_data)["mbpp"] == pytest.approx(percent, abs=0.005)


def test_titles_and_texts_are_those_that_coderag_bench_published(real_data, documents_of):
    (draft,) = benchmark("mbpp").collect(real_data)
    documents = documents_of(draft)
    published = {
        mbpp.solution_id(row): row["docs"][0]
        for row in json_lines(real_data, "coderag_bench/canonical/mbpp_solutions.json")
    }
    assert len(published) == 500
    different = {
        name for name, row in documents.items() if {"title": row["title"], "text": row["text"]} != published[name]
    }
    assert different == set()
