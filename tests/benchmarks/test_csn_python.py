import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet.benchmarks import benchmark, csn_python
from coderet.corpora import store
from coderet.records import DataError

METHOD = 'def walk(self):\n        """Walk.\n\n        Slowly.\n        """\n        return 1'


def function(name, docstring="Doc.", code=None, path="a/b.py", repo="o/r", split="test"):
    return {
        "url": f"https://github.com/{repo}/{path}",
        "repo": repo,
        "path": path,
        "func_name": name,
        "docstring": docstring,
        "code": code or f'def {name}():\n    """{docstring}"""\n    return 0',
        "docstring_tokens": [],
        "code_tokens": [],
        "language": "python",
        "partition": split,
    }


def write_shards(folder, **splits):
    """Shards of each split, each a list of records, packed."""
    for split, shards in splits.items():
        place = folder / "codesearchnet" / "python" / "final" / "jsonl" / split
        place.mkdir(parents=True, exist_ok=True)
        for number, records in enumerate(shards):
            lines = "".join(json.dumps(each) + "\n" for each in records)
            (place / f"python_{split}_{number}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three test functions, two of one name, in two shards; one function each of train and valid."""
    monkeypatch.setattr(csn_python, "ROWS", {"train": 1, "valid": 1, "test": 3})
    first, again = function("f", "First."), function("f", "Again.")
    write_shards(
        tmp_path,
        train=[[function("t", repo="o/train", split="train")]],
        valid=[[function("v", repo="o/valid", split="valid")]],
        test=[[first, function("C.walk", "Walk.\n\nSlowly.", METHOD)], [again]],
    )
    return tmp_path


def asked(draft):
    return dict(zip(draft.queries["id"].to_pylist(), draft.queries["text"].to_pylist(), strict=True))


def test_the_docstring_is_the_query_and_taken_out_of_the_document(folder, documents_of):
    (draft,) = benchmark("csn-python").collect(folder)
    assert asked(draft) == {
        "o/r_a/b.py_f_doc": "First.",
        "o/r_a/b.py_C.walk_doc": "Walk.\n\nSlowly.",
        "o/r_a/b.py_f#2_doc": "Again.",
    }
    documents = documents_of(draft)
    assert documents["o/r_a/b.py_f_code"] == {
        "id": "o/r_a/b.py_f_code",
        "title": "f",
        "text": "def f():\n    return 0",
    }
    assert documents["o/r_a/b.py_C.walk_code"]["text"] == "def walk(self):\n        return 1"
    assert [(row["query_id"][:-4], row["document_id"][:-5]) for row in draft.qrels.to_pylist()] == [
        (name[:-4], name[:-4]) for name in asked(draft)
    ]


def test_with_docstring_the_document_is_the_function_as_released(folder, documents_of):
    (draft,) = benchmark("csn-python-docstring").collect(folder)
    documents = documents_of(draft)
    assert documents["o/r_a/b.py_C.walk_code"]["text"] == METHOD and len(documents) == 3


def test_the_paper_searches_all_splits_and_the_last_of_one_id_stands_for_all(folder, documents_of, tmp_path):
    (draft,) = benchmark("csn-python-paper").collect(folder)
    documents = documents_of(draft)
    assert list(documents) == [
        f"o/{each}_code" for each in ("train_a/b.py_t", "valid_a/b.py_v", "r_a/b.py_C.walk", "r_a/b.py_f")
    ]
    assert "Again." in documents["o/r_a/b.py_f_code"]["text"]
    assert asked(draft) == {"o/r_a/b.py_C.walk_doc": "Walk.\n\nSlowly.", "o/r_a/b.py_f_doc": "Again."}
    store.write_benchmark(tmp_path / "b", benchmark("csn-python-paper").collect(folder))
    assert len(store.read_corpus(tmp_path / "b", "csn-python")) == 4


def test_the_hubs_data_set_gives_the_same(folder, documents_of):
    (of_shards,) = benchmark("csn-python-paper").collect(folder)
    wanted = documents_of(of_shards)
    names = {"train": "train", "valid": "validation", "test": "test"}
    tables = {names[split]: pa.Table.from_batches(csn_python.functions(folder, split)) for split in names}
    place = folder / "code_search_net" / "python"
    place.mkdir(parents=True)
    for name, table in tables.items():
        pq.write_table(table.rename_columns(csn_python._OF_HUB), place / f"{name}-00000-of-00001.parquet")
    write_shards(folder, test=[[function("other")]])  # which is not read any more
    (of_hub,) = benchmark("csn-python-paper").collect(folder)
    assert documents_of(of_hub) == wanted and of_hub.queries == of_shards.queries


def test_occurrences_are_counted_and_the_last_is_told():
    nth, last = csn_python.occurrences(pa.chunked_array([["a", "b"], ["a", "c", "a"]], pa.large_string()))
    assert nth.tolist() == [1, 1, 2, 1, 3] and last.tolist() == [False, True, False, True, True]


def test_what_is_no_python_function_stays_as_it_is():
    for code in ("", "lambda: 0", "def f(:\n", 'x = """doc"""', "(" * 3000):
        assert csn_python.without_docstring(code) == code
    assert csn_python.without_docstring('def f():\n    """Only this."""') == "def f():\n    pass"
    assert (
        csn_python.without_docstring("@wraps(g)\ndef f():\n    'doc'\n    return 'é'")
        == "@wraps(g)\ndef f():\n    return 'é'"
    )


def test_missing_shards_and_other_files_are_refused(folder):
    test = folder / "codesearchnet" / "python" / "final" / "jsonl" / "test"
    (test / "python_test_0.jsonl.gz").rename(test / "python_test_2.jsonl.gz")
    with pytest.raises(DataError, match="lacks shard 0 of python_test, but has 2; fetch the rest"):
        list(benchmark("csn-python").collect(folder))
    (test / "python_test_2.jsonl.gz").rename(test / "python_test_0.jsonl.gz")
    write_shards(folder, test=[[function("f")]])
    with pytest.raises(DataError, match="has 2 functions of test, expected 3"):
        list(benchmark("csn-python").collect(folder))
    write_shards(folder, test=[[{"nl": "x"}]])
    with pytest.raises(DataError, match="line 1 has no language as it should be"):
        list(benchmark("csn-python").collect(folder))


def test_the_paths_of_the_three_are_told_apart():
    choices = {name: dict(benchmark(name).choices) for name in csn_python.BENCHMARKS}
    assert len({tuple(each.values()) for each in choices.values()}) == 3
