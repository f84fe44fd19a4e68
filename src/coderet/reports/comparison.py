"""Which systems differ from the baseline by more than chance: paired randomisation tests on the per-query scores.

Each system is tested against the one baseline; within a benchmark and metric the p values are Holm-corrected for there
being several systems. Queries without a relevant document have no score and are left out, as in the means.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coderet import paths
from coderet.corpora import store
from coderet.metrics import significance
from coderet.records import DataError
from coderet.reports.choices import choice_warnings
from coderet.reports.results import Results

LEVEL = 0.05


@dataclass(frozen=True)
class Difference:
    """A system's mean less the baseline's, and the chance of one as large if both were equally good, corrected."""

    value: float
    p: float

    @property
    def mark(self) -> str:
        """▲ better, ▼ worse, ≈ not told apart."""
        if self.p >= LEVEL:
            return "≈"
        return "▲" if self.value > 0 else "▼"


Differences = Mapping[tuple[str, str, str], Difference]  # by benchmark, system and metric


def differences(
    results: Results, baseline: str, *, permutations: int = 10_000, seed: int = 0, root: Path = Path()
) -> dict[tuple[str, str, str], Difference]:
    """Every system against the baseline, on the leading metrics of each benchmark; scorecards are read below root.

    Where either has no scorecard there is no test. Scorecards of different queries raise DataError.
    """
    found = {}
    for benchmark in results.benchmarks:
        for metric in results.leading_metrics(benchmark):
            theirs = _values(results, baseline, benchmark, metric, root)
            others = {
                system: _values(results, system, benchmark, metric, root)
                for system in results.systems
                if system != baseline and results.mean(system, benchmark, metric)
            }
            if not theirs:
                continue
            pooled = results.of(baseline, benchmark, "score").get("mean") != "datasets"
            paired = {
                system: _pairs(ours, theirs, pooled, f"{system} and {baseline} on {benchmark}")
                for system, ours in others.items()
                if ours
            }
            p = significance.holm([significance.paired_p_value(*pair, permutations, seed) for pair in paired.values()])
            for place, (system, (ours_, theirs_)) in enumerate(paired.items()):
                value = np.mean([a.mean() - b.mean() for a, b in zip(ours_, theirs_, strict=True)])
                found[benchmark, system, metric] = Difference(float(value), float(p[place]))
    return found


Scores = dict[str, tuple[list[str], np.ndarray]]  # query ids and values, by dataset


def _values(results: Results, system: str, benchmark: str, metric: str, root: Path) -> Scores:
    scores: Scores = {}
    for dataset, part in results.of(system, benchmark, "score").get("datasets", {}).items():
        path = root / paths.scores(benchmark, system) / f"{dataset}.arrow"
        if metric in part["metrics"] and not part.get("apart") and path.exists():
            ids, values = store.read_scorecard(path)
            scores[dataset] = ids.to_pylist(), values[metric]
    return scores


def _pairs(ours: Scores, theirs: Scores, pooled: bool, who: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The values of both systems, an array a dataset, or a single one if the mean is over all queries."""
    if {name: ids for name, (ids, _) in ours.items()} != {name: ids for name, (ids, _) in theirs.items()}:
        raise DataError(f"the scorecards of {who} are of different queries; run: dvc repro")
    columns = []
    for side in (ours, theirs):
        arrays = [side[name][1] for name in theirs]
        columns.append([np.concatenate(arrays)] if pooled else arrays)
    kept = [~(np.isnan(a) | np.isnan(b)) for a, b in zip(*columns, strict=True)]
    one, other = ([array[keep] for array, keep in zip(side, kept, strict=True) if keep.any()] for side in columns)
    return one, other


def assembly_warnings(results: Results) -> list[str]:
    """Systems on one benchmark that read different parts of the documents: their scores measure that difference too."""
    by_difference: dict[str, list[str]] = {}
    for benchmark in results.benchmarks:
        by_fields: dict[str, list[str]] = {}
        for system in results.systems:
            fields = setting(results.of(system, benchmark, "score").get("settings", {}), "text_fields")
            if isinstance(fields, list | tuple):
                by_fields.setdefault(", ".join(fields), []).append(system)
        if len(by_fields) > 1:
            parts = "; ".join(f"{', '.join(systems)} read {fields}" for fields, systems in by_fields.items())
            by_difference.setdefault(parts, []).append(benchmark)
    return [
        f"{', '.join(benchmarks)}: documents were assembled differently ({parts}), so these scores do not compare the "
        "systems alone; give them the same text_fields"
        for parts, benchmarks in by_difference.items()
    ]


def count_warnings(results: Results) -> list[str]:
    """Systems whose means are over different numbers of queries."""
    warnings = []
    for benchmark in results.benchmarks:
        for metric in results.leading_metrics(benchmark):
            counts = {system: results.mean(system, benchmark, metric).get("queries") for system in results.systems}
            if len({count for count in counts.values() if count is not None}) > 1:
                told = ", ".join(f"{system} {count}" for system, count in counts.items() if count is not None)
                warnings.append(f"{benchmark}: {metric} is a mean over different numbers of queries ({told})")
    return warnings


def setting(settings: Mapping[str, object], name: str) -> object:
    """The setting of this name, at whatever depth; None if there is none."""
    if name in settings:
        return settings[name]
    inner = (setting(value, name) for value in settings.values() if isinstance(value, Mapping))
    return next((value for value in inner if value is not None), None)


def all_warnings(results: Results) -> list[str]:
    """Whatever makes figures of the report less comparable than they look."""
    return [*assembly_warnings(results), *choice_warnings(results), *count_warnings(results)]
