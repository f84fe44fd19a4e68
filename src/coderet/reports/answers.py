"""What the stages generate and judge left on disk, and what contexts change: the part of the results about answers.

A set of problems is told under its own name (`humaneval-40`), with the benchmark whose runs were its contexts beside
it. A context is tested against none, by the same generator on the same problems: McNemar's test on the problems that
only one of the two solves by its first sample, and the paired randomisation test on the headline, Holm-corrected over
the contexts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from coderet import paths
from coderet.corpora import answered, store
from coderet.metrics import significance
from coderet.metrics.answers import mcnemar
from coderet.params import answerer
from coderet.records import DataError
from coderet.reports.comparison import LEVEL

Json = Mapping[str, Any]
NONE = "none"


@dataclass(frozen=True)
class Change:
    """What a context does to a set of problems, against none: means apart, problems won and lost, and their chances."""

    value: float
    p: float
    gains: tuple[str, ...]
    losses: tuple[str, ...]
    mcnemar: float

    @property
    def mark(self) -> str:
        return "≈" if self.p >= LEVEL else "▲" if self.value > 0 else "▼"


@dataclass(frozen=True)
class Answerer:
    """A generator with a context, and what it did on the problems of a benchmark."""

    benchmark: str
    context: str
    generator: str
    judged: Json
    generated: Json
    root: Path = Path()

    @property
    def name(self) -> str:
        return answerer(self.context, self.generator)

    @property
    def run(self) -> str:
        """The run that its context is taken of."""
        return str(self.settings.get("run", ""))

    @property
    def settings(self) -> Json:
        found: Json = self.generated.get("settings", {}).get("context", {})
        return found

    def taken(self, but: str = "") -> str:
        """What of the run the context is, in words, one setting (`documents`, `chunking.size`) perhaps left out."""
        own = {name: value for name, value in self.settings.items() if name != but}
        chunking = {name: value for name, value in (own.get("chunking") or {}).items() if f"chunking.{name}" != but}
        if self.run == NONE:
            return ""
        if self.settings.get("window"):
            words = [f"{own.get('window', '')} tokens around the answer".strip()]
        else:
            words = [f"{own['documents']} of {self.run}" if "documents" in own else self.run]
            if own.get("withheld") == "kept":
                words.append("own answer kept")
        if chunking:
            unit = "tokens" if chunking.get("kind") == "tokens" else "lines"
            size = f" of {chunking['size']} {unit}" if "size" in chunking else ""
            words.append(f"{own.get('chunk')} chunk{size}")
        if own.get("order", "rank") != "rank":
            words.append(f"{own['order']} order")
        if own.get("comments", "kept") != "kept":
            words.append(f"comments {own['comments']}")
        return ", ".join(words)

    def metrics(self, posed: str) -> Json:
        """Value, low and high of every metric on a set of problems, the headline first."""
        found: Json = self.judged["datasets"][posed]["metrics"]
        return found

    def scores(self, posed: str) -> dict[str, dict[str, float]]:
        """Every problem's values by metric, by its id."""
        ids, values = store.read_scorecard(self.root / paths.scores(self.benchmark, self.name) / f"{posed}.arrow")
        columns = {metric: each.tolist() for metric, each in values.items()}
        return {own: {m: each[place] for m, each in columns.items()} for place, own in enumerate(ids.to_pylist())}

    def samples(self, posed: str) -> pa.Table:
        """The judged samples, with the columns of SAMPLES."""
        folder = self.root / paths.scores(self.benchmark, self.name)
        return answered.read(answered.samples_path(folder, posed), answered.SAMPLES)


