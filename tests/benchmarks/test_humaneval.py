import gzip

import pytest

from coderet.benchmarks import humaneval
from coderet.corpora import store
from coderet.records import DataError


def test_humaneval_has_164_queries_each_with_its_own_solution(real_data, tmp_path):
    assert store.write_benchmark(tmp_path / "b", humaneval.collect(real_data / "humaneval")) == ["humaneval"]
    dataset = store.read_dataset(tmp_path / "b", "humaneval")
    assert (len(dataset.corpus), len(dataset.queries), len(dataset.qrels)) == (164, 164, 164)
    row = dataset.corpus.rows_of(dataset.qrels.table["document_id"])[0]
    document = dataset.corpus.table.slice(row, 1).to_pylist()[0]
    query = dataset.queries.texts[0].as_py()
    assert document["id"] == "HumanEval/0_code" and document["title"] == "has_close_elements"
    assert document["text"].startswith(query + "\n    for idx, elem in enumerate(numbers):")


def test_another_file_of_that_name_is_refused(tmp_path):
    (tmp_path / "HumanEval.jsonl.gz").write_bytes(gzip.compress(b'{"task_id": "HumanEval/0"}\n'))
    with pytest.raises(DataError, match="is not HumanEval as published"):
        list(humaneval.collect(tmp_path))
