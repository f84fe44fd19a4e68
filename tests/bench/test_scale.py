"""The made-up corpus of bench/scale.py."""

import ast
import importlib.util
import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from coderet.corpora import exchange
from coderet.records import PAIRS

CODES = {
    "Reader.read_all": 'def read_all(self, path):\n    text = open(path).read()\n    return f"{path}: {text}"',
    "size": "def size(rows):\n    return {len(row) for row in rows}",
}


@pytest.fixture(scope="module")
def scale():
    spec = importlib.util.spec_from_file_location("scale", Path(__file__).parents[2] / "bench" / "scale.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["scale"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["scale"]


@pytest.fixture
def copies(scale):
    count = len(CODES)
    texts = {"name": list(CODES), "code": list(CODES.values()), "query": ["Read the whole file", "Count the rows"]}
    others = {name: [name] * count for name in ("pair_id", "repository", "path", "language")}
    lines = {"start_line": [1] * count, "end_line": [2] * count}
    return scale.Copies(pa.table(texts | others | lines).select(PAIRS.names).cast(PAIRS))


def test_there_are_as_many_copies_as_asked_for_all_different_and_all_sound(copies):
    made = list(copies.of(101))
    assert len(made) == len({code for _, code, _ in made}) == 101
    for name, code, query in made:
        [function] = ast.parse(code).body
        assert function.name == name
        assert query.startswith(("Read the whole file", "Count the rows"))


def test_only_what_a_function_binds_is_renamed_and_everywhere(copies):
    name, code, _ = next(copies.of(2))
    assert name.startswith("read_all_")
    assert code.startswith(f"def {name}(self, path_") and "open(path_" in code and ").read()" in code
    assert code.count("text_") == 2 and code.count("path_") == 3


def test_the_folder_is_in_beir_form_with_a_query_for_every_so_many_documents(scale, copies, tmp_path):
    scale.write_beir(tmp_path, copies, documents=50, queries=7)
    documents = pa.Table.from_batches(exchange.beir_documents(tmp_path))
    qrels = exchange.beir_qrels(tmp_path, "test")
    queries = exchange.beir_queries(tmp_path, qrels["query_id"])
    assert (len(documents), len(set(documents["id"].to_pylist())), len(queries), len(qrels)) == (50, 50, 7, 7)
    assert set(qrels["document_id"].to_pylist()) < set(documents["id"].to_pylist())
    assert documents["id"].to_pylist() != sorted(documents["id"].to_pylist())
    assert json.loads((tmp_path / "corpus.jsonl").read_text().splitlines()[0])["title"].startswith("read_all_")
