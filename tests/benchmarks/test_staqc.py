"""StaQC's questions over one pool of snippets."""

import json

import pytest
from measured import bm25, collected, figures

from coderet.benchmarks import staqc
from coderet.records import DataError


def put(folder, dev, train):
    for split, rows in (("dev", dev), ("train", train)):
        records = [
            {"idx": number, "doc": doc, "code": code, "label": label}
            for number, (doc, code, label) in enumerate(rows, 1)
        ]
        path = folder / "staqc_codexglue" / f"{split}_staqc.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(records), encoding="utf-8")
    return folder


def test_a_question_s_gold_are_all_its_snippets_of_label_1_from_both_files(tmp_path):
    dev = [("sort it", "sorted(x)", 1), ("sort it", ">>> 1", 0), ("never answered", "pass", 0)]
    (draft,) = staqc.collect(put(tmp_path, dev, [("sort it", "x.sort()", 1), ("order", "sorted(x)", 1)]))
    assert draft.queries.select(["id", "text"]).to_pylist() == [
        {"id": "dev-1", "text": "sort it"},
        {"id": "train-2", "text": "order"},
    ]
    (documents,) = draft.documents
    assert [(row["id"], row["text"]) for row in documents.to_pylist()] == [
        ("dev-1", "sorted(x)"),
        ("dev-2", ">>> 1"),
        ("dev-3", "pass"),
        ("train-1", "x.sort()"),
    ]
    assert [tuple(row.values()) for row in draft.qrels.to_pylist()] == [
        ("dev-1", "dev-1", 1.0),
        ("dev-1", "dev-2", 0.0),
        ("dev-1", "train-1", 1.0),
        ("train-2", "dev-1", 1.0),
    ]


def test_a_pair_of_both_labels_answers(tmp_path):
    (draft,) = staqc.collect(put(tmp_path, [("a", "b", 1)], [("a", "b", 0)]))
    assert draft.qrels["grade"].to_pylist() == [1.0]


def test_another_label_is_refused(tmp_path):
    with pytest.raises(DataError, match="1 has label 2, wanted 0 or 1"):
        list(staqc.collect(put(tmp_path, [("a", "b", 2)], [])))


def test_bm25_finds_little(real_data, tmp_path):
    dataset = collected(tmp_path / "b", staqc.collect(real_data))["staqc"]
    grades = dataset.qrels.table["grade"].to_pylist()
    assert (len(dataset.queries), len(dataset.corpus), sum(grades)) == (1247, 3902, 1708)
    for analyzer, percent in (("whitespace", 4.43), ("code-words", 16.51)):
        found = figures(dataset, bm25(analyzer), tmp_path / analyzer, ("ndcg@10",))
        assert found["ndcg@10"] == pytest.approx(percent, abs=0.005)
