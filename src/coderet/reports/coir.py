"""CoIR's ten tasks side by side, by each protocol that the grid has tasks of, and the average of all ten.

An average over a part of the tasks is no figure of CoIR: where one is not in the grid or has no result, that is said in
its place. Figures of the two protocols are never put into one average.
"""

from collections.abc import Iterator, Mapping

from coderet.benchmarks.coir import HEADLINE, PROTOCOLS, TASKS
from coderet.reports import figures
from coderet.reports.page import Cell, Column, Section, Table
from coderet.reports.results import Results

_NO_RESULT = Cell("missing", hint="the file that holds this figure is not there")
_NOT_ASKED = Cell("–", hint="not in the grid")


def section(results: Results) -> Section | None:
    """A table a protocol; None if the grid has no task of CoIR."""
    by_protocol = {protocol: benchmarks_of(results, protocol) for protocol in PROTOCOLS}
    told = {protocol: names for protocol, names in by_protocol.items() if names}
    if not told:
        return None
    return Section(
        "coir",
        "CoIR",
        f"{HEADLINE} of its tasks. Tasks by language are the plain mean of their languages. The average is of all ten "
        "tasks by one protocol, or is not told.",
        [_table(results, protocol, names) for protocol, names in told.items()],
        [point for protocol, names in told.items() for point in _missing(results, protocol, names)],
    )


def benchmarks_of(results: Results, protocol: str) -> dict[str, str]:
    """The grid's benchmark for each task by a protocol, in CoIR's order; tasks that it does not have are left out."""
    found: dict[str, str] = {}
    for benchmark in results.benchmarks:
        choices = _choices(results, benchmark)
        if choices.get("protocol") == protocol and choices.get("task") in TASKS:
            found.setdefault(choices["task"], benchmark)
    return {task: found[task] for task in TASKS if task in found}


def average(results: Results, system: str, names: Mapping[str, str]) -> float | None:
    """The plain mean of a system's headline on all ten tasks; None if one of them is not among names or has no result.

    names: the benchmark of each task, as `benchmarks_of` gives them.
    """
    values = [results.mean(system, names.get(task, ""), HEADLINE).get("value") for task in TASKS]
    known = [value for value in values if value is not None]
    return sum(known) / len(TASKS) if len(known) == len(TASKS) else None


def _choices(results: Results, benchmark: str) -> Mapping[str, str]:
    scores = (results.of(system, benchmark, "score") for system in results.systems)
    told = (each["choices"] for each in (results.collected.get(benchmark, {}), *scores) if "choices" in each)
    return next(told, {})


def _table(results: Results, protocol: str, names: Mapping[str, str]) -> Table:
    rows = []
    for system in results.systems:
        cells = [_cell(results, system, names.get(task)) for task in TASKS]
        mean = average(results, system, names)
        whole = Cell("–", hint="not told: tasks are missing") if mean is None else Cell(figures.quality(mean), mean)
        rows.append([Cell(system, system), *cells, whole])
    columns = [Column("System"), *(Column(task, "", True) for task in TASKS), Column("average", "", True)]
    return Table(columns, rows, f"by {protocol}")


def _cell(results: Results, system: str, benchmark: str | None) -> Cell:
    if benchmark is None:
        return _NOT_ASKED
    mean = results.mean(system, benchmark, HEADLINE)
    return Cell(figures.quality(mean["value"]), mean["value"]) if mean else _NO_RESULT


def _missing(results: Results, protocol: str, names: Mapping[str, str]) -> Iterator[str]:
    """What stands in the place of averages."""
    absent = [task for task in TASKS if task not in names]
    if absent:
        yield f"{protocol}: no average, for {len(absent)} of ten tasks are not in the grid: {', '.join(absent)}."
        return
    for system in results.systems:
        lacking = [task for task, name in names.items() if not results.mean(system, name, HEADLINE)]
        if lacking:
            yield f"{protocol}, {system}: no average, for there is no result on {', '.join(lacking)}."
