import json

import pytest

from coderet.corpora import library_docs
from coderet.records import DataError


def put(folder, rows):
    (folder / library_docs.NAME).parent.mkdir(parents=True)
    (folder / library_docs.NAME).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_documents_are_known_by_title_or_by_number(tmp_path, monkeypatch):
    monkeypatch.setattr(library_docs, "ROWS_A_BATCH", 2)
    folder = put(tmp_path, [{"_id": str(number), "title": f"t#{number}", "text": "x"} for number in range(3)])
    for identity, ids in (("title", [["t#0", "t#1"], ["t#2"]]), ("_id", [["0", "1"], ["2"]])):
        batches = list(library_docs.documents(folder, identity))
        assert [batch["id"].to_pylist() for batch in batches] == ids
        assert [batch["title"].to_pylist() for batch in batches] == [["t#0", "t#1"], ["t#2"]]


def test_a_row_without_title_is_told(tmp_path):
    with pytest.raises(DataError, match="line 1 has no title as it should be"):
        list(library_docs.documents(put(tmp_path, [{"_id": "0", "text": "x"}]), "_id"))
