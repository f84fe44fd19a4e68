"""Case D4: where two results were decided differently, that is said choice by choice."""

from coderet.benchmarks import coir
from coderet.reports import all_warnings, contrasts
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
