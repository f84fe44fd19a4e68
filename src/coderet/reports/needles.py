"""The report's part about needles: who finds them among functions, who reads them out of a window, and both together.

A benchmark is about needles where its scores have ranks, or its judged answers are told by what is known of their
problems. Whatever of this there is makes the section; where there is nothing, there is none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coderet.metrics import significance
from coderet.params import REFERENCES
from coderet.reports import figures, plots
from coderet.reports.answers import Answerer, Answers
from coderet.reports.comparison import LEVEL
from coderet.reports.page import Cell, Column, Page, Plot, Section, Table
from coderet.reports.results import Results

NONE = Cell("–")
HEADLINE = "match@0.8"


def reading(answers: Answers) -> list[Answerer]:
    """Those who were asked for needles."""
    return [each for each in answers.answerers if each.judged.get("groups")]


def section(results: Results, answers: Answers, published: Sequence[Mapping[str, Any]] = ()) -> Section | None:
    """published: language models' figures (`published.published_needles`)."""
    readers = reading(answers)
    ranked = [each for each in results.benchmarks if any(_ranks(results, each).values())]
    gauged = [each for each in results.benchmarks if _gauges(results, each)]
    known = dict.fromkeys([*gauged, *ranked, *(each.benchmark for each in readers)])
    if not known:
        return None
    parts: list[Table | Plot] = []
    points: list[str] = []
    for benchmark in known:
        mine = [each for each in readers if each.benchmark == benchmark]
        if how_hard := _difficulty(results, benchmark):
            parts.append(how_hard)
        if benchmark in ranked:
            parts.append(_retrievers(results, benchmark))
        if mine:
            parts.append(_readers(benchmark, mine))
            contrasts = _contrasts(mine, answers.permutations, answers.seed)
            if contrasts:
                parts.append(_against_windows(benchmark, contrasts))
                points += [each.sentence(benchmark) for each in contrasts]
            parts += [*_grouped(benchmark, mine), _thresholds(benchmark, mine), _forms(benchmark, mine)]
        parts += [_papers(benchmark, rows)] if (rows := [r for r in published if r["benchmark"] == benchmark]) else []
    plot = plots.depth_by_size(readers)
    if plot:
        parts.append(plot)
    lead = (
        "A function is described without its name. Retrievers rank all candidates: rank is the needle's, expected "
        "over orders of equal scores, and recall in tokens says whether it is whole among the first functions that "
        "have so many. Language models repeat it out of a context: the needle alone (oracle), the window it stands in, "
        f"or what a retriever found. {HEADLINE} says that the answer is a copy of the needle rather than of another "
        "function, and alike by 0.8 or more. Intervals are over repositories, whose needles depend on each other."
    )
    return Section("needles", "Needles", lead, parts, points)


def _ranks(results: Results, benchmark: str) -> dict[str, Mapping[str, float]]:
    return {system: results.of(system, benchmark, "score").get("ranks", {}) for system in results.systems}


def depth_page(answers: Answers) -> Page | None:
    """The map of depth by size alone, for whoever has no report beside it; None without windows."""
    plot = plots.depth_by_size(reading(answers))
    if plot is None:
        return None
    lead = f"How often the needle was read out of a window, in hundredths: {HEADLINE}, or the mean similarity."
    return Page("Needles by depth and size", lead, (), (Section("depth", "Depth by size", plot.caption, (plot,)),))


def _gauges(results: Results, benchmark: str) -> dict[str, Mapping[str, Mapping[str, float]]]:
    """What was found when the benchmark was built, by dataset."""
    datasets = results.collected.get(benchmark, {}).get("datasets", {})
    return {name: counts["difficulty"] for name, counts in datasets.items() if counts.get("difficulty")}


