"""The Challenge: queries and annotations over the official corpus and over the judged pool."""

import gzip
import json
import pickle

import numpy as np
import pytest
from measured import bm25, collected, figures

from coderet.benchmarks import benchmark
from coderet.benchmarks import codesearchnet_challenge as challenge
from coderet.corpora import challenge as files
from coderet.corpora.census import census
from coderet.metrics import challenge as script
from coderet.metrics import scorecards
from coderet.records import DataError
from coderet.retrievers.answering import answer

COUNTS = challenge.Judged(3, 1, 1, "")


def url(name, first, last):
    return f"https://github.com/ants/hill/blob/0/{name}.py#L{first}-L{last}"


DIG, FILL, LOST = url("dig", 1, 2), url("fill", 1, 2), url("lost", 1, 9)
ANNOTATIONS = f"""Language,Query,GitHubUrl,Relevance,Notes
Python,Dig a hole,{DIG},3,
Python,dig a hole,{DIG},2,"a ""good"" one,
but long"
Python,dig a hole,{LOST},1,
Python,fill a hole,{FILL},0,
Go,dig a hole,{url("other", 1, 2)},3,
"""


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "raw"
    (folder / challenge.FOLDER).mkdir(parents=True)
    others = "".join(f"query {number}\n" for number in range(97))
    (folder / challenge.QUERIES).write_text("query\ndig a hole\nfill a hole\n" + others)
    (folder / f"{challenge.ANNOTATIONS}.gz").write_bytes(gzip.compress(ANNOTATIONS.encode()))
    write_functions(folder, [("dig", DIG), ("fill", FILL)])
    file = {"repo": "ants/hill", "sha": "0", "path": "dig.py", "language": "python"}
    text = "def dig():\n    return 1\n\ndef heap():\n    return 2\n"
    (folder / challenge.FOLDER / "source_files.python.jsonl").write_text(json.dumps(file | {"text": text}) + "\n")
    return folder


def write_functions(folder, functions):
    records = [
        {"url": place, "language": "python", "repo": "ants/hill", "sha": "0", "path": f"{name}.py", "start_line": 1,
         "end_line": 2, "code": f"def {name}():\n    return 1"}
        for name, place in functions
    ]  # fmt: skip
    (folder / challenge.FUNCTIONS).write_text("".join(json.dumps(each) + "\n" for each in records))


def write_pickle(folder, functions):
    (folder / challenge.CORPUS).mkdir(exist_ok=True)
    records = [
        {"nwo": "ants/hill", "path": "dig.py", "language": "python", "identifier": f"Ant.{name}", "docstring": "",
         "docstring_tokens": [], "function": f"def {name}(): pass", "function_tokens": ["def", name], "url": place}
        for name, place in functions
    ]  # fmt: skip
    (folder / challenge.CORPUS / "python_dedupe_definitions_v2.pkl").write_bytes(pickle.dumps(records, 3))


def documents(dataset):
    return {row["id"]: row for row in dataset.corpus.table.to_pylist()}


def test_a_grade_is_the_mean_of_the_annotations_whatever_the_case_of_the_query(raw):
    assert challenge.judgements(raw, "python").to_pylist() == [
        {"query_id": "01", "document_id": DIG, "grade": 2.5},
        {"query_id": "01", "document_id": LOST, "grade": 1.0},
        {"query_id": "02", "document_id": FILL, "grade": 0.0},
    ]


def test_the_pool_has_the_judged_functions_under_their_urls_and_names(raw, tmp_path):
    pool = collected(tmp_path / "b", challenge.judged_pool(raw, "python", COUNTS, False))["python"]
    assert documents(pool)[DIG] == {"id": DIG, "title": "dig", "text": "def dig():\n    return 1"}
    assert set(documents(pool)) == {DIG, FILL, LOST}
    assert len(pool.queries) == 99 and pool.queries.ids[0].as_py() == "01"


def test_a_judged_url_without_code_is_in_the_ideal_ranking_and_never_a_hit(raw, tmp_path):
    pool = collected(tmp_path / "b", challenge.judged_pool(raw, "python", COUNTS, False))["python"]
    assert documents(pool)[LOST]["text"] == ""
    assert set(map(tuple, pool.queries.table["excluded"].to_pylist())) == {(LOST,)}
    assert census(pool)[0]["empty_documents"] == 1
    found = figures(pool, bm25("code-words"), tmp_path / "index", ("ndcg-all",))
    gains = 2**2.5 - 1, 2**1 - 1
    assert found["ndcg-all"] == pytest.approx(100 * gains[0] / (gains[0] + gains[1] / np.log2(3)))


def test_distractors_are_the_other_functions_of_the_same_files(raw, tmp_path):
    pool = collected(tmp_path / "b", challenge.judged_pool(raw, "python", COUNTS, True))["python"]
    heap = url("dig", 4, 5)
    assert set(documents(pool)) == {DIG, FILL, LOST, heap}
    assert documents(pool)[heap] == {"id": heap, "title": "heap", "text": "def heap():\n    return 2"}


