"""Needles through refer, generate and judge with all controls, answered by the generator without a model."""

from pathlib import Path

import needle_files
import pytest
import yaml
from extractive_answers import answer, project

from coderet import paths, reports
from coderet.corpora import answered, store

ROOT = Path(__file__).parents[2]
CONTEXTS = {
    "none": {"run": "none"},
    "oracle": {"run": "oracle", "withheld": "kept"},
    "random": {"run": "random", "documents": 3},
    "needle-and-others": {"run": "random", "distractors": 2},
    "needle-last": {"run": "random", "distractors": 2, "order": "reversed"},
    "names": {"run": "oracle", "withheld": "kept", "shows": "names"},
    "window": {"run": "oracle", "withheld": "kept", "window": 400},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("reading")
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    raw["grid"] |= {"benchmarks": ["repoqa"], "answered": []}
    raw["grid"] |= {"read": ["repoqa"], "reading": list(CONTEXTS)}
    raw["contexts"] |= CONTEXTS
    raw["benchmarks"]["repoqa"]["answer_tokens"] = 99
    project(root, raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        paths.raw("repoqa").mkdir(parents=True)
        one = needle_files.repository("python", needles=["walk", "count"])
        needle_files.write(paths.raw("repoqa"), {"python": [one]})
        answer("repoqa", list(CONTEXTS))
    return root


@pytest.fixture
def here(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def judged(context):
    return store.read_json(paths.result("repoqa", f"{context}+extractive", "judge"))


def match(context):
    return judged(context)["all"]["match@0.8"]["value"]


def test_the_first_document_is_the_answer_where_it_is_the_needle(here):
    found = {context: match(context) for context in CONTEXTS if context != "window"}
    assert found == {
        "none": 0.0,
        "oracle": 1.0,
        "random": 0.0,
        "needle-and-others": 1.0,
        "needle-last": 0.0,
        "names": 1.0,
    }


def prompts(context):
    folder = paths.completions("repoqa", f"{context}+extractive")
    return answered.read(answered.prompts_path(folder, "python-owner-python"), answered.PROMPTS).to_pylist()


def test_prompts_show_what_a_context_says(here):
    for first, last, names in zip(prompts("needle-and-others"), prompts("needle-last"), prompts("names"), strict=True):
        assert first["documents"][0]["id"].endswith((":walk", ":count")) and len(first["documents"]) == 3
        assert first["context"] != last["context"] and sorted(first["context"]) == sorted(last["context"])
        assert names["context"] in ("- src/a.py: walk", "- src/b.py: count")


def test_what_was_right_is_told_apart_by_whether_the_needle_was_shown(here):
    assert judged("oracle")["given"]["held"]["problems"] == 2
    assert judged("oracle")["given"]["held"]["metrics"]["match@0.8"]["value"] == 1.0
    assert judged("window")["given"]["held"]["problems"] == 2
    random = judged("random")["given"]
    assert random["lacking"]["problems"] == 2 and random["held"] == {"problems": 0, "metrics": {}}


def test_what_is_known_of_the_problems_tells_figures_apart(here):
    groups = judged("window")["groups"]
    assert groups["language"]["python"]["queries"] == 2 and groups["language"]["python"]["candidates"] == 5
    assert sum(part["queries"] for part in groups["depth"].values()) == 2
    assert "depth" not in judged("random")["groups"]


def test_the_report_has_a_section_of_them(here):
    asked = [("repoqa", context, "extractive") for context in CONTEXTS]
    answers = reports.read_answers(asked, permutations=50)
    page = reports.as_markdown(reports.report(reports.Results(["repoqa"], []), [], {}, "none", answers=answers))
    assert "| extractive | oracle | the needle alone | 2 |" in page and "## Answers by context" not in page


def test_the_benchmark_s_own_length_of_answers_is_what_was_asked_for(here):
    settings = store.read_json(paths.result("repoqa", "oracle+extractive", "generate"))["settings"]
    assert settings["sampling"]["max_new_tokens"] == 99
