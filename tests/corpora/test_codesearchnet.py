"""CodeSearchNet as released: shards and pickles."""

import gzip
import json
import pickle

import pyarrow as pa
import pytest

from coderet.corpora import codesearchnet
from coderet.records import DataError


def function(number, language="ruby", split="test"):
    return {
        "repo": "ants/hill",
        "path": "lib/hill.rb",
        "func_name": f"Hill.dig_{number}",
        "original_string": "def dig",
        "language": language,
        "code": f"def dig_{number}\n  {number}\nend",
        "code_tokens": ["def", f"dig_{number}", str(number), "end"],
        "docstring": "Digs a hole.\n\nDeeply.",
        "docstring_tokens": ["Digs", "a", "hole", "."],
        "sha": "0" * 40,
        "url": f"https://github.com/ants/hill/blob/{'0' * 40}/lib/hill.rb#L{number}-L{number + 2}",
        "partition": split,
    }


def put(folder, number, functions, language="ruby", split="test"):
    path = folder / language / "final" / "jsonl" / split / f"{language}_{split}_{number}.jsonl.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in functions).encode()))
    return path


def definition(number, language="ruby"):
    found = function(number, language)
    return {
        "nwo": found["repo"],
        "identifier": found["func_name"],
        "parameters": "",
        "argument_list": "",
        "return_statement": "",
        "docstring_summary": "Digs a hole.",
        "function": found["code"],
        "function_tokens": found["code_tokens"],
        "score": 0.5,
        **{key: found[key] for key in ("sha", "path", "language", "docstring", "docstring_tokens", "url")},
    }


def names(batches):
    return pa.Table.from_batches(batches)["name"].to_pylist()


def test_functions_come_in_columns(tmp_path):
    put(tmp_path, 0, [function(1)])
    (batch,) = codesearchnet.functions(tmp_path, "ruby", "test")
    assert batch.to_pylist() == [
        {
            "url": function(1)["url"],
            "repository": "ants/hill",
            "path": "lib/hill.rb",
            "name": "Hill.dig_1",
            "docstring": "Digs a hole.\n\nDeeply.",
            "code": "def dig_1\n  1\nend",
            "docstring_tokens": ["Digs", "a", "hole", "."],
            "code_tokens": ["def", "dig_1", "1", "end"],
        }
    ]


def test_shards_are_read_sorted_as_text_as_the_released_code_reads_them(tmp_path):
    for number in range(11):
        put(tmp_path, number, [function(number)])
    assert names(codesearchnet.functions(tmp_path, "ruby", "test")) == [
        f"Hill.dig_{number}" for number in (0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9)
    ]


def test_batches_are_of_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr(codesearchnet, "ROWS_A_BATCH", 2)
    put(tmp_path, 0, [function(number) for number in range(5)])
    assert [len(batch) for batch in codesearchnet.functions(tmp_path, "ruby", "test")] == [2, 2, 1]


def test_a_shard_missing_between_others_is_told(tmp_path):
    put(tmp_path, 0, [function(1)])
    put(tmp_path, 3, [function(2)])
    with pytest.raises(DataError, match="lacks shard 1 of ruby_test, but has 3"):
        list(codesearchnet.functions(tmp_path, "ruby", "test"))


def test_a_shard_cut_short_is_told(tmp_path):
    path = put(tmp_path, 0, [function(number) for number in range(50)])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"ruby_test_0.jsonl.gz is not whole"):
        list(codesearchnet.functions(tmp_path, "ruby", "test"))


def test_an_empty_folder_and_one_of_another_language_are_told(tmp_path):
    with pytest.raises(DataError, match=r"has no ruby_test_<n>.jsonl.gz but nothing; unpack ruby.zip"):
        list(codesearchnet.functions(tmp_path, "ruby", "test"))
    put(tmp_path, 0, [function(1, "go")])
    with pytest.raises(DataError, match=r"ruby_test_0.jsonl, line 1 is of go test, wanted ruby test"):
        list(codesearchnet.functions(tmp_path, "ruby", "test"))


def test_functions_of_another_split_are_refused(tmp_path):
    put(tmp_path, 0, [function(1, split="train")])
    with pytest.raises(DataError, match="is of ruby train, wanted ruby test"):
        list(codesearchnet.functions(tmp_path, "ruby", "test"))


def test_a_record_that_lacks_a_field_is_refused(tmp_path):
    put(tmp_path, 0, [{"language": "ruby", "partition": "test", "text": "no function"}])
    with pytest.raises(DataError, match="has no url as it should be"):
        list(codesearchnet.functions(tmp_path, "ruby", "test"))


def test_a_pickle_gives_the_same_columns(tmp_path):
    put(tmp_path, 0, [function(1), function(2)])
    (tmp_path / "ruby_dedupe_definitions_v2.pkl").write_bytes(pickle.dumps([definition(1), definition(2)], 3))
    assert list(codesearchnet.definitions(tmp_path, "ruby")) == list(codesearchnet.functions(tmp_path, "ruby", "test"))


def test_a_pickle_of_another_language_is_refused(tmp_path):
    (tmp_path / "ruby_dedupe_definitions_v2.pkl").write_bytes(pickle.dumps([definition(1, "go")]))
    with pytest.raises(DataError, match="function 0 is of go, wanted ruby"):
        list(codesearchnet.definitions(tmp_path, "ruby"))


def test_half_of_a_pickle_is_refused(tmp_path):
    content = pickle.dumps([definition(number) for number in range(100)])
    (tmp_path / "ruby_dedupe_definitions_v2.pkl").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="is no whole pickle"):
        list(codesearchnet.definitions(tmp_path, "ruby"))


def test_text_that_is_no_unicode_is_refused(tmp_path):
    put(tmp_path, 0, [function(1) | {"code": "\ud800"}])
    with pytest.raises(DataError, match=r"line 1 is not JSON that can be read .* surrogates"):
        list(codesearchnet.functions(tmp_path, "ruby", "test"))
