"""The report's part about answers: what contexts let generators solve, why, and at what cost."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from coderet.reports import figures, sweeps
from coderet.reports.answers import Answerer, Answers, Change
from coderet.reports.comparison import LEVEL
from coderet.reports.page import Cell, Column, Section, Table
from coderet.reports.results import Results

EXAMPLES = 3  # problems won and lost that are shown of each answerer
SHOWN = 1200  # characters of a text that is shown
LEAKED = 0.5  # share of the reference's own lines from which on a context gives the answer away
NONE = Cell("–")


def sections(answers: Answers, results: Results, published: Sequence[Mapping[str, Any]] = ()) -> list[Section]:
    """All sections about answers; none where nothing was answered."""
    if not answers.answerers:
        return []
    changes = {posed: answers.changes(posed, benchmark) for benchmark, posed in answers.sets}
    found = [
        _solved(answers, changes, published),
        _retrieval(answers, results),
        sweeps.section(answers, changes, results),
        _verdicts(answers),
        _examples(answers, changes),
        _spent(answers),
    ]
    return [each for each in found if each]


def _solved(
    answers: Answers, changes: Mapping[str, Mapping[str, Change]], published: Sequence[Mapping[str, Any]]
) -> Section:
    parts = []
    points = []
    for benchmark, posed in answers.sets:
        mine = [each for each in answers.of(benchmark) if posed in each.judged["datasets"]]
        parts.append(_solved_table(posed, mine, changes[posed]))
        points += list(_findings(posed, changes[posed]))
        rows = [row for row in published if row["benchmark"] == benchmark]
        if rows:
            parts.append(_papers(benchmark, rows))
    lead = (
        "Problems solved, by running the answers. ▲ more than the same generator without context, ▼ fewer, ≈ not told "
        "apart: paired randomisation test over problems, Holm-corrected over contexts, 5 %. Won and lost are problems "
        "that only one of the two solves, and McNemar's exact test is of these."
    )
    return Section("answers", "Answers by context", lead, parts, points)


def _solved_table(posed: str, answerers: Sequence[Answerer], changes: Mapping[str, Change]) -> Table:
    metrics = list(dict.fromkeys(metric for each in answerers for metric in each.metrics(posed)))
    best = {m: max(each.metrics(posed).get(m, {}).get("value", -1) for each in answerers) for m in metrics}
    rows = []
    for each in answerers:
        change = changes.get(each.name)
        cells = [_figure(each.metrics(posed).get(m), change if m == metrics[0] else None, best[m]) for m in metrics]
        own = [Cell(each.generator, each.generator), Cell(each.context, each.context), Cell(each.taken())]
        rows.append([*own, *cells, *_won_and_lost(change)])
    columns = [Column("Generator"), Column("Context"), Column("Taken"), *(Column(m, "", True) for m in metrics)]
    columns += [Column(name, "", True) for name in ("won", "lost", "McNemar p")]
    problems = max(each.judged["datasets"][posed]["queries"] for each in answerers)
    return Table(columns, rows, f"{posed}, {problems} problems")


def _figure(figure: Mapping[str, Any] | None, change: Change | None, best: float) -> Cell:
    if figure is None:
        return NONE
    text, hint = figures.quality(figure["value"]), ""
    if change:
        text += f" {change.mark}"
        hint = f"{100 * change.value:+.1f} against no context, corrected p {figures.p_value(change.p)}"
    value = figure["value"]
    return Cell(text, value, figures.interval(figure.get("low"), figure.get("high")), hint, value == best)


def _won_and_lost(change: Change | None) -> list[Cell]:
    if change is None:
        return [NONE] * 3
    counts = (len(change.gains), len(change.losses))
    return [*(Cell(str(each), each) for each in counts), Cell(figures.p_value(change.mcnemar), change.mcnemar)]


def _findings(posed: str, changes: Mapping[str, Change]) -> Iterator[str]:
    for name, change in changes.items():
        apart = "more than chance explains" if change.p < LEVEL else "which chance explains too"
        yield (
            f"{posed}, {name}: {100 * change.value:+.1f} against no context, {apart}; {len(change.gains)} won, "
            f"{len(change.losses)} lost."
        )


def _papers(benchmark: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    contexts = list(dict.fromkeys(row["context"] for row in rows))
    values = {(row["source"], row["system"], row["context"]): row["value"] for row in rows}
    told = []
    for source, system in dict.fromkeys((row["source"], row["system"]) for row in rows):
        found = [values.get((source, system, context)) for context in contexts]
        cells = [NONE if each is None else Cell(figures.quality(each), each) for each in found]
        told.append([Cell(system, system), Cell(source.removeprefix("published:")), *cells])
    columns = [Column("Generator"), Column("Source"), *(Column(each, "pass@1", True) for each in contexts)]
    return Table(columns, told, f"{benchmark} in the paper", folded=True)


def _retrieval(answers: Answers, results: Results) -> Section | None:
    """What a run scores beside what it lets be solved."""
    rows = []
    for benchmark, posed in answers.sets:
        for each in answers.of(benchmark):
            score = results.of(each.run, benchmark, "score")
            headline = score.get("all", {}).get(score.get("headline"), {}) if score else {}
            metrics = each.metrics(posed)
            if headline and metrics:
                first = next(iter(metrics))
                solved = metrics[first]["value"]
                found = Cell(figures.quality(headline["value"]), headline["value"], score["headline"])
                row = [Cell(posed), Cell(each.generator), Cell(each.context), found]
                rows.append([*row, Cell(figures.quality(solved), solved, first)])
    if not rows:
        return None
    columns = [Column("Problems"), Column("Generator"), Column("Context")]
    columns += [Column("retrieval", "", True), Column("solved", "", True)]
    lead = (
        "A retriever's score beside what its documents let a generator solve. Retrieval is scored over all queries of "
        "the benchmark, its own answer included, which a context leaves out."
    )
    return Section("retrieval-and-execution", "Retrieval against execution", lead, (Table(columns, rows),))


def _verdicts(answers: Answers) -> Section:
    parts = []
    for name, what in (("verdicts", "What became of the answers"), ("forms", "How answers stood in completions")):
        rows = list(_tallied(answers, lambda each, posed, name=name: each.judged["told"][posed][name]))  # type: ignore[misc]
        names = list(dict.fromkeys(key for _, counts in rows for key in counts))
        told = [
            [*cells, *(Cell(str(counts.get(key, 0)), counts.get(key, 0)) for key in names)] for cells, counts in rows
        ]
        columns = [Column("Problems"), Column("Generator"), Column("Context"), *(Column(n, "", True) for n in names)]
        parts.append(Table(columns, told, what))
    walls = sorted({str(each.judged.get("wall")) for each in answers.answerers if each.judged.get("wall")})
    lead = f"Counted in samples. Programs ran behind: {', '.join(walls) or 'nothing known'}."
    if "limits" in walls:
        lead += (
            " That is limits alone: without bubblewrap or name spaces, programs were not kept from network and files."
        )
    return Section("verdicts", "Verdicts", lead, parts)


def _tallied(
    answers: Answers, counts: Callable[[Answerer, str], Mapping[str, Any]]
) -> Iterator[tuple[list[Cell], Mapping[str, Any]]]:
    for benchmark, posed in answers.sets:
        for each in answers.of(benchmark):
            yield [Cell(posed), Cell(each.generator), Cell(each.context)], counts(each, posed)


def _examples(answers: Answers, changes: Mapping[str, Mapping[str, Change]]) -> Section | None:
    parts = []
    leaks = []
    for benchmark, posed in answers.sets:
        for each in answers.of(benchmark):
            ours = _first_samples(each, posed)
            leaks.append([Cell(posed), Cell(each.generator), Cell(each.context), *_leaked(ours.values())])
            plain, change = answers.without_context(benchmark, each.generator), changes[posed].get(each.name)
            if change is None or plain is None:
                continue
            theirs = _first_samples(plain, posed)
            told = [("won", own) for own in change.gains[:EXAMPLES]] + [
                ("lost", own) for own in change.losses[:EXAMPLES]
            ]
            rows = [_example(what, own, ours[own], theirs[own]) for what, own in told]
            if rows:
                names = ("Question", "Documents", "Answer with them", "Answer without")
                columns = [Column(""), Column("Problem"), *(Column(name, text=True) for name in names)]
                parts.append(
                    Table(columns, rows, f"{posed}, {each.name}: documents that helped and misled", folded=True)
                )
    columns = [Column("Problems"), Column("Generator"), Column("Context")]
    columns += [
        Column(name, "", True) for name in ("contexts with the answer", "solved of them", "solved of the others")
    ]
    table = Table(columns, leaks, "Leaks")
    lead = (
        f"A context gives the answer away if it holds {100 * LEAKED:g} % or more of the reference's lines that the "
        "question has not: what an oracle is for, and what no other context should do. Examples are the first problems "
        "that only one of the two solves."
    )
    return Section("examples", "What helped and what misled", lead, (table, *parts))


def _first_samples(each: Answerer, posed: str) -> dict[str, dict[str, Any]]:
    return {row["problem_id"]: row for row in each.samples(posed).to_pylist() if row["sample"] == 0}


def _leaked(samples: Iterable[Mapping[str, Any]]) -> list[Cell]:
    known = [row for row in samples if row["leak"] is not None]
    if not known:
        return [NONE] * 3
    leaked = np.array([row["leak"] >= LEAKED for row in known])
    passed = np.array([row["verdict"] == "passed" for row in known])
    cells = [Cell(f"{int(leaked.sum())} of {len(known)}", int(leaked.sum()))]
    for part in (leaked, ~leaked):
        share = float(passed[part].mean()) if part.any() else None
        cells.append(NONE if share is None else Cell(figures.quality(share), share))
    return cells


def _example(what: str, own: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Cell]:
    texts = (ours["question"], ours["context"], *(f"# {row['verdict']}\n{row['code']}" for row in (ours, theirs)))
    return [Cell(what), Cell(own), *(Cell(_cut(text.strip())) for text in texts)]


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}\n…"


def _spent(answers: Answers) -> Section:
    rows = []
    for benchmark, posed in answers.sets:
        for each in answers.of(benchmark):
            spent = each.generated["datasets"][posed]
            made, seconds = spent.get("made", 0), spent.get("seconds", 0.0)
            speed = spent.get("made_tokens", 0) / seconds if made and seconds else None
            share = spent["truncated"] / max(1, spent["prompts"])
            cells = [
                Cell(figures.quality(share), share, "", f"{spent['tokens_lost']} tokens of documents lost"),
                *(_number(spent[name]) for name in ("documents_cut", "documents_dropped")),
                *(_number(spent[name]) for name in ("prompt_tokens", "completion_tokens")),
                _number(seconds) if made else Cell("kept", hint="all completions were there before"),
                NONE if speed is None else _number(speed),
                _number(each.judged.get("seconds", 0.0)),
            ]
            rows.append([Cell(posed), Cell(each.generator), Cell(each.context), *cells])
    columns = [Column("Problems"), Column("Generator"), Column("Context"), Column("contexts cut", "% of prompts", True)]
    columns += [
        Column(name, "", True) for name in ("documents cut", "documents dropped", "prompt tokens", "new tokens")
    ]
    columns += [Column("asking", "s", True), Column("new tokens", "/s", True), Column("judging", "s", True)]
    lead = "Context that did not fit, tokens and seconds. Completions are kept: only those that were new took time."
    return Section("answers-cost", "What answers cost", lead, (Table(columns, rows),))


def _number(value: float) -> Cell:
    return Cell(figures.number(value), value)
