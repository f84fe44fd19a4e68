"""A folder of the hub's layout: which files a split is made of, and what is said of folders that are not whole.

Where the `datasets` library reads the same folder, it is the reference.
"""

import gzip
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet.corpora import hub
from coderet.records import DataError

CONFIGS = """---
license: mit
configs:
- config_name: default
  data_files:
  - split: test
    path: data/test-*
  - split: train
    path:
    - data/train-*
    - more/*.parquet
- config_name: corpus
  data_files:
  - split: corpus
    path: corpus/corpus-*
- config_name: lines
  data_files: lines.jsonl
- config_name: deep
  data_dir: deep
---
# A data set
"""


def parquet(folder, name, *values):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"_id": list(values), "text": [f"text of {each}" for each in values]}), path)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "data-set"
    parquet(root, "data/test-00000-of-00001.parquet", "t1")
    parquet(root, "data/train-00000-of-00002.parquet", "a1", "a2")
    parquet(root, "data/train-00001-of-00002.parquet", "a3")
    parquet(root, "more/other.parquet", "a4")
    parquet(root, "corpus/corpus-00000-of-00001.parquet", "c1", "c2")
    parquet(root, "deep/validation/part.parquet", "v1")
    (root / "lines.jsonl").write_text('{"_id": "l1", "text": "x"}\n\n{"_id": "l2", "text": null}\n')
    (root / "README.md").write_text(CONFIGS)
    return root


def ids(folder, config, split):
    return [each for batch in hub.batches(folder, config, split) for each in batch["_id"].to_pylist()]


def test_the_readme_says_which_files_a_split_is_made_of(folder):
    assert ids(folder, "default", "train") == ["a1", "a2", "a3", "a4"]
    assert ids(folder, "default", "test") == ["t1"]
    assert ids(folder, "corpus", "corpus") == ["c1", "c2"]
    assert ids(folder, "lines", "train") == ["l1", "l2"]
    assert ids(folder, "deep", "validation") == ["v1"]
    assert hub.splits(folder, "default") == ["test", "train"]
    assert hub.columns(folder, "default", "test") == hub.columns(folder, "lines", "train") == ["_id", "text"]


def test_without_a_readme_the_hubs_habits_hold(folder):
    (folder / "README.md").unlink()
    assert set(hub.configs(folder)) == {"default", "more", "corpus", "deep"}
    assert ids(folder, "default", "train") == ["a1", "a2", "a3"]
    assert ids(folder, "corpus", "corpus") == ["c1", "c2"]
    assert ids(folder, "deep", "validation") == ["v1"]
    assert ids(folder, "more", "train") == ["a4"]


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["queries-00000-of-00001.parquet", "corpus-00000-of-00001-1f3a.parquet"], ["corpus", "queries"]),
        (["corpus/0000.parquet", "queries/0000.parquet"], ["corpus", "queries"]),
        (["train.parquet", "dev.parquet"], ["validation", "train"]),
        (["one.parquet", "two.parquet"], ["train"]),
    ],
)
def test_the_splits_of_a_config_are_called_after_its_files(tmp_path, names, splits):
    for name in names:
        parquet(tmp_path / "pairs", name, name)
    assert hub.splits(tmp_path, "pairs") == splits


@pytest.mark.parametrize("readme", [True, False])
def test_the_datasets_library_reads_the_same_rows(folder, tmp_path, monkeypatch, readme):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (folder / "lines.jsonl").unlink()  # it takes one format a folder
    named = [("default", "train"), ("default", "test")]
    if readme:
        named += [("corpus", "corpus"), ("deep", "validation")]
    else:
        (folder / "README.md").unlink()
    for config, split in named:
        theirs = datasets.load_dataset(str(folder), config if readme else None, split=split, streaming=True)
        assert ids(folder, config, split) == [row["_id"] for row in theirs]


def test_a_config_a_split_or_a_column_that_there_is_not_is_told_with_those_there_are(folder):
    with pytest.raises(DataError, match=r"no config corpsu; there are: default, corpus, .*Did you mean corpus\?"):
        hub.files(folder, "corpsu", "corpus")
    with pytest.raises(DataError, match=r"config default has no split valid; there are: test, train"):
        hub.files(folder, "default", "valid")
    with pytest.raises(DataError, match=r"has no column score; there are: _id, text"):
        list(hub.batches(folder, "default", "test", ["_id", "score"]))
    with pytest.raises(DataError, match="there is no folder"):
        hub.configs(folder / "other")
    (folder / "empty").mkdir()
    with pytest.raises(DataError, match="holds no data of the hub's layout"):
        hub.configs(folder / "empty")