def test_the_official_corpus_has_every_function_once_a_url(raw, tmp_path):
    other = url("other", 5, 6)
    write_pickle(raw, [("dig", DIG), ("dug", DIG), ("other", other)])
    dataset = collected(tmp_path / "b", challenge.official_corpus(raw, "python", 3, False))["python"]
    assert documents(dataset) == {
        DIG: {"id": DIG, "title": "Ant.dig", "text": "def dig(): pass"},
        other: {"id": other, "title": "Ant.other", "text": "def other(): pass"},
        FILL: {"id": FILL, "title": "", "text": ""},
        LOST: {"id": LOST, "title": "", "text": ""},
    }
    assert dataset.queries.table["excluded"][0].as_py() == sorted([FILL, LOST])
    (draft,) = challenge.official_corpus(raw, "python", 3, True)
    assert next(iter(draft.documents))["text"].to_pylist() == ["def dig", "def other"]


def test_a_url_that_repeats_in_a_later_batch_is_dropped_too(raw, tmp_path, monkeypatch):
    monkeypatch.setattr(challenge.codesearchnet, "ROWS_A_BATCH", 2)
    write_pickle(raw, [("dig", DIG), ("fill", FILL), ("dug", DIG), ("lost", LOST)])
    dataset = collected(tmp_path / "b", challenge.official_corpus(raw, "python", 4, False))["python"]
    assert {place: row["title"] for place, row in documents(dataset).items()} == {
        DIG: "Ant.dig",
        FILL: "Ant.fill",
        LOST: "Ant.lost",
    }


def test_a_corpus_of_another_size_is_refused(raw, tmp_path):
    write_pickle(raw, [("dig", DIG)])
    with pytest.raises(DataError, match="holds 1 functions of python, expected 2"):
        collected(tmp_path / "b", challenge.official_corpus(raw, "python", 2, False))


def test_annotations_of_other_queries_are_refused(raw):
    (raw / challenge.QUERIES).write_text("query\nsomething else\n")
    with pytest.raises(DataError, match=r"judges 'dig a hole', which is no query .*two releases"):
        challenge.judgements(raw, "python")


def test_a_function_that_nobody_judged_is_refused(raw):
    write_functions(raw, [("dig", DIG), ("other", url("other", 1, 2))])
    with pytest.raises(DataError, match=r"other.py#L1-L2, which .* does not judge"):
        list(challenge.judged_pool(raw, "python", COUNTS, False))


def test_half_of_the_queries_are_refused(raw, tmp_path):
    (raw / challenge.QUERIES).write_text("query\ndig a hole\nfill a hole\n")
    with pytest.raises(DataError, match="has 2 queries, expected 99"):
        collected(tmp_path / "b", challenge.judged_pool(raw, "python", COUNTS, False))


@pytest.mark.parametrize(
    ("language", "pairs", "judged", "positive"),
    [
        ("go", 166, 83, 68),
        ("java", 813, 99, 93),
        ("javascript", 319, 96, 78),
        ("php", 314, 99, 91),
        ("python", 989, 99, 99),
        ("ruby", 313, 97, 84),
    ],
)
def test_each_language_has_the_judgements_that_the_paper_s_repository_has(language, pairs, judged, positive, real_data):
    qrels = challenge.judgements(real_data, language).to_pandas()
    assert len(qrels) == pairs and qrels["query_id"].nunique() == judged
    assert qrels[qrels["grade"] > 0]["query_id"].nunique() == positive


@pytest.mark.parametrize(
    ("language", "whitespace", "code_words"),
    [("java", 29.56, 58.29), ("javascript", 37.17, 68.80), ("python", 48.23, 71.74), ("ruby", 31.63, 65.36)],
)
def test_bm25_orders_the_judged_pool(language, whitespace, code_words, real_data, tmp_path):
    pool = collected(tmp_path / "b", benchmark(f"csn-judged-{language}").collect(real_data))[language]
    counts, _ = census(pool)
    assert counts["empty_documents"] == challenge.JUDGED[language].lacking
    for analyzer, percent in (("whitespace", whitespace), ("code-words", code_words)):
        found = figures(pool, bm25(analyzer), tmp_path / analyzer, ("ndcg-all",), depth=1000)
        assert found["ndcg-all"] == pytest.approx(percent, abs=0.005)


def test_the_same_predictions_score_the_same_as_a_file_of_the_challenge(real_data, tmp_path):
    pool = collected(tmp_path / "b", benchmark("csn-judged-ruby").collect(real_data))["ruby"]
    retriever = bm25("code-words")
    retriever.index(pool.corpus, tmp_path / "index")
    run, _ = answer(retriever.open(pool.corpus, tmp_path / "index"), pool, 100, 256)
    card = scorecards.score(pool, run, ("ndcg-all", "ndcg-within"))
    files.write_predictions(tmp_path / "predictions.csv", {"ruby": files.Answer(pool, run)})
    annotations = files.read_annotations(real_data / f"{challenge.ANNOTATIONS}.gz")
    official = script.score(annotations, files.read_predictions(tmp_path / "predictions.csv"), submitted_only=True)[
        "ruby"
    ]
    assert len(official.query_ids) == len(card.query_ids) == 84
    for name, values in card.values.items():
        assert values.mean() == pytest.approx(official.values[f"{name}-2019"].mean(), abs=1e-6)


def test_the_distractors_of_ruby_are_counted(real_data, tmp_path):
    collect = benchmark("csn-judged-ruby").collect
    assert len(collected(tmp_path / "b", collect(real_data, distractors=True))["ruby"].corpus) == 305 + 4368
