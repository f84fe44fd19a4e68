"""What the report says, in the order a newcomer needs it: results, their cost, how they came about, the data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coderet.reports import architectures, coir, comparison, figures, generation, groups, needles, plots
from coderet.reports.answers import Answers
from coderet.reports.comparison import Difference, setting
from coderet.reports.page import Cell, Column, Page, Plot, Section, Table
from coderet.reports.results import UNITS, Results, costs, hardware, headline
from coderet.reports.summary import Row

MISSING = Cell("missing", hint="the file that holds this figure is not there")
NONE = Cell("–", hint="not measured for this system")

_SPEED = [name for name, unit in UNITS.items() if "/" in unit]

_ALWAYS_TOLD = ("documents", "queries")  # other counts are left out where all are zero
_NOT_OF_THE_DATA = ("kept_by_repository", "hardware", "threads", "seconds")  # they stay in mine.json
_COUNTS = {
    "documents": "documents",
    "queries": "queries",
    "judgements": "judgements",
    "queries_without_gold": "queries without gold",
    "empty_documents": "empty documents",
    "overlong_documents": "overlong documents",
    "duplicate_groups": "duplicate groups",
    "duplicate_documents": "duplicate documents",
    "affected_queries": "queries affected",
    "duplicate_query_groups": "equal-query groups",
    "conflicting_query_groups": "of them conflicting",
}

_CEILINGS = {
    "ceiling_ndcg@10": "best ndcg@10",
    "ceiling_ndcg@10-expected": "best ndcg@10, expected",
    "ceiling_hit@1": "best hit@1",
    "ceiling_hit@1-expected": "best hit@1, expected",
}
_CUTS = {"documents": "documents", "documents_cut": "cut at their end", "tokens_lost": "tokens lost"}


def report(
    results: Results,
    published: Sequence[Row],
    differences: Mapping[tuple[str, str, str], Difference],
    baseline: str,
    warnings: Sequence[str] = (),
    grouped: Mapping[str, str] | None = None,
    differs: Mapping[str, str] | None = None,
    architectures_there: Sequence[Row] = (),
    answers: Answers | None = None,
    answers_there: Sequence[Row] = (),
    needles_there: Sequence[Row] = (),
) -> Page:
    """The whole report. grouped: each benchmark's group; differs: why its figures may not be those of the paper.

    architectures_there: the paper's figures for the architectures of 2019, the rows of `architectures.COLUMN`.
    answers_there: those for generators with contexts; needles_there: those for language models that read a window.
    """
    answers = answers or Answers()
    readers = needles.reading(answers)
    programs = replace(answers, answerers=[each for each in answers.answerers if each not in readers])
    sections = [
        _headline(results, differences, baseline),
        groups.section(results, grouped or {}),
        _quality_and_cost(results),
        _every_metric(results, published),
        coir.section(results),
        needles.section(results, answers, needles_there),
        *generation.sections(programs, results, answers_there),
        _published(results, published, differs or {}),
        architectures.section(results, architectures_there),
        _efficiency(results),
        _training(results),
        _settings(results),
        _data(results),
        _missing([*results.missing, *answers.missing]),
    ]
    lead = (
        f"{_count(len(results.systems), 'retriever')} on {_count(len(results.benchmarks), 'benchmark')}. Quality is "
        f"told in hundredths: 100 is a perfect answer to every query.{_intervals(results)}"
    )
    return Page("Code retrievers compared", lead, warnings, [section for section in sections if section])


def _intervals(results: Results) -> str:
    """What the intervals are, by what the scores say; nothing where nothing is scored."""
    scores = [results.of(system, benchmark, "score") for system in results.systems for benchmark in results.benchmarks]
    said = sorted({score["confidence"] for score in scores if "confidence" in score})
    confidence = " or ".join(f"{100 * each:g} %" for each in said)
    return f" Intervals hold the mean of other queries like these with {confidence} confidence." if said else ""


def _headline(results: Results, differences: Mapping[tuple[str, str, str], Difference], baseline: str) -> Section:
    shown = [(b, m) for b in results.benchmarks for m in results.leading_metrics(b)]
    best = {
        key: max((results.mean(s, *key).get("value", -1.0) for s in results.systems), default=-1.0) for key in shown
    }
    first = results.benchmarks[0] if results.benchmarks else ""
    speed = ("queries_per_second", "query_milliseconds_p50")
    columns = [Column("System"), *(Column(b, m, True) for b, m in shown)]
    columns += [Column(figures.words(name), f"on {first}", True) for name in speed]
    rows = []
    for system in results.systems:
        row = [Cell(system, system, "baseline" if system == baseline else "")]
        for benchmark, metric in shown:
            mean = results.mean(system, benchmark, metric)
            difference = differences.get((benchmark, system, metric))
            row.append(_mean_cell(mean, difference, baseline, bool(mean) and mean["value"] == best[benchmark, metric]))
        spent = costs(results, system, first)
        row += [_cost_cell(results, system, first, name, spent) for name in speed]
        rows.append(row)
    rows += _floor_row(results, shown, len(speed))
    return Section(
        "results",
        "Results",
        f"▲ better than {baseline}, ▼ worse, ≈ not told apart from it: paired randomisation test over queries, "
        f"Holm-corrected, 5 %. The best of a column is bold.",
        (Table(columns, rows),),
        _findings(results, differences, baseline),
    )


def _floor_row(results: Results, shown: Sequence[tuple[str, str]], blank: int = 0) -> list[list[Cell]]:
    """What a random order would score, under the systems; no row where nothing is known of it."""
    floors = [results.floor(benchmark, metric) for benchmark, metric in shown]
    if all(floor is None for floor in floors):
        return []
    cells = [Cell("") if floor is None else Cell(figures.quality(floor), floor) for floor in floors]
    return [
        [Cell("random order", "", hint="expected score of the corpus in a random order"), *cells, *[Cell("")] * blank]
    ]


def _mean_cell(mean: Mapping[str, Any], difference: Difference | None, baseline: str, strong: bool) -> Cell:
    if not mean:
        return MISSING
    hint = f"{mean['queries']} queries"
    text = figures.quality(mean["value"])
    if difference:
        text += f" {difference.mark}"
        p = "< 0.001" if difference.p < 0.001 else f"= {difference.p:.3f}"
        hint += f"; {100 * difference.value:+.1f} against {baseline}, corrected p {p}"
    return Cell(text, mean["value"], figures.interval(mean["low"], mean["high"]), hint, strong)


def _findings(results: Results, differences: Mapping[tuple[str, str, str], Difference], baseline: str) -> list[str]:
    """A sentence a column: who leads, and whether by more than chance."""
    told = []
    for benchmark in results.benchmarks:
        for metric in results.leading_metrics(benchmark):
            means = {s: results.mean(s, benchmark, metric) for s in results.systems}
            values = {system: mean["value"] for system, mean in means.items() if mean}
            if not values:
                continue
            top = max(values.values())
            leaders = [system for system, value in values.items() if value == top]
            sentence = f"{benchmark}, {metric}: {_listed(leaders)} {'leads' if len(leaders) == 1 else 'lead'} with "
            sentence += figures.quality(top)
            difference = differences.get((benchmark, leaders[0], metric))
            if difference and baseline not in leaders:
                apart = "more than chance explains" if difference.p < comparison.LEVEL else "which chance explains too"
                sentence += f", {100 * difference.value:+.1f} against {baseline}, {apart}"
            told.append(sentence + ".")
    return told


def _quality_and_cost(results: Results) -> Section | None:
    plot = plots.quality_against_cost(results)
    if not plot:
        return None
    lead = "What an answer costs. Point at a system for all its figures; choose another benchmark or another cost."
    return Section("cost", "Quality against cost", lead, (plot,))


def _every_metric(results: Results, published: Sequence[Row]) -> Section:
    parts: list[Table | Plot] = []
    plot = plots.bars(results, published)
    if plot:
        parts.append(plot)
    for benchmark in results.benchmarks:
        parts.append(_metrics_table(results, benchmark))
        parts += _by_dataset(results, benchmark)
    lead = (
        "Metrics whose name ends in -folded take equal documents as one; all others are strict: of two equal "
        "documents only the judged one counts, wherever the tie rule puts it. -expected is the mean over all orders of "
        "documents with equal scores, -best and -worst are its bounds."
    )
    return Section("metrics", "Every metric", lead, parts)


def _metrics_table(results: Results, benchmark: str) -> Table:
    names = results.metrics(benchmark)
    rows = [
        [Cell(system, system), *(_mean_cell(results.mean(system, benchmark, name), None, "", False) for name in names)]
        for system in results.systems
    ]
    rows += _floor_row(results, [(benchmark, name) for name in names])
    scores = [results.of(system, benchmark, "score") for system in results.systems]
    means = {str(score["mean"]) for score in scores if "mean" in score}
    over = f"; means over {' or '.join(sorted(means))}" if means else ""
    return Table([Column("System"), *(Column(name, "", True) for name in names)], rows, f"{benchmark}{over}")


def _by_dataset(results: Results, benchmark: str) -> Iterable[Table]:
    """A table of the datasets, where there are several."""
    rows: list[list[Cell]] = []
    names = results.metrics(benchmark)
    for system in results.systems:
        datasets = results.of(system, benchmark, "score").get("datasets", {})
        if len(datasets) < 2:
            continue
        for dataset, part in datasets.items():
            cells = [part["metrics"].get(name) for name in names]
            told = [
                Cell(figures.quality(c["value"]), c["value"], figures.interval(c.get("low"), c.get("high")))
                if c
                else Cell("")
                for c in cells
            ]
            rows.append([Cell(system, system), Cell(dataset, dataset), _number(part["queries"]), *told])
    if not rows:
        return []
    columns = [Column("System"), Column("Dataset"), Column("queries", "", True), *(Column(n, "", True) for n in names)]
    return [Table(columns, rows, f"{benchmark} by dataset", folded=True)]


def _published(results: Results, published: Sequence[Row], differs: Mapping[str, str]) -> Section | None:
    if not published:
        return None
    rows = []
    for row in published:
        ours = _ours(results, {**row, "system": f"{row['system']}-paper"}) or _ours(results, row)
        paper = Cell(figures.quality(row["value"]), row["value"])
        if ours:
            gap = ours["value"] - row["value"]
            mine = Cell(figures.quality(ours["value"]), ours["value"], figures.interval(ours["low"], ours["high"]))
            difference = Cell(f"{100 * gap:+.1f}", gap)
        else:
            mine, difference = Cell("–", hint="no system of this name here"), Cell("")
        names = [row["system"], row["benchmark"], row["metric"], row["source"].removeprefix("published:")]
        rows.append([*(Cell(name, name) for name in names), paper, mine, difference])
    columns = [Column("System"), Column("Benchmark"), Column("Metric"), Column("Source")]
    columns += [Column("Paper", "", True), Column("Here", "", True), Column("Difference", "", True)]
    lead = (
        "What papers print for these benchmarks, beside what was measured here for the system of the same name, in its "
        "-paper reading where there is one."
    )
    why = [
        f"{name}: {differs[name]}" for name in dict.fromkeys(row["benchmark"] for row in published) if name in differs
    ]
    return Section("published", "Published figures", lead, (Table(columns, rows),), why)


def _ours(results: Results, row: Row) -> Mapping[str, Any]:
    if row["dataset"] == "all":
        return results.mean(row["system"], row["benchmark"], row["metric"])
    datasets = results.of(row["system"], row["benchmark"], "score").get("datasets", {})
    figure = datasets.get(row["dataset"], {}).get("metrics", {}).get(row["metric"], {})
    return {"low": None, "high": None, **figure} if figure else {}


def _efficiency(results: Results) -> Section:
    tables = []
    machines: dict[str, list[str]] = {}
    for benchmark in results.benchmarks:
        spent = {system: costs(results, system, benchmark) for system in results.systems}
        names = [name for name in UNITS if any(name in each for each in spent.values())]
        told_of = [name for name, each in spent.items() if each or results.lacks(name, benchmark)]
        for title, part in (("speed", _SPEED), ("size and memory", [n for n in names if n not in _SPEED])):
            shown = [name for name in names if name in part]
            rows = [
                [Cell(s, s), *(_cost_cell(results, s, benchmark, name, spent[s]) for name in shown)] for s in told_of
            ]
            columns = [Column("System"), *(Column(figures.words(name), "", True) for name in shown)]
            if shown:
                tables.append(Table(columns, rows, f"{benchmark}, {title}"))
        for system in told_of:
            machine = hardware(results, system, benchmark)
            if machine:
                machines.setdefault(machine, []).append(f"{system} on {benchmark}")
    told = [f"Measured on {machine}." for machine in machines]
    if len(machines) > 1:
        told = [f"Measured on {machine}: {_listed(who)}." for machine, who in machines.items()]
        told.append("Figures from different machines do not compare.")
    lead = (
        "The first calls, which load and compile, are not counted. A fusion is not timed: it costs what its members "
        "cost. A reranked run tells what the reranking alone costs, on top of the run it starts from. p50 is the "
        "median, p95 the time that 95 of 100 calls stay under. An index that does not compare every vector has beside "
        "its speeds, in hundredths, how many of an exact search's first hits it finds."
    )
    return Section("efficiency", "Efficiency", lead, tables, told)


def _cost_cell(results: Results, system: str, benchmark: str, name: str, spent: Mapping[str, float]) -> Cell:
    if name in spent:
        caveat = figures.caveat(name, spent)
        return Cell(figures.cost(name, spent[name]), spent[name], caveat, "against an exact search" if caveat else "")
    return MISSING if results.lacks(system, benchmark) else NONE


def _training(results: Results) -> Section | None:
    if not results.training:
        return None
    keys = ["pairs", "epochs", "steps", "seconds", "pairs_per_second", "best_epoch", "best_validation_mrr"]
    keys += ["parameters", "model_bytes", "peak_memory_bytes"]
    sized = ("model_bytes", "peak_memory_bytes")
    shown = [key for key in keys if any(key in each for each in results.training.values())]
    rows = []
    for name, each in results.training.items():
        cells = [
            Cell(figures.size(each[k]) if k in sized else figures.number(each[k]), each[k])
            if each.get(k) is not None
            else NONE
            for k in shown
        ]
        rows.append([Cell(name, name), *cells])
    table = Table([Column("System"), *(Column(figures.words(key), "", True) for key in shown)], rows)
    plot = plots.training_curves(results)
    return Section("training", "Training", "The encoders that were trained here.", (plot, table) if plot else (table,))


def _settings(results: Results) -> Section:
    """The settings that change what a figure means: what was read, cut into what, compared how."""
    names = [
        "kind",
        "index kind",
        "analyzer",
        "text_fields",
        "similarity",
        "k1",
        "b",
        "members",
        "k",
        "chunking",
        "of",
        "top",
        "cut",
    ]
    names += ["lists", "probes", "links", "breadth", "pieces", "bits", "exact_vectors", "candidates"]
    names += ["pooling", "max_tokens", "max_document_tokens", "query_prefix", "precision"]
    rows = []
    for system in results.systems:
        scored = ((b, results.of(system, b, "score").get("settings", {})) for b in results.benchmarks)
        by_values: dict[tuple[str, ...], list[str]] = {}
        for benchmark, settings in scored:
            if settings:
                inner = {**settings, "index kind": settings.get("index", {}).get("kind")}
                values = tuple(_setting_text(setting(inner, name)) for name in names)
                by_values.setdefault(values, []).append(benchmark)
        for values, benchmarks in by_values.items():
            rows.append([Cell(system, system), Cell(_listed(benchmarks)), *(Cell(value, value) for value in values)])
    used = [place for place in range(len(names)) if any(row[place + 2].text for row in rows)]
    columns = [Column("System"), Column("Benchmarks"), *(Column(figures.words(names[place])) for place in used)]
    kept = [[*row[:2], *(row[place + 2] for place in used)] for row in rows]
    lead = "What each figure was made with. Every other setting is in params.yaml and in the results' JSON."
    return Section("settings", "Settings", lead, (Table(columns, kept),))


def _setting_text(value: object) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _data(results: Results) -> Section:
    rows = []
    every = [counts for each in results.collected.values() for counts in each.get("datasets", {}).values()]
    told = [name for name in _COUNTS if name in _ALWAYS_TOLD or any(counts.get(name) for counts in every)]
    for benchmark in results.benchmarks:
        for dataset, counts in results.collected.get(benchmark, {}).get("datasets", {}).items():
            cells = [_number(counts[name]) if name in counts else NONE for name in told]
            rows.append([Cell(benchmark, benchmark), Cell(dataset, dataset), *cells])
    columns = [Column("Benchmark"), Column("Dataset"), *(Column(_COUNTS[name], "", True) for name in told)]
    parts = [Table(columns, rows, "Benchmarks")] if rows else []
    capped = [
        [
            Cell(benchmark, benchmark),
            Cell(dataset, dataset),
            *(Cell(figures.quality(counts[c]), counts[c]) for c in _CEILINGS),
        ]
        for benchmark in results.benchmarks
        for dataset, counts in results.collected.get(benchmark, {}).get("datasets", {}).items()
        if any(counts.get(name, 1.0) < 1 for name in _CEILINGS)
    ]
    if capped:
        columns = [Column("Benchmark"), Column("Dataset"), *(Column(name, "", True) for name in _CEILINGS.values())]
        parts.append(
            Table(columns, capped, "What a retriever without a fault gets, by strict scores, because texts repeat")
        )
    cut = [
        [Cell(system, system), Cell(benchmark, benchmark), *(_number(facts[name]) for name in _CUTS)]
        for benchmark in results.benchmarks
        for system in results.systems
        if "documents_cut" in (facts := headline(results.of(system, benchmark, "index"), "corpora"))
    ]
    if cut:
        columns = [Column("System"), Column("Benchmark"), *(Column(name, "", True) for name in _CUTS.values())]
        parts.append(Table(columns, cut, "Documents longer than an encoder reads"))
    counts = {name: value for name, value in results.mining.items() if name not in _NOT_OF_THE_DATA}
    mined = [[Cell(name, name), _told(value)] for name, value in _leaves(counts)]
    if mined:
        parts.append(
            Table([Column("Count"), Column("", "", True)], mined, "Mining of training pairs", folded=len(mined) > 40)
        )
    lead = (
        "What was judged and what was learned from. Documents are equal if their texts are, line ends and outer white "
        "space aside; a conflict is one question asked twice with different answers. Training pairs that equal a "
        "benchmark's document or query, nearly or exactly, were cut."
    )
    return Section("data", "Data", lead, parts)


def _leaves(value: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, inner in value.items():
        name = f"{prefix}{figures.words(str(key))}"
        if isinstance(inner, Mapping):
            yield from _leaves(inner, f"{name} › ")
        elif not isinstance(inner, list):
            yield name, inner


def _told(value: Any) -> Cell:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value)
    return Cell("" if value is None else str(value))


def _missing(missing: Sequence[str]) -> Section | None:
    if not missing:
        return None
    lead = "The grid wants these files and they are not there; figures that they hold are marked as missing above."
    return Section("missing", "Missing", lead, (), list(missing))


def _number(value: float) -> Cell:
    return Cell(figures.number(value), value)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
