"""Completions to verdicts: the answer read, made into programs and run, or graded as it stands.

An answer passes if all of its programs do; else its verdict is that of the first that does not. Equal programs run
once, and those that are too late once more where the problem's own reference is slow (`lateness`). An answer that is
graded passes if the first of its metrics is whole. Whether a context gave the answer away is told beside it: the share
of the reference's own lines, those that the question does not hold already, that stand in the context.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from coderet.benchmarks import lateness
from coderet.benchmarks.answering import Answer, Answering, Layout, Outcome, Problem, Program, Verdict
from coderet.benchmarks.extraction import clean, closed
from coderet.corpora import answered
from coderet.records import DataError, Problems

Runner = Callable[[Sequence[Program]], Iterable[tuple[int, Outcome]]]
"""Runs programs and tells of each, in any order, its place and what became of it."""


class Completed(NamedTuple):
    """A completion of the problem at a place. text: as it is read, with the end of its fence."""

    place: int
    sample: int
    text: str


@dataclass(frozen=True)
class Judged:
    """A sample and what became of it. grades: metrics in 0 to 1 of an answer that is graded without being run."""

    place: int
    sample: int
    answer: Answer
    verdict: Verdict
    detail: str = ""
    seconds: float = 0.0
    grades: Mapping[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.verdict == "passed"


class Asked(NamedTuple):
    """What was asked and what came back: ids and problems, the completions of each, and a prompt a problem.

    shows: what of documents was shown, as of a context.
    """

    ids: list[str]
    problems: list[Problem]
    prompts: list[dict[str, Any]]
    completed: list[Completed]
    layout: Layout
    shows: str = "text"


def asked(problems: Problems, folder: Path) -> Asked:
    """The completions of a set of problems, in the order of the problems; DataError if they are of other problems."""
    contents = dict(zip(problems.ids, problems.contents, strict=True))
    path = answered.completions_path(folder, problems.name)
    prompts = answered.read(answered.prompts_path(folder, problems.name), answered.PROMPTS).to_pylist()
    ids = [each["problem_id"] for each in prompts]
    if stray := [each for each in ids if each not in contents]:
        raise DataError(f"{path} answers {stray[0]!r}, which is no problem of {problems.name}; generate again")
    place = {own: number for number, own in enumerate(ids)}
    completed = []
    for each in answered.read(path, answered.COMPLETIONS).to_pylist():
        own = place[each["problem_id"]]
        text = closed(each["text"], each["stop"], prompts[own]["start"])
        completed.append(Completed(own, each["sample"], text))
    settings = answered.settings(path)
    shows = settings.get("context", {}).get("shows", "text")
    return Asked(ids, [contents[own] for own in ids], prompts, completed, settings["layout"], shows)


def judge(
    answering: Answering, problems: Sequence[Problem], completed: Sequence[Completed], layout: Layout, run: Runner
) -> list[Judged]:
    """The verdict on every completion, in their order."""
    answers = [answering.read(problems[each.place], each.text, layout) for each in completed]
    wanted = [
        _programs(answering, problems[each.place], answer) for each, answer in zip(completed, answers, strict=True)
    ]
    outcomes = _outcomes([program for programs in wanted for program in programs], run)
    outcomes |= _of_the_late(answering, problems, completed, wanted, outcomes, run)
    return [
        _judged(answering, problems[each.place], each, answer, [outcomes[_key(program)] for program in programs])
        for each, answer, programs in zip(completed, answers, wanted, strict=True)
    ]


def _programs(answering: Answering, problem: Problem, answer: Answer) -> Sequence[Program]:
    return answering.programs(problem, answer) if answering.programs and answer.code.strip() else ()


def _outcomes(programs: Sequence[Program], run: Runner) -> dict[str, Outcome]:
    """What became of each distinct program, by its key."""
    distinct = {_key(program): program for program in programs}
    keys = list(distinct)
    return {keys[place]: outcome for place, outcome in run(list(distinct.values()))} if distinct else {}


def _of_the_late(
    answering: Answering,
    problems: Sequence[Problem],
    completed: Sequence[Completed],
    wanted: Sequence[Sequence[Program]],
    outcomes: Mapping[str, Outcome],
    run: Runner,
) -> dict[str, Outcome]:
    """What becomes of programs that were too late in the time that their problem's reference grants, by their key."""
    late: dict[int, list[Sequence[Program]]] = {}
    for each, programs in zip(completed, wanted, strict=True):
        if any(outcomes[_key(program)].verdict == "timeout" for program in programs):
            late.setdefault(each.place, []).append(programs)
    references = {place: lateness.references(answering, problems[place]) for place in late}
    timed = _outcomes([program for programs in references.values() for program in programs], run)
    longer: dict[str, Program] = {}
    for place, answers in late.items():
        of_reference = [timed[_key(program)] for program in references[place]]
        for programs in answers:
            for number, more in lateness.given_more(programs, of_reference).items():
                key = _key(programs[number])
                if outcomes[key].verdict == "timeout" and more.seconds > longer.get(key, programs[number]).seconds:
                    longer[key] = more
    again = _outcomes(list(longer.values()), run)
    return {key: again[_key(program)] for key, program in longer.items()}


