"""What two results were decided by: where a figure differs, whether the systems do or the choices.

A result's choices are those of its benchmark's protocol, how its means are taken, and every setting of its retriever.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coderet.corpora import store
from coderet.records import DataError
from coderet.reports.results import Json, Results

NOT_SAID = "(not said)"
_OF_A_SCORE = ("all", "choices", "settings")
_OF_THE_RESULT = ("benchmark", "system", "headline", "mean", "confidence")


@dataclass(frozen=True)
class Contrast:
    """A choice that two results made differently; NOT_SAID where a result does not have it."""

    name: str
    one: str
    other: str

    def __str__(self) -> str:
        return f"{self.name}: {self.one} | {self.other}"


def read_score(path: Path) -> Json:
    """The score.json in path; DataError if it is another file."""
    score = store.read_json(path)
    told = isinstance(score, Mapping) and all(isinstance(score.get(name), Mapping) for name in _OF_A_SCORE)
    if not told or not isinstance(score.get("headline"), str):
        raise DataError(f"{path} is no result of scoring; wanted eval/results/<benchmark>/<run>/score.json")
    return dict(score)


def headlines(one: Json, other: Json) -> str:
    """The headline figures of two results in one line, which names both metrics where they are two."""
    names = dict.fromkeys(each["headline"] or "nothing is judged" for each in (one, other))
    return f"{' | '.join(names)}: {_headline(one)} | {_headline(other)}"


def _headline(score: Json) -> str:
    figure = score["all"].get(score["headline"])
    return f"{figure['value']:.5f}" if figure else NOT_SAID


def contrasts(one: Json, other: Json) -> list[Contrast]:
    """Every choice in which two score.json differ, in the order they are told."""
    ours, theirs = dict(_choices(one)), dict(_choices(other))
    names = dict.fromkeys([*ours, *theirs])
    sides = ((name, ours.get(name, NOT_SAID), theirs.get(name, NOT_SAID)) for name in names)
    return [Contrast(*each) for each in sides if each[1] != each[2]]


def choice_warnings(results: Results) -> list[str]:
    """Benchmarks whose results were made by different choices of its protocol, an old result beside a new one."""
    warnings = []
    for benchmark in results.benchmarks:
        scores = {system: results.of(system, benchmark, "score") for system in results.systems}
        told = {system: score["choices"] for system, score in scores.items() if "choices" in score}
        first = next(iter(told), None)
        for system, choices in told.items():
            if choices != told[first or system]:
                differing = "; ".join(map(str, contrasts({"choices": told[first or system]}, {"choices": choices})))
                warnings.append(
                    f"{benchmark}: {first} and {system} were scored by different choices ({differing}), so these "
                    "scores do not compare; run: dvc repro"
                )
    return warnings


def _choices(score: Json) -> Iterator[tuple[str, str]]:
    for name in _OF_THE_RESULT:
        if name in score:
            yield name, str(score[name])
    yield from _leaves(score.get("choices", {}), "")
    yield from _leaves(score.get("settings", {}), "retriever › ")


def _leaves(value: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _leaves(inner, f"{before}{name} › ")
        else:
            yield before + name, ", ".join(map(str, inner)) if isinstance(inner, list | tuple) else str(inner)