def _difficulty(results: Results, benchmark: str) -> Table | None:
    """How hard each repository is, and their mean above."""
    gauges = _gauges(results, benchmark)
    if not gauges:
        return None
    names = list(next(iter(gauges.values()))["bm25"])
    by = [(who, name) for name in names for who in ("bm25", "random")]
    means = [float(np.mean([each[who][name] for each in gauges.values()])) for who, name in by]
    rows = [[Cell("all, alike", ""), *(Cell(figures.quality(mean), mean) for mean in means)]]
    for dataset, each in gauges.items():
        found = [each[who][name] for who, name in by]
        rows.append([Cell(dataset, dataset), *(Cell(figures.quality(value), value) for value in found)])
    columns = [Column("Repository"), *(Column(name.removesuffix("-expected"), who, True) for who, name in by)]
    caption = f"{benchmark}, how hard the needles are: BM25 over words of code, and a random order"
    return Table(columns, rows, caption, folded=True)


def _retrievers(results: Results, benchmark: str) -> Table:
    ranks = _ranks(results, benchmark)
    names = [name for name in results.metrics(benchmark) if not name.endswith("-folded")]
    best = {name: _best(results, benchmark, name) for name in names}
    least = min((each["median"] for each in ranks.values() if each), default=None)
    rows = []
    for system, median in ranks.items():
        cells = []
        for name in names:
            mean = results.mean(system, benchmark, name)
            told = figures.interval(mean.get("low"), mean.get("high")) if mean else ""
            strong = bool(mean) and mean["value"] == best[name]
            cells.append(
                Cell(figures.quality(mean["value"]), mean["value"], told, strong=strong) if mean else Cell("missing")
            )
        found = Cell(f"{median['median']:g}", median["median"], strong=median["median"] == least) if median else NONE
        rows.append([Cell(system, system), found, *cells])
    some = next((each for each in ranks.values() if each), None)
    if some:
        floors = [results.floor(benchmark, name) for name in names]
        chance = [NONE if floor is None else Cell(figures.quality(floor), floor) for floor in floors]
        rows.append([Cell("random order", ""), Cell(f"{some['random']:g}", some["random"]), *chance])
    columns = [Column("Retriever"), Column("median rank", "", True)]
    columns += [Column(name.removesuffix("-expected"), "", True) for name in names]
    score = next(each for each in (results.of(s, benchmark, "score") for s in results.systems) if each.get("ranks"))
    needles = sum(part["queries"] for part in score["datasets"].values())
    caption = (
        f"{benchmark}, retrievers: {needles} needles of {len(score['datasets'])} repositories, each among "
        f"{score['ranks']['candidates']:g} functions, median"
    )
    return Table(columns, rows, caption)


def _best(results: Results, benchmark: str, name: str) -> float:
    values = [mean["value"] for system in results.systems if (mean := results.mean(system, benchmark, name))]
    return (min if name == "relative-rank" else max)(values, default=-1.0)


def _readers(benchmark: str, readers: Sequence[Answerer]) -> Table:
    best = max(each.judged["all"][HEADLINE]["value"] for each in readers)
    rows = []
    for each in readers:
        whole = each.judged["all"]
        given = each.judged.get("given", {})
        asked = sum(part["queries"] for part in each.judged["datasets"].values())
        inside = given.get("held", {}).get("problems", 0)
        spent = [each.generated["datasets"][posed] for posed in each.judged["datasets"]]
        tokens = sum(part["prompt_tokens"] for part in spent) / max(1, sum(part["prompts"] for part in spent))
        languages = each.judged["groups"]["language"].values()
        shown = sum(group["queries"] * group["shown"] for group in languages) / max(1, asked)
        rows.append(
            [
                Cell(each.generator, each.generator),
                Cell(each.context, each.context),
                Cell(taken(each)),
                Cell(str(asked), asked),
                Cell(figures.number(tokens), tokens),
                Cell(figures.number(shown), shown),
                Cell(figures.quality(inside / asked), inside / asked, f"{inside} of {asked}"),
                _of(whole[HEADLINE], whole[HEADLINE]["value"] == best),
                *(_of(given.get(key, {}).get("metrics", {}).get(HEADLINE)) for key in ("held", "lacking")),
                _of(whole["similarity"]),
            ]
        )
    columns = [Column("Generator"), Column("Context"), Column("Taken"), Column("needles", "", True)]
    columns += [Column("prompt", "tokens", True), Column("functions shown", "whole", True)]
    columns += [Column("needle in context", "% of needles", True), Column(HEADLINE, "", True)]
    columns += [Column(HEADLINE, "needle in context", True), Column(HEADLINE, "not in context", True)]
    columns += [Column("similarity", "", True)]
    return Table(columns, rows, f"{benchmark}, read by language models")


