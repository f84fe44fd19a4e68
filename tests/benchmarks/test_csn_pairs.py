"""ClozeTest's functions as docstring-code pairs."""

import json

import pytest
from measured import bm25, collected, figures

from coderet.benchmarks import benchmark, csn_pairs
from coderet.records import DataError


def put(folder, records, language="ruby"):
    path = folder / "codexglue_clozetest_maxmin" / language / "clozeTest.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(records), encoding="utf-8")
    return folder


def test_tokens_are_joined_by_a_space_and_nothing_stands_for_the_mask(tmp_path):
    record = {
        "idx": "maxmin-1",
        "nl_tokens": ["Largest", "of", "two", "."],
        "pl_tokens": ["a", ".", "<mask>", "\n", "max"],
    }
    (draft,) = csn_pairs.pairs(put(tmp_path, [record]), "ruby", 1)
    assert draft.name == "ruby"
    assert draft.queries.select(["id", "text"]).to_pylist() == [{"id": "maxmin-1", "text": "Largest of two ."}]
    (documents,) = draft.documents
    assert documents.to_pylist() == [{"id": "maxmin-1", "title": "", "text": "a . \n max"}]
    assert draft.qrels.to_pylist() == [{"query_id": "maxmin-1", "document_id": "maxmin-1", "grade": 1.0}]


def test_another_cloze_test_s_file_is_refused(tmp_path):
    record = {"idx": "all-1", "nl_tokens": ["a"], "pl_tokens": ["b"]}
    with pytest.raises(DataError, match="all-1 has not just one <mask>"):
        list(csn_pairs.pairs(put(tmp_path, [record]), "ruby", 1))


def test_another_language_s_file_is_refused_by_its_count(tmp_path):
    record = {"idx": "maxmin-1", "nl_tokens": ["a"], "pl_tokens": ["<mask>"]}
    with pytest.raises(DataError, match="ruby has 1 documents, expected 38"):
        collected(tmp_path / "b", benchmark("csn-pairs-ruby").collect(put(tmp_path, [record])))


@pytest.mark.parametrize(
    ("language", "count", "whitespace", "code_words"),
    [
        ("go", 152, 54.60, 76.99),
        ("java", 482, 26.74, 48.55),
        ("javascript", 272, 37.27, 48.46),
        ("php", 407, 28.86, 51.71),
        ("python", 1264, 36.16, 58.57),
        ("ruby", 38, 40.91, 71.67),
    ],
)
def test_bm25_finds_the_functions(language, count, whitespace, code_words, real_data, tmp_path):
    dataset = collected(tmp_path / "b", benchmark(f"csn-pairs-{language}").collect(real_data))[language]
    assert len(dataset.corpus) == len(dataset.queries) == count
    for analyzer, percent in (("whitespace", whitespace), ("code-words", code_words)):
        found = figures(dataset, bm25(analyzer), tmp_path / analyzer, ("ndcg@10",))
        assert found["ndcg@10"] == pytest.approx(percent, abs=0.005)
