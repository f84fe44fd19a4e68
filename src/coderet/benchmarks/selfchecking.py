"""Whether a judge can be trusted: the benchmark's own answers must pass it, and empty ones must not.

Before a model is scored the reference solutions run through the reader and the judge that its answers will. Those that
fail are named with what they failed by, and whether that was known (`Answering.known`); nothing is left out for it,
unless params says so (`answering.left_out`). Beside them runs a negative control, an answer that does nothing: where it
passes, the tests of a problem cannot tell (`Answering.weak` names those that are known).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coderet.benchmarks.answering import Answering, Outcome, Problem
from coderet.benchmarks.judging import Completed, Runner, judge
from coderet.records import DataError


def check(answering: Answering, problems: Mapping[str, Problem], run: Runner) -> dict[str, Any]:
    """What became of the references of problems, by id, and of the negative controls; DataError if there are none."""
    if answering.reference is None:
        raise DataError("this benchmark has no reference solutions, so that its judge cannot be checked by them")
    references = outcomes(answering, problems, answering.reference, run)
    failed = {each: found for each, found in references.items() if found.verdict not in ("passed", "no tests")}
    report: dict[str, Any] = {
        "problems": len(problems),
        "without_tests": [each for each, found in references.items() if found.verdict == "no tests"],
        "passed": sum(found.verdict == "passed" for found in references.values()),
        "failed": {each: told(found, answering.known.get(each, "")) for each, found in failed.items()},
        "unknown_failures": sorted(failed.keys() - answering.known.keys()),
        "known_and_passed": sorted(each for each in answering.known if each in references and each not in failed),
        "slowest_seconds": max((found.seconds for found in references.values()), default=0.0),
    }
    if answering.negative is not None:
        controls = outcomes(answering, problems, answering.negative, run)
        passed = [each for each, found in controls.items() if found.verdict == "passed"]
        report["negative_passed"] = passed
        report["unknown_negatives"] = sorted(set(passed) - set(answering.weak))
        report["negative_failed"] = sum(found.verdict not in ("passed", "no tests") for found in controls.values())
    return report


def chosen(sets: Sequence[str], wanted: str) -> Sequence[str]:
    """All sets of problems, or the one that is wanted; DataError if there is none of that name."""
    if wanted and wanted not in sets:
        raise DataError(f"there is no set of problems {wanted!r}; there are: {', '.join(sets)}")
    return [wanted] if wanted else sets


def step(every: str) -> int:
    """every as a number from 1; DataError if it is none."""
    if not every.isdecimal() or not int(every):
        raise DataError(f"every is {every!r}; wanted a whole number from 1, such as 10 for each tenth problem")
    return int(every)


def line(name: str, report: Mapping[str, Any]) -> str:
    """What a person wants to know of a set's report first."""
    if "unchecked" in report:
        return f"{name}: unchecked: {report['unchecked']}"
    judged = report["problems"] - len(report["without_tests"])
    told = f"{name}: {report['passed']} of {judged} pass, not known to fail: {report['unknown_failures'] or 'none'}"
    if "negative_passed" not in report:
        return told
    unknown = report["unknown_negatives"] or "none"
    return f"{told}; {len(report['negative_passed'])} that do nothing pass, not known to: {unknown}"


def outcomes(
    answering: Answering, problems: Mapping[str, Problem], answer_of: Callable[[Problem], str], run: Runner
) -> dict[str, Outcome]:
    """The outcome of one answer a problem, by id, as the judge of completions finds it."""
    completed = [Completed(place, 0, answer_of(problem)) for place, problem in enumerate(problems.values())]
    judged = judge(answering, list(problems.values()), completed, "chat", run)
    return {name: Outcome(each.verdict, each.detail, each.seconds) for name, each in zip(problems, judged, strict=True)}


def told(outcome: Outcome, known: str) -> dict[str, str]:
    return {"verdict": outcome.verdict, "detail": outcome.detail, "known": known}
