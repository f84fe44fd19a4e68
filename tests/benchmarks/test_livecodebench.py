import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet.benchmarks import benchmark, open_sources
from coderet.corpora import store
from coderet.records import DataError

TESTS = {
    "starter_code": "",
    "public_test_cases": '[{"input": "1", "output": "2", "testtype": "stdin"}]',
    "private_test_cases": "[]",
    "metadata": "{}",
}
QUESTIONS = [
    TESTS
    | {
        "question_id": "1873_A",
        "contest_id": "1873",
        "question_content": "Sort three cards.\n",
        "platform": "codeforces",
    },
    TESTS | {"question_id": "abc301_a", "contest_id": "abc301", "question_content": "Who wins?", "platform": "atcoder"},
]


@pytest.fixture
def solutions(monkeypatch):
    """Two programming solutions in place of 1,138."""

    def made(folder):
        yield pa.record_batch(
            [pa.array(each, pa.large_string()) for each in (["0", "1"], ["f", "g"], ["def f(): 0", "def g(): 1"])],
            ["id", "title", "text"],
        )

    source = open_sources.Source("programming-solutions", "programming-solutions", made)
    monkeypatch.setitem(open_sources.SOURCES, "programming-solutions", source)


def test_the_given_statements_are_asked_without_judgements(write_lines, solutions, documents_of):
    folder = write_lines("livecodebench/problems_2023-05_2024-12.jsonl", QUESTIONS)
    (draft,) = benchmark("livecodebench-873").collect(folder)
    assert draft.queries.select(["id", "text"]).to_pylist() == [
        {"id": "1873_A__1873", "text": "Sort three cards.\n"},
        {"id": "abc301_a__abc301", "text": "Who wins?"},
    ]
    assert len(draft.qrels) == 0 and not draft.judged and benchmark("livecodebench-873").metrics == ()
    assert set(documents_of(draft)) == {"0", "1"}
    assert (draft.documents_expected, draft.queries_expected) == (1138, 873)
    assert draft.problems is None  # they come without tests


def test_the_400_of_release_1_are_read_from_the_hubs_layout(tmp_path, solutions):
    place = tmp_path / "livecodebench" / "code_generation" / "data"
    place.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(QUESTIONS), place / "test-00000-of-00001.parquet")
    (draft,) = benchmark("livecodebench").collect(tmp_path)
    assert draft.queries["id"].to_pylist() == ["1873_A__1873", "abc301_a__abc301"] and draft.queries_expected == 400
    assert draft.problems["id"].to_pylist() == draft.queries["id"].to_pylist() and draft.problems_expected == 400
    assert json.loads(draft.problems["problem"][1].as_py()) == TESTS | {"question_content": "Who wins?"}


def test_a_question_without_text_is_not_asked_as_none(tmp_path, solutions):
    place = tmp_path / "livecodebench" / "code_generation" / "data"
    place.mkdir(parents=True)
    lacking = [QUESTIONS[0], QUESTIONS[1] | {"question_content": None}]
    pq.write_table(pa.Table.from_pylist(lacking), place / "test-00000-of-00001.parquet")
    with pytest.raises(DataError, match="a question lacks one of question_id, contest_id, question_content"):
        list(benchmark("livecodebench").collect(tmp_path))


def test_another_file_is_refused(write_lines, solutions):
    folder = write_lines("livecodebench/problems_2023-05_2024-12.jsonl", [{"prompt": "x"}])
    with pytest.raises(DataError, match=r"has no question_id as it should be, but \['prompt'\]"):
        list(benchmark("livecodebench-873").collect(folder))


def test_873_statements_over_1138_solutions(real_data, tmp_path):
    store.write_benchmark(tmp_path / "b", benchmark("livecodebench-873").collect(real_data))
    dataset = store.read_dataset(tmp_path / "b", "livecodebench")
    assert (len(dataset.corpus), len(dataset.queries), len(dataset.qrels)) == (1138, 873, 0)