def _key(program: Program) -> str:
    return repr(program._replace(files=dict(sorted(program.files.items()))))


def _judged(
    answering: Answering, problem: Problem, each: Completed, answer: Answer, outcomes: Sequence[Outcome]
) -> Judged:
    grades = answering.grade(problem, answer) if answering.grade else {}
    seconds = sum(outcome.seconds for outcome in outcomes)
    if not answer.code.strip():
        return Judged(each.place, each.sample, answer, "no code", grades=grades)
    if not answering.programs:
        exact = bool(grades) and next(iter(grades.values())) == 1
        low = "" if exact else ", ".join(f"{name} {value:.2f}" for name, value in grades.items())
        why = answering.why(problem, answer) if answering.why else low
        return Judged(each.place, each.sample, answer, "passed" if exact else "failed", why, grades=grades)
    if not outcomes:
        return Judged(each.place, each.sample, answer, "no tests", "the problem has no tests", grades=grades)
    worst = telling(outcomes)
    return Judged(each.place, each.sample, answer, worst.verdict, worst.detail, seconds, grades)


def telling(outcomes: Sequence[Outcome]) -> Outcome:
    """Of the programs of one answer the first that did not pass; the first of all if all did."""
    return next((outcome for outcome in outcomes if outcome.verdict != "passed"), outcomes[0])


def by_problem(asked: Asked, judged: Iterable[Judged]) -> dict[str, list[Judged]]:
    """The judged samples of every problem, by its id."""
    found: dict[str, list[Judged]] = {own: [] for own in asked.ids}
    for each in judged:
        found[asked.ids[each.place]].append(each)
    return found


def rows(answering: Answering, asked: Asked, judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """The rows of a table of SAMPLES."""
    questions = [prompt["user"].replace(prompt["context"], "", 1) for prompt in asked.prompts]
    contexts = [prompt["context"] for prompt in asked.prompts]
    leaks = [
        leak(answering, problem, question, context)
        for problem, question, context in zip(asked.problems, questions, contexts, strict=True)
    ]
    return [
        {
            "problem_id": asked.ids[each.place],
            "sample": each.sample,
            "verdict": each.verdict,
            "detail": each.detail,
            "form": each.answer.form,
            "code": each.answer.code,
            "leak": leaks[each.place],
            "question": questions[each.place],
            "context": contexts[each.place],
        }
        for each in judged
    ]


def facts(answering: Answering, asked: Asked) -> list[Mapping[str, str | float]]:
    """What figures are told by, of every problem; of a benchmark that says nothing, nothing."""
    if answering.facts is None:
        return [{} for _ in asked.ids]
    return [
        answering.facts(problem, prompt["context"])
        for problem, prompt in zip(asked.problems, asked.prompts, strict=True)
    ]


def told_apart(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The problems of the rows of SAMPLES, by whether their context held the whole answer, all its lines (`held`), or
    not (`lacking`); `unknown` where there is no answer to compare with, or no line in it that tells."""
    found: dict[str, dict[str, None]] = {"held": {}, "lacking": {}, "unknown": {}}
    for row in rows:
        kind = "unknown" if row["leak"] is None else "held" if row["leak"] == 1 else "lacking"
        found[kind][row["problem_id"]] = None
    return {kind: list(ids) for kind, ids in found.items()}


def tally(judged: Sequence[Judged]) -> dict[str, dict[str, int]]:
    """How many samples have each verdict, and each form of answer."""
    return {
        "verdicts": dict(Counter(each.verdict for each in judged).most_common()),
        "forms": dict(Counter(each.answer.form for each in judged).most_common()),
    }


def leak(answering: Answering, problem: Problem, question: str, context: str) -> float | None:
    """The share of the reference's own lines that stand in the context; None if there is no reference, or no line.

    question: the prompt without its context. Lines are compared without white space; lines of fewer than three words
    (`else:`, `return x`) and imports tell nothing.
    """
    if answering.reference is None:
        return None
    asked = set(_lines(question))
    own = [line for line in _lines(clean(answering.reference(problem))) if line not in asked]
    if not own:
        return None
    shown = set(_lines(context))
    return sum(line in shown for line in own) / len(own)


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if len(_WORDS.findall(line)) > 2 and not line.lstrip().startswith(("```", "from ", "import ")):
            yield "".join(line.split())


_WORDS = re.compile(r"\w+")
