"""The files of a benchmark: where they are looked for, what is checked, what is said when one is missing."""

import gzip
import hashlib
import json

import pytest

from coderet.corpora import released
from coderet.records import DataError, Released

CONTENT = b'{"a": 1}\n{"a": 2}\n'
FILE = Released("x/lines.jsonl", hashlib.sha256(CONTENT).hexdigest(), how="ask its authors")


def _put(folder, name, content=CONTENT):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize("name", ["x/lines.jsonl", "x/lines.jsonl.gz"])
def test_what_a_person_put_there_is_kept_plain_or_packed(tmp_path, name):
    path = _put(tmp_path / "raw", name)
    (found,) = released.gather([FILE], tmp_path / "raw")
    assert found.state == "there" and found.place == str(path)
    assert [each["a"] for each in released.json_lines(tmp_path / "raw", "x/lines.jsonl")] == [1, 2]


def test_the_mirror_is_looked_in_second_and_copied(tmp_path):
    _put(tmp_path / "mirror", "x/lines.jsonl.gz")
    (found,) = released.gather([FILE], tmp_path / "raw", tmp_path / "mirror")
    assert found.state == "copied"
    assert list(released.json_lines(tmp_path / "raw", "x/lines.jsonl")) == [{"a": 1}, {"a": 2}]


def test_a_file_of_another_hash_is_refused_and_left_where_it_is(tmp_path):
    path = _put(tmp_path / "raw", "x/lines.jsonl", CONTENT + b"{}")
    with pytest.raises(DataError, match=r"has SHA-256 .*, wanted"):
        released.gather([FILE], tmp_path / "raw", tmp_path / "mirror")
    assert path.read_bytes() == CONTENT + b"{}"


def test_a_packed_file_cut_short_is_refused(tmp_path):
    path = _put(tmp_path / "raw", "x/lines.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="is not whole"):
        released.gather([FILE], tmp_path / "raw")


def test_what_cannot_be_had_is_named_with_where_it_comes_from(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "other.txt").write_text("of another benchmark")
    found = released.gather([FILE], tmp_path / "raw")
    assert [each.state for each in found] == ["missing"]
    with pytest.raises(DataError, match=r"(?s)odex lacks 1 of 1 files.*x/lines.jsonl: ask its authors.*other.txt"):
        released.require(found, "odex", tmp_path / "raw")


def test_an_address_that_refuses_is_a_missing_file_with_the_address(tmp_path):
    file = Released("a.txt", hashlib.sha256(b"a").hexdigest(), "url:http://127.0.0.1:9/a.txt")
    (found,) = released.gather([file], tmp_path / "raw")
    assert found.state == "missing" and "http://127.0.0.1:9/a.txt" in found.place


def test_a_line_that_is_no_json_is_named(tmp_path):
    _put(tmp_path, "bad.jsonl", b'{"a": 1}\n{"a": \n')
    with pytest.raises(DataError, match="line 2 is not JSON"):
        list(released.json_lines(tmp_path, "bad.jsonl"))


@pytest.mark.parametrize("bad", [rb'{"a": "\ud800"}', rb'{"a": "\uDC00 b"}', b'{"a": ' + b"[" * 100_000])
def test_json_that_no_column_takes_or_without_end_is_named(tmp_path, bad):
    _put(tmp_path, "bad.jsonl", rb'{"a": "\ud83d\ude00"}' + b"\n" + bad)
    with pytest.raises(DataError, match=r"bad.jsonl, line 2 is not JSON that can be read"):
        list(released.json_lines(tmp_path, "bad.jsonl"))
    _put(tmp_path, "bad.json", bad)
    with pytest.raises(DataError, match=r"bad.json is not JSON that can be read"):
        released.json_whole(tmp_path, "bad.json")


def test_a_mirror_that_is_no_folder_is_told_instead_of_missing_files(tmp_path, monkeypatch):
    monkeypatch.setenv(released.MIRROR, str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"CODERET_DATA names .*nowhere, which is no folder"):
        released.mirror()


def test_official_files_of_a_kind_that_has_none_are_an_error(tmp_path):
    with pytest.raises(DataError, match=r"my-data is of a kind that names no files .* name its files under source"):
        released.require([], "my-data", tmp_path)
    (tmp_path / "corpus.jsonl").write_text("put there by hand")
    released.require([], "my-data", tmp_path)


def test_a_folder_of_the_mirror_is_copied_whole_or_not_at_all(tmp_path):
    """What is half there would count as done the next time: a folder of a hub has no hash to tell."""
    folder = Released("hub/data/", None, how="from its hub")
    _put(tmp_path / "mirror", "hub/data/a.jsonl")
    (tmp_path / "mirror/hub/data/b.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"hub/data cannot be copied whole"):
        released.gather([folder], tmp_path / "raw", tmp_path / "mirror")
    assert [path for path in (tmp_path / "raw").rglob("*") if path.is_file()] == []
    (tmp_path / "nowhere").write_bytes(CONTENT)
    (found,) = released.gather([folder], tmp_path / "raw", tmp_path / "mirror")
    assert found.state == "copied" and (tmp_path / "raw/hub/data/b.jsonl").read_bytes() == CONTENT


def test_a_whole_file_of_json(tmp_path):
    _put(tmp_path, "whole.json.gz", json.dumps({"k": [1]}).encode())
    assert released.json_whole(tmp_path, "whole.json") == {"k": [1]}


def test_rows_of_comma_separated_values_come_by_their_header(tmp_path):
    _put(tmp_path, "a.csv.gz", b'\xef\xbb\xbfQuery,Notes\r\n"sort, fast","say ""hi""\nthere"\r\nx,\r\n')
    assert list(released.csv_records(tmp_path, "a.csv", ("Query",))) == [
        {"Query": "sort, fast", "Notes": 'say "hi"\nthere'},
        {"Query": "x", "Notes": ""},
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"Question\na\n", r"has columns \['Question'\], wanted Query"),
        (b"Query,Notes\na\n", "line 2 has 1 cells, wanted 2"),
        (b'Query\n"cut', "cannot be read"),
        (b"Query\n\xff\n", "cannot be read"),
        (b"", r"has columns \[\], wanted Query"),
    ],
)
def test_comma_separated_values_of_another_form_are_told(tmp_path, content, said):
    _put(tmp_path, "a.csv", content)
    with pytest.raises(DataError, match=said):
        list(released.csv_records(tmp_path, "a.csv", ("Query",)))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": "x"}', "is one dict, wanted a list"),
        (b'[{"a": "x"}, {"b": 1}]', r"record 1 has no a as it should be, but \['b'\]"),
        (b'[{"a": 1}]', "record 0 has no a as it should be"),
        (b'["a"]', "record 0 has no a as it should be, but str"),
    ],
)
def test_a_list_of_records_of_another_form_is_told(tmp_path, content, said):
    _put(tmp_path, "a.json", content)
    with pytest.raises(DataError, match=said):
        released.json_array(tmp_path, "a.json", {"a": str})