def _of(figure: Mapping[str, Any] | None, strong: bool = False) -> Cell:
    if figure is None:
        return NONE
    told = figures.interval(figure.get("low"), figure.get("high"))
    return Cell(figures.quality(figure["value"]), figure["value"], told, strong=strong)


def taken(each: Answerer) -> str:
    """What was shown, in words."""
    settings = each.settings
    if settings.get("window"):
        comments = settings.get("comments", "kept")
        without = "" if comments == "kept" else f", comments {comments}"
        return f"{settings['window']} tokens around the needle{without}"
    budget = f" in {settings['budget']} tokens" if settings.get("budget") else ""
    if settings.get("distractors"):
        words = f"the needle and others of {each.run}{budget}"
    elif each.run in REFERENCES:
        words = {"none": "nothing", "oracle": "the needle alone", "random": f"functions by lot{budget}"}[each.run]
    else:
        words = f"first of {each.run}{budget}"
    if settings.get("shows", "text") != "text":
        words += ", their names alone"
    order = settings.get("order", "rank")
    return words if order == "rank" or each.run in ("none", "oracle") else f"{words}, {order}"


def retrieved(each: Answerer) -> bool:
    """Whether what a retriever found was read, and nothing put beside it or left of it."""
    controlled = each.settings.get("distractors") or each.settings.get("shows", "text") != "text"
    return each.run not in REFERENCES and not each.settings.get("window") and not controlled


@dataclass(frozen=True)
class Contrast:
    """Retrieve, then read, against a window read by the same generator on the same problems."""

    ours: Answerer
    theirs: Answerer
    value: float
    p: float

    def sentence(self, benchmark: str) -> str:
        apart = "more than chance explains" if self.p < LEVEL else "which chance explains too"
        return f"{benchmark}, {self.ours.name} against {self.theirs.name}: {100 * self.value:+.1f} {HEADLINE}, {apart}."


def _contrasts(readers: Sequence[Answerer], permutations: int, seed: int) -> list[Contrast]:
    """Every retriever's context with every window of the same generator, p values Holm-corrected."""
    found: list[tuple[Answerer, Answerer, float, float]] = []
    for ours in readers:
        for theirs in readers:
            if ours.generator != theirs.generator or not retrieved(ours) or not theirs.settings.get("window"):
                continue
            columns = [_columns(each) for each in (ours, theirs)]
            if columns[0].keys() != columns[1].keys():
                continue  # other problems were put to them
            own, other = ([each[posed] for posed in columns[0]] for each in columns)
            value = float(np.mean([a.mean() - b.mean() for a, b in zip(own, other, strict=True)]))
            found.append((ours, theirs, value, significance.paired_p_value(own, other, permutations, seed)))
    corrected = significance.holm([p for *_, p in found])
    return [Contrast(a, b, value, float(p)) for (a, b, value, _), p in zip(found, corrected, strict=True)]


def _columns(each: Answerer) -> dict[str, np.ndarray]:
    scores = {posed: each.scores(posed) for posed in each.judged["datasets"]}
    return {posed: np.array([own[HEADLINE] for own in found.values()]) for posed, found in scores.items()}


def _against_windows(benchmark: str, contrasts: Sequence[Contrast]) -> Table:
    rows = [
        [
            Cell(each.ours.generator, each.ours.generator),
            Cell(each.ours.context, each.ours.context),
            Cell(each.theirs.context, each.theirs.context),
            Cell(f"{100 * each.value:+.1f}", each.value),
            Cell(figures.p_value(each.p), each.p),
        ]
        for each in contrasts
    ]
    columns = [Column("Generator"), Column("Retrieved"), Column("Window"), Column("difference", HEADLINE, True)]
    columns += [Column("p", "corrected", True)]
    caption = f"{benchmark}, retrieve, then read, against a window: paired randomisation test over needles"
    return Table(columns, rows, caption)


