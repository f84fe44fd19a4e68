"""One number a system over many benchmarks: the mean over groups of the mean over their members' headlines.

A group holds benchmarks of one kind (six languages of one data set), so that the mean weighs kinds, not languages. A
system that lacks a benchmark of a group has no figure for that group, and one that lacks a group has no mean: what is
missing is named instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coderet.reports import figures
from coderet.reports.page import Cell, Column, Section, Table
from coderet.reports.results import Results


@dataclass(frozen=True)
class GroupMeans:
    """by_group: the system's mean in each group that it has whole; mean over all groups, None if missing names any."""

    by_group: Mapping[str, float]
    mean: float | None
    missing: Sequence[str]


def group_means(results: Results, groups: Mapping[str, str]) -> dict[str, GroupMeans]:
    """The means of every system; groups names the group of each benchmark, empty for one that is in no mean."""
    members: dict[str, list[str]] = {}
    for benchmark in results.benchmarks:
        if groups.get(benchmark):
            members.setdefault(groups[benchmark], []).append(benchmark)
    found = {}
    for system in results.systems:
        headlines = {b: _headline(results, system, b) for names in members.values() for b in names}
        missing = [benchmark for benchmark, value in headlines.items() if value is None]
        whole = {
            group: float(np.mean([headlines[b] for b in names]))
            for group, names in members.items()
            if not set(names) & set(missing)
        }
        mean = float(np.mean(list(whole.values()))) if whole and not missing else None
        found[system] = GroupMeans(whole, mean, missing)
    return found


def section(results: Results, groups: Mapping[str, str]) -> Section | None:
    """The means as a table; nothing where no benchmark is in a group."""
    means = group_means(results, groups)
    names = list(dict.fromkeys(groups[b] for b in results.benchmarks if groups.get(b)))
    if not names:
        return None
    rows = []
    for system, each in means.items():
        cells = [_cell(each.by_group.get(name)) for name in names]
        rows.append([Cell(system, system), _cell(each.mean), *cells])
    columns = [Column("System"), Column("Mean", "over groups", True), *(Column(name, "", True) for name in names)]
    held = [f"{name}: {', '.join(b for b in results.benchmarks if groups.get(b) == name)}." for name in names]
    lacking = [f"{s} has no mean: it lacks {', '.join(each.missing)}." for s, each in means.items() if each.missing]
    lead = "Each group is the mean of its benchmarks' headline metrics, and weighs as much as any other."
    return Section("groups", "Mean over groups", lead, (Table(columns, rows),), [*lacking, *held])


def _headline(results: Results, system: str, benchmark: str) -> float | None:
    score = results.of(system, benchmark, "score")
    return score.get("all", {}).get(score.get("headline"), {}).get("value")


def _cell(value: float | None) -> Cell:
    return Cell("–", hint="a benchmark of it is missing") if value is None else Cell(figures.quality(value), value)
