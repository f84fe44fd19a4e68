"""Encoders of CodeSearchNet's architectures beside the figures that its paper prints for them, on MRR by its code.

The data are others (the paper's Python functions of GitHub, here whatever the grid's benchmark is made of), so figures
are not to be equal. What can be compared is which architecture is ahead, and by how much.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coderet.records import Published
from coderet.reports import figures
from coderet.reports.page import Cell, Column, Section, Table
from coderet.reports.results import Results
from coderet.reports.summary import Row

METRIC = "mrr-1000-paper"
COLUMN = Published("codesearchnet", "mrr-python")
NAMES = {"nbow": "nbow", "convolution": "1d-cnn", "recurrent": "birnn", "attention": "selfatt"}
"""What the paper calls each kind of encoder."""


def section(results: Results, published: Sequence[Row]) -> Section | None:
    """A table a benchmark that has METRIC for at least two of the paper's architectures; None if there is none.

    published: the rows of COLUMN.
    """
    paper = {str(row["system"]): float(row["value"]) for row in published if row["metric"] == METRIC}
    tables, points = [], []
    for benchmark in results.benchmarks:
        here = dict(_measured(results, benchmark, paper))
        best = _best(here)
        if len(best) < 2:
            continue
        tables.append(_table(benchmark, here, best, paper))
        points.append(_order(benchmark, best, paper))
    if not tables:
        return None
    lead = (
        f"{METRIC} of the architectures of CodeSearchNet's baselines (Husain et al., 2019), beside the paper's Python "
        "column. The data differ, in training and in test, so the figures themselves do not compare: their order and "
        "their distance from the first may."
    )
    return Section("architectures", "The architectures of 2019", lead, tables, points)


def architecture(settings: Mapping[str, Any]) -> str | None:
    """What the paper calls the encoder of a result's settings, `selfatt+nbow` for two; None for one that it has not."""
    encoder = settings.get("encoder", {})
    kinds = [encoder.get("kind")]
    if kinds == ["mixed"]:
        kinds = [encoder["architecture"][side]["kind"] for side in ("query", "document")]
    names = [NAMES.get(kind) for kind in dict.fromkeys(kinds)]
    return "+".join(name for name in names if name) if all(names) else None


Measured = Mapping[str, tuple[str, float]]  # architecture and value by system


def _measured(results: Results, benchmark: str, paper: Mapping[str, float]) -> Iterator[tuple[str, tuple[str, float]]]:
    for system in results.systems:
        name = architecture(results.of(system, benchmark, "score").get("settings", {}))
        mean = results.mean(system, benchmark, METRIC)
        if name in paper and mean:
            yield system, (str(name), float(mean["value"]))


def _best(here: Measured) -> dict[str, float]:
    """The best value of each architecture, the best architecture first."""
    best: dict[str, float] = {}
    for name, value in here.values():
        best[name] = max(value, best.get(name, value))
    return dict(sorted(best.items(), key=lambda each: -each[1]))


def _table(benchmark: str, here: Measured, best: Mapping[str, float], paper: Mapping[str, float]) -> Table:
    first_here, first_there = max(best.values()), max(paper[name] for name in best)
    rows = []
    for system, (name, value) in sorted(here.items(), key=lambda each: -each[1][1]):
        numbers = [(value, figures.quality), (value - first_here, _gap)]
        numbers += [(paper[name], figures.quality), (paper[name] - first_there, _gap)]
        rows.append([Cell(name, name), Cell(system, system), *(Cell(told(each), each) for each, told in numbers)])
    columns = [Column("Architecture"), Column("System")]
    columns += [Column("Here", "", True), Column("from the first here", "", True)]
    columns += [Column("Paper", "python", True), Column("from the first there", "", True)]
    return Table(columns, rows, benchmark)


def _order(benchmark: str, best: Mapping[str, float], paper: Mapping[str, float]) -> str:
    there = sorted(best, key=lambda name: -paper[name])
    if list(best) == there:
        return f"{benchmark}: the same order as in the paper: {', '.join(there)}."
    return f"{benchmark}: the order here is {', '.join(best)}; in the paper {', '.join(there)}."


def _gap(value: float) -> str:
    return f"{100 * value:+.1f}" if value else "–"