@dataclass(frozen=True)
class Answers:
    """Every answerer of the grid that there are results of, in the grid's order; what is not there is in missing."""

    answerers: Sequence[Answerer] = ()
    missing: Sequence[str] = ()
    permutations: int = 10_000
    seed: int = 0

    @cached_property
    def sets(self) -> list[tuple[str, str]]:
        """The benchmark and the name of every set of problems."""
        found = [(each.benchmark, posed) for each in self.answerers for posed in each.judged["datasets"]]
        return list(dict.fromkeys(found))

    def of(self, benchmark: str) -> list[Answerer]:
        return [each for each in self.answerers if each.benchmark == benchmark]

    def without_context(self, benchmark: str, generator: str) -> Answerer | None:
        """The same generator without a context."""
        found = (each for each in self.of(benchmark) if each.run == NONE and each.generator == generator)
        return next(found, None)

    def changes(self, posed: str, benchmark: str) -> dict[str, Change]:
        """What each context changes on a set of problems, by the answerer's name."""
        found: dict[str, Change] = {}
        for generator in dict.fromkeys(each.generator for each in self.of(benchmark)):
            plain = self.without_context(benchmark, generator)
            others = [each for each in self.of(benchmark) if each.generator == generator and each is not plain]
            if plain is None or not others:
                continue
            theirs = plain.scores(posed)
            found |= _changes({each.name: each.scores(posed) for each in others}, theirs, self.permutations, self.seed)
        return found


def _changes(
    ours: Mapping[str, Mapping[str, Mapping[str, float]]],
    theirs: Mapping[str, Mapping[str, float]],
    permutations: int,
    seed: int,
) -> dict[str, Change]:
    metric = next(iter(next(iter(theirs.values()))))
    values = np.array([each[metric] for each in theirs.values()])
    columns, p = {}, []
    for name, scores in ours.items():
        if list(scores) != list(theirs):
            raise DataError(f"{name} and its generator without context answered different problems; run: dvc repro")
        columns[name] = np.array([each[metric] for each in scores.values()])
        p.append(significance.paired_p_value([columns[name]], [values], permutations, seed))
    corrected = significance.holm(p)
    found = {}
    for place, (name, own) in enumerate(columns.items()):
        ids = list(theirs)
        gains = tuple(ids[at] for at in np.flatnonzero((own >= 0.5) & (values < 0.5)))
        losses = tuple(ids[at] for at in np.flatnonzero((own < 0.5) & (values >= 0.5)))
        value = float((own - values).mean())
        found[name] = Change(value, float(corrected[place]), gains, losses, mcnemar(len(gains), len(losses)))
    return found


def read_answers(
    asked: Sequence[tuple[str, str, str]],
    *,
    permutations: int = 10_000,
    seed: int = 0,
    root: Path = Path(),
) -> Answers:
    """The results of everything that is asked: a benchmark, a context and a generator (`Grid.asked`)."""
    answerers: list[Answerer] = []
    missing: list[str] = []
    for benchmark, context, generator in asked:
        files = [paths.result(benchmark, answerer(context, generator), each) for each in ("judge", "generate")]
        absent = [path.as_posix() for path in files if not (root / path).exists()]
        missing += absent
        if not absent:
            judged, generated = (store.read_json(root / path) for path in files)
            answerers.append(Answerer(benchmark, context, generator, judged, generated, root))
    return Answers(answerers, missing, permutations, seed)


def summary_rows(answers: Answers) -> Iterator[dict[str, Any]]:
    """Rows of the summary: every metric of every answerer on every set of problems, under the set's own name.

    Of needles, whose sets are repositories, those over all of them, `all`, by language (`language: go`) and by whether
    the context `held` the whole needle or was `lacking` it.
    """
    for each in answers.answerers:
        parts = _needle_parts(each) if each.judged.get("groups") else each.judged["datasets"]
        for name, part in parts.items():
            for metric, figure in part["metrics"].items():
                yield {
                    "system": each.name,
                    "benchmark": each.benchmark,
                    "dataset": name,
                    "metric": metric,
                    "value": figure["value"],
                    "low": figure["low"],
                    "high": figure["high"],
                    "queries": part["queries"],
                    "mean": part.get("mean", "queries"),
                    "source": "measured",
                    "unit": "fraction",
                }


def _needle_parts(each: Answerer) -> dict[str, dict[str, Any]]:
    asked = sum(part["queries"] for part in each.judged["datasets"].values())
    mean = each.judged.get("mean", "queries")
    parts = {"all": {"queries": asked, "metrics": each.judged["all"], "mean": mean}} | {
        f"language: {name}": part for name, part in each.judged["groups"].get("language", {}).items()
    }
    for kind, part in each.judged.get("given", {}).items():
        parts[kind] = {"queries": part["problems"], "metrics": part["metrics"]}
    return parts
