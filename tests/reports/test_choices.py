"""Case D4: where two results were decided differently, that is said choice by choice."""

import json

import pytest

from coderet.benchmarks import coir
from coderet.records import DataError
from coderet.reports import all_warnings, contrasts, headlines, read_score
from coderet.reports.results import Results


def score(protocol, fields=("text",), **more):
    name = f"{protocol}-apps"
    settings = {"kind": "dense", "index": {"text_fields": list(fields)}}
    return {"benchmark": name, "choices": dict(coir.BENCHMARKS[name].choices), "settings": settings, **more}


def test_results_of_equal_choices_have_no_contrast():
    assert contrasts(score("coir"), score("coir")) == []


def test_every_choice_that_differs_is_told_with_both_sides():
    told = [str(each) for each in contrasts(score("coir"), score("mteb", ("title", "text"), mean="datasets"))]
    assert told[0] == "benchmark: coir-apps | mteb-apps"
    assert "document text: text as released, title ignored | title, one space, text; stripped" in told
    assert "own-id documents: removed | kept" in told
    assert "mean: (not said) | datasets" in told
    assert "mteb task: (not said) | AppsRetrieval" in told
    assert "retriever › index › text_fields: text | title, text" in told
    assert not [each for each in told if each.startswith(("task:", "corpus:", "retriever › kind"))]


def test_results_of_one_benchmark_by_different_choices_are_warned_of():
    stages = {"old": {"b": {"score": score("coir")}}, "new": {"b": {"score": score("mteb")}}}
    (warning,) = all_warnings(Results(("b",), ("old", "new"), stages=stages))
    assert warning.startswith("b: old and new were scored by different choices (") and warning.endswith(
        "run: dvc repro"
    )
    assert "own-id documents: removed | kept" in warning
    assert all_warnings(Results(("b",), ("old",), stages=stages)) == []


def figure(metric, value):
    return {"headline": metric, "all": {metric: {"value": value}} if metric else {}, "choices": {}, "settings": {}}


def test_headlines_of_two_metrics_are_never_told_as_one():
    assert headlines(figure("mrr", 0.5), figure("mrr", 0.25)) == "mrr: 0.50000 | 0.25000"
    assert headlines(figure("ndcg@10", 0.5), figure("mrr", 0.25)) == "ndcg@10 | mrr: 0.50000 | 0.25000"
    assert headlines(figure("mrr", 0.5), figure("", 0.0)) == "mrr | nothing is judged: 0.50000 | (not said)"


@pytest.mark.parametrize("other", [[], None, {}, {**figure("mrr", 0.5), "choices": [1]}, {"datasets": {}}])
def test_a_file_that_is_no_result_of_scoring_is_refused(tmp_path, other):
    path = tmp_path / "score.json"
    path.write_text(json.dumps(figure("mrr", 0.5)))
    assert read_score(path)["headline"] == "mrr"
    path.write_text(json.dumps(other))
    with pytest.raises(DataError, match=r"score.json is no result of scoring; wanted eval/results"):
        read_score(path)