def test_the_only_split_stands_for_one_that_there_is_not(folder):
    assert hub.split_or_only(folder, "corpus", "test") == "corpus"
    assert hub.split_or_only(folder, "default", "test") == "test"
    assert hub.split_or_only(folder, "default", "dev") == "dev"


def test_a_split_of_which_a_shard_is_missing_is_refused(folder):
    for number in (0, 2):
        parquet(folder, f"data/test-0000{number}-of-00003.parquet", "x")
    (folder / "data" / "test-00000-of-00001.parquet").unlink()
    with pytest.raises(DataError, match=r"2 of 3 files of test; missing: test-00001-of-00003\.parquet"):
        list(hub.batches(folder, "default", "test"))


def test_a_file_cut_short_and_a_pointer_in_its_place_are_told_apart(folder):
    path = folder / "data" / "test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="is cut short or is no Parquet file"):
        ids(folder, "default", "test")
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n")
    with pytest.raises(DataError, match="is a pointer of Git LFS"):
        ids(folder, "default", "test")


def test_json_is_read_by_lines_or_as_one_list_plain_or_packed(tmp_path):
    rows = [{"_id": f"r{each}", "text": "é\u2028"} for each in range(3)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "train.jsonl").write_text(lines)
    (tmp_path / "test.json").write_text(json.dumps(rows))
    (tmp_path / "dev.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    for split in ("train", "test", "validation"):
        (batch,) = hub.batches(tmp_path, "default", split, ["text"])
        assert batch.to_pylist() == [{"text": "é\u2028"}] * 3


def test_json_that_is_not_whole_is_refused(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"_id": "a"}\n{"_id": ')
    with pytest.raises(DataError, match=r"train\.jsonl, after 1 rows: not whole or not JSON"):
        ids(tmp_path, "default", "train")
    (tmp_path / "train.jsonl").unlink()
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(os.urandom(99) * 9)[:-9])
    with pytest.raises(DataError, match="not whole or not JSON"):
        ids(tmp_path, "default", "train")


def test_a_readme_cannot_lead_out_of_the_folder(folder):
    (folder / "README.md").write_text(CONFIGS.replace("data/test-*", "../../secret.parquet"))
    with pytest.raises(DataError, match="wanted a path inside it"):
        hub.configs(folder)


def test_many_rows_come_in_batches(tmp_path):
    parquet(tmp_path, "data/train-00000-of-00001.parquet", *map(str, range(hub.ROWS_A_BATCH + 1)))
    assert [len(batch) for batch in hub.batches(tmp_path, "default", "train")] == [hub.ROWS_A_BATCH, 1]


def test_json_of_ids_that_are_numbers_and_texts_and_of_half_characters_is_refused(tmp_path):
    path = tmp_path / "train.jsonl"
    for line, said in (
        ('{"_id": 1}\n{"_id": "1"}\n', r"train.jsonl has a column of several types"),
        ('{"_id": "\\ud800"}\n', r"train.jsonl holds half of a surrogate pair"),
        ('{"_id": ' + "[" * 100_000, r"train.jsonl, after 0 rows: not whole or not JSON"),
    ):
        path.write_text(line)
        with pytest.raises(DataError, match=said):
            ids(tmp_path, "default", "train")


def test_a_column_of_lists_is_no_text_and_a_grade_is_a_number():
    batch = pa.RecordBatch.from_pydict({"text": [["a"]], "score": ["good"], "id": [7]})
    assert hub.column(batch, "id", pa.large_string()).to_pylist() == ["7"]
    with pytest.raises(DataError, match=r"the column text holds list.*, which cannot be read as large_string"):
        hub.column(batch, "text", pa.large_string())
    with pytest.raises(DataError, match="the column score holds string, which cannot be read as float"):
        hub.column(batch, "score", pa.float32())


@pytest.mark.parametrize(("text", "said"), [(b"\xff\xfe", "cannot be read"), (None, "which is no pattern of files")])
def test_a_readme_that_says_nothing_readable_is_refused(folder, text, said):
    (folder / "README.md").write_bytes(text or CONFIGS.replace("data/test-*", "data/**x").encode())
    with pytest.raises(DataError, match=said):
        hub.configs(folder)
