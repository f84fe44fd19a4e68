"""DocPrompting's requests over the documentation of libraries."""

import json

import pytest
from measured import bm25, collected, figures

from coderet.benchmarks import benchmark, docprompting, library_docs
from coderet.corpora import store
from coderet.records import DataError


@pytest.fixture
def raw(tmp_path):
    (tmp_path / "docprompting_conala").mkdir()
    rows = [
        {"nl": "read json", "question_id": "7-1", "oracle_man": ["python.json#loads", "python.json#loads"]},
        {"nl": "nothing needed", "question_id": "7-1", "oracle_man": []},
    ]
    (tmp_path / "docprompting_conala" / "cmd_dev.oracle_man.full.json").write_text(json.dumps(rows))
    place = tmp_path / library_docs.LINES_FILE.name
    place.parent.mkdir(parents=True)
    where = {"library": "python~3.9", "path": "library/json#loads"}
    docs = [{"_id": "12", "title": "python.json#loads", "text": "json.loads(s)", "metadata": where}]
    place.write_text("".join(json.dumps(each) + "\n" for each in docs))
    return tmp_path


def test_gold_is_named_by_title_once_and_requests_without_any_are_kept(raw):
    (draft,) = docprompting.requests(raw, "dev", 2)
    assert draft.queries.select(["id", "text"]).to_pylist() == [
        {"id": "7-1:0", "text": "read json"},
        {"id": "7-1:1", "text": "nothing needed"},
    ]
    assert draft.qrels.to_pylist() == [{"query_id": "7-1:0", "document_id": "12", "grade": 1.0}]
    (documents,) = draft.documents
    assert documents.to_pylist() == [{"id": "12", "title": "python.json#loads", "text": "json.loads(s)"}]


def test_half_of_the_documentation_is_refused(raw, tmp_path):
    with pytest.raises(DataError, match="dev has 1 documents, expected 35728"):
        collected(tmp_path / "b", docprompting.requests(raw, "dev", 2))


@pytest.mark.parametrize(
    ("name", "queries", "judged", "pairs"), [("docprompting", 201, 199, 367), ("docprompting-train", 2135, 1794, 2578)]
)
def test_each_split_has_its_requests(name, queries, judged, pairs, real_data):
    (draft,) = benchmark(name).collect(real_data)
    assert (len(draft.queries), len(draft.qrels)) == (queries, pairs)
    assert len(set(draft.qrels["query_id"].to_pylist())) == judged


def test_bm25_finds_few_entries(devdocs, tmp_path):
    dataset = store.read_dataset(devdocs("devdocs"), "docprompting")
    found = figures(dataset, bm25("code-words"), tmp_path / "index", ("ndcg@10",))
    assert found["ndcg@10"] == pytest.approx(8.45, abs=0.005)
