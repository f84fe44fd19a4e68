"""CoNaLa's questions and rewritten questions over its snippets."""

import json

import pytest
from measured import bm25, collected, figures

from coderet.benchmarks import conala
from coderet.corpora import released
from coderet.records import DataError

ROWS = [
    ("How to sort?", "sort list `x`", "x.sort()", 7),
    ("How to sort?", None, "sorted(x)", 7),
    ("How to sort?", "s", "x", 9),
]


def put(folder):
    names = ("intent", "rewritten_intent", "snippet", "question_id")
    (folder / "conala").mkdir()
    (folder / conala.NAME).write_text(json.dumps([dict(zip(names, row, strict=True)) for row in ROWS]))
    return folder


def asked(draft):
    gold = [(row["query_id"], row["document_id"]) for row in draft.qrels.to_pylist()]
    return draft.queries.select(["id", "text"]).to_pylist(), gold


def test_a_question_asks_for_all_snippets_of_its_rows(tmp_path):
    (draft,) = conala.collect(put(tmp_path))
    assert asked(draft) == (
        [{"id": "7-0", "text": "How to sort?"}, {"id": "9-2", "text": "How to sort?"}],
        [("7-0", "7-0"), ("7-0", "7-1"), ("9-2", "9-2")],
    )
    (documents,) = draft.documents
    assert documents["text"].to_pylist() == ["x.sort()", "sorted(x)", "x"]


def test_a_rewritten_question_asks_for_its_own_and_the_title_stands_in_where_there_is_none(tmp_path):
    (draft,) = conala.collect(put(tmp_path), rewritten=True)
    assert asked(draft) == (
        [{"id": "7-0", "text": "sort list `x`"}, {"id": "7-1", "text": "How to sort?"}, {"id": "9-2", "text": "s"}],
        [("7-0", "7-0"), ("7-1", "7-1"), ("9-2", "9-2")],
    )


def test_another_part_of_the_corpus_is_refused(tmp_path):
    with pytest.raises(DataError, match="conala has 3 documents, expected 1912"):
        collected(tmp_path / "b", conala.collect(put(tmp_path)))


@pytest.mark.parametrize(
    ("rewritten", "queries", "whitespace", "code_words"), [(False, 1456, 0.65, 10.45), (True, 1858, 7.56, 53.76)]
)
def test_a_rewriting_names_what_stands_in_the_snippet(rewritten, queries, whitespace, code_words, real_data, tmp_path):
    dataset = collected(tmp_path / "b", conala.collect(real_data, rewritten=rewritten))["conala"]
    assert len(dataset.queries) == queries
    rows = released.json_array(real_data, conala.NAME, conala.FIELDS)
    assert sum(not each["rewritten_intent"] for each in rows) == 64
    for analyzer, percent in (("whitespace", whitespace), ("code-words", code_words)):
        found = figures(dataset, bm25(analyzer), tmp_path / analyzer, ("ndcg@10",))
        assert found["ndcg@10"] == pytest.approx(percent, abs=0.005)
        assert found["ndcg@10-folded"] >= found["ndcg@10"]
