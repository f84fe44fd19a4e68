import runpy
from pathlib import Path

import pytest
import yaml

from coderet import paths
from coderet.benchmarks import sandbox, selfchecking
from coderet.benchmarks.answering import Answer, Answering, Outcome, Parts, Program
from coderet.corpora import store
from coderet.records import DataError

ROOT = Path(__file__).parents[2]
PROBLEMS = {name: {"answer": name} for name in ("right", "wrong", "known", "untested", "weak")}


def programs(problem, answer):
    return [] if problem["answer"] == "untested" else [Program(answer.code, "first"), Program(answer.code, "second")]


ANSWERING = Answering(
    prompt=lambda problem, documents, layout: Parts("", (), ""),
    read=lambda problem, completion, layout: Answer(completion, "fence"),
    programs=programs,
    reference=lambda problem: problem["answer"],
    negative=lambda problem: f"nothing {problem['answer']}",
    known={"known": "wants the network", "right": "once it failed"},
)


def run(given):
    """Two programs an answer, of which the second shows the failure first."""
    for place in reversed(range(len(given))):
        passes = given[place].source in ("right", "weak", "nothing weak")
        yield place, Outcome("passed" if passes else "failed", f"at {place}", seconds=float(place))


def test_what_fails_is_told_with_its_cause_and_what_was_not_known_apart():
    report = selfchecking.check(ANSWERING, PROBLEMS, run)
    assert (report["passed"], report["without_tests"]) == (2, ["untested"])
    assert report["failed"]["known"] == {"verdict": "failed", "detail": "at 4", "known": "wants the network"}
    assert report["unknown_failures"] == ["wrong"] and report["known_and_passed"] == ["right"]
    assert report["slowest_seconds"] == 13.0  # of both programs together
    assert (report["negative_passed"], report["unknown_negatives"], report["negative_failed"]) == (
        ["weak"],
        ["weak"],
        3,
    )
    assert selfchecking.line("s", report) == (
        "s: 2 of 4 pass, not known to fail: ['wrong']; 1 that do nothing pass, not known to: ['weak']"
    )


def test_an_answer_that_is_graded_passes_where_the_judge_lets_it_pass():
    """By the first metric alone."""
    graded = Answering(
        prompt=ANSWERING.prompt,
        read=ANSWERING.read,
        grade=lambda problem, answer: {"exact_match": float(answer.code == "right"), "edit_similarity": 0.5},
        reference=ANSWERING.reference,
        metrics=("exact_match", "edit_similarity"),
    )
    report = selfchecking.check(graded, {name: PROBLEMS[name] for name in ("right", "wrong")}, run)
    assert (report["passed"], report["unknown_failures"]) == (1, ["wrong"])
    assert report["failed"]["wrong"]["detail"] == "exact_match 0.00, edit_similarity 0.50"


def test_a_set_and_each_nth_of_its_problems_may_be_chosen():
    assert selfchecking.chosen(["a", "b"], "") == ["a", "b"] and selfchecking.chosen(["a", "b"], "b") == ["b"]
    with pytest.raises(DataError, match="no set of problems 'c'; there are: a, b"):
        selfchecking.chosen(["a", "b"], "c")
    assert selfchecking.step("10") == 10
    for wrong in ("0", "-1", "x"):
        with pytest.raises(DataError, match="wanted a whole number from 1"):
            selfchecking.step(wrong)


def test_the_script_writes_what_became_of_each_set(real_data, tmp_path, monkeypatch):
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(raw | {"code": str(ROOT)}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    paths.raw("humaneval").parent.mkdir(parents=True)
    paths.raw("humaneval").symlink_to(real_data / "humaneval")
    runpy.run_path(str(ROOT / "eval/collect.py"))["main"]("humaneval")
    main = runpy.run_path(str(ROOT / "eval/selfcheck.py"))["main"]
    main("humaneval", every="10")
    told = store.read_json(paths.result("humaneval", "selfcheck"))
    report = told["datasets"]["humaneval-40"]
    assert (report["problems"], report["passed"], report["negative_passed"], report["every"]) == (4, 4, [], 10)
    assert told["wall"] in sandbox.LEVELS

    def missing(*_, **__):
        raise sandbox.SandboxError("run: make env ENV=odex")

    monkeypatch.setattr(sandbox, "run", missing)
    main("humaneval", "humaneval-40", "40")
    report = store.read_json(paths.result("humaneval", "selfcheck"))["datasets"]["humaneval-40"]
    assert report["unchecked"] == "run: make env ENV=odex" and report["problems"] == 1