def _grouped(benchmark: str, readers: Sequence[Answerer]) -> Iterator[Table]:
    """By language where there are several, by repository, and by depth with the functions that were shown."""
    names = {fact: list(dict.fromkeys(v for r in readers for v in r.judged["groups"].get(fact, {}))) for fact in FACTS}
    for fact, values in names.items():
        if len(values) < (2 if fact == "language" else 1):
            continue
        rows = []
        for each in readers:
            if fact == "depth" and each.run in ("none", "oracle") and not each.settings.get("window"):
                continue  # what stands alone has no depth
            groups = each.judged["groups"].get(fact, {})
            for value in sorted(groups):
                part = groups[value]
                told = [Cell(each.generator), Cell(each.context), Cell(value, value)]
                counts = [Cell(str(part["queries"]), part["queries"])]
                counts += [Cell(figures.number(part[each_]), part[each_]) for each_ in ("candidates", "shown")]
                rows.append([*told, *counts, _of(part["metrics"][HEADLINE]), _of(part["metrics"]["similarity"])])
        if rows:
            columns = [Column("Generator"), Column("Context"), Column(fact), Column("needles", "", True)]
            columns += [Column("candidates", "", True), Column("functions shown", "", True)]
            columns += [Column(HEADLINE, "", True), Column("similarity", "", True)]
            yield Table(columns, rows, f"{benchmark} by {fact}", folded=True)
    rows = []
    for each in readers:
        for posed, part in each.judged["datasets"].items():
            told = [Cell(each.generator), Cell(each.context), Cell(posed, posed), Cell(str(part["queries"]))]
            rows.append([*told, *(_of(part["metrics"].get(metric)) for metric in (HEADLINE, "similarity"))])
    columns = [Column("Generator"), Column("Context"), Column("Repository"), Column("needles", "", True)]
    columns += [Column(HEADLINE, "", True), Column("similarity", "", True)]
    yield Table(columns, rows, f"{benchmark} by repository", folded=True)


FACTS = ("language", "depth")


def _thresholds(benchmark: str, readers: Sequence[Answerer]) -> Table:
    names = sorted({name for each in readers for name in each.judged["all"] if name.startswith("match@")})
    rows = [
        [Cell(each.generator), Cell(each.context), *(_of(each.judged["all"].get(name)) for name in names)]
        for each in readers
    ]
    columns = [Column("Generator"), Column("Context"), *(Column(name, "", True) for name in names)]
    return Table(columns, rows, f"{benchmark} at every threshold of similarity", folded=True)


def _forms(benchmark: str, readers: Sequence[Answerer]) -> Table:
    told = []
    for each in readers:
        counts: dict[str, int] = {}
        for part in each.judged.get("told", {}).values():
            for form, count in part["forms"].items():
                counts[form] = counts.get(form, 0) + count
        told.append((each, counts))
    names = list(dict.fromkeys(form for _, counts in told for form in counts))
    rows = [
        [
            Cell(each.generator),
            Cell(each.context),
            *(Cell(str(counts.get(name, 0)), counts.get(name, 0)) for name in names),
        ]
        for each, counts in told
    ]
    columns = [Column("Generator"), Column("Context"), *(Column(name, "", True) for name in names)]
    return Table(columns, rows, f"{benchmark}, how answers stood in completions", folded=True)


def _papers(benchmark: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    values = {(row["system"], row["dataset"]): row["value"] for row in rows}
    told = [
        [
            Cell(system, system),
            *(Cell(figures.quality(values[system, each]), values[system, each]) for each in datasets),
        ]
        for system in dict.fromkeys(row["system"] for row in rows)
    ]
    metric = rows[0]["metric"]
    columns = [Column("Language model"), *(Column(each, metric, True) for each in datasets)]
    return Table(columns, told, f"{benchmark} as published: windows of 16,384 tokens, one answer each", folded=True)
