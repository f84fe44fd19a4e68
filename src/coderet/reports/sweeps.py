"""What one setting of a context does: how many documents are shown, how long their chunks are, how wide a window is.

Contexts of the grid that differ in that setting alone are a family, told as a line from setting to problems solved
(figures 2 and 6 of CodeRAG-Bench). Beside it stand the same generator without context and, where chunks are cut,
whole documents. Contexts that differ in more are in no family, for nobody could tell what made the difference.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coderet.reports import figures, plots
from coderet.reports.answers import Answerer, Answers, Change
from coderet.reports.page import Cell, Choice, Column, Plot, Section, Table
from coderet.reports.results import Results

SETTINGS = {
    "documents": "documents shown",
    "chunking.size": "size of a chunk",
    "budget": "tokens that documents may have",
    "window": "tokens of the window",
}
NOTHING = Cell("–", hint="no context of the grid has this value")
DASHES = ("solid", "dash", "dot", "dashdot")

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """Answerers of one generator by their value of a setting, which is all that their contexts differ in. whole: the
    one that is the same but for its documents, which are not cut."""

    posed: str
    setting: str
    members: Mapping[int, Answerer]
    plain: Answerer | None
    whole: Answerer | None

    @property
    def first(self) -> Answerer:
        return next(iter(self.members.values()))

    @property
    def name(self) -> str:
        """What its contexts have in common."""
        return self.first.taken(but=self.setting)


def families(answers: Answers) -> list[Family]:
    """Every family of two and more, values ascending."""
    found = []
    for benchmark, posed in answers.sets:
        for setting in SETTINGS:
            alike: dict[tuple[str, str], dict[int, Answerer]] = {}
            for each in answers.of(benchmark):
                if value := _value(each, setting):
                    alike.setdefault((each.generator, _others(each, setting)), {})[value] = each
            for (generator, _), members in alike.items():
                if len(members) > 1:
                    ordered = dict(sorted(members.items()))
                    plain = answers.without_context(benchmark, generator)
                    whole = _uncut(answers.of(benchmark), next(iter(ordered.values()))) if "." in setting else None
                    found.append(Family(posed, setting, ordered, plain, whole))
    return found


def section(answers: Answers, changes: Mapping[str, Mapping[str, Change]], results: Results) -> Section | None:
    """A plot of all families and a table of each set and setting; nothing where the grid has none."""
    found = families(answers)
    if not found:
        return None
    places = dict.fromkeys((each.posed, each.setting) for each in found)
    grouped = {place: [each for each in found if (each.posed, each.setting) == place] for place in places}
    tables = [_table(group, changes[posed]) for (posed, _), group in grouped.items()]
    lead = (
        "Contexts that differ in one setting only. ▲ more solved than without context, ▼ fewer, ≈ not told apart, as "
        "above."
    )
    return Section("context-settings", "How much context", lead, (_plot(grouped, results), *tables))


def _value(each: Answerer, setting: str) -> int | None:
    """The setting of the answerer's context, None where it has no say."""
    own = each.settings
    if own.get("run") == "none" or (setting != "window" and own.get("window")):
        return None
    outer, _, inner = setting.partition(".")
    value = own.get(outer) or None
    return (value or {}).get(inner) if inner else value


def _others(each: Answerer, setting: str) -> str:
    """All settings but that one."""
    outer, _, inner = setting.partition(".")
    rest = {name: value for name, value in each.settings.items() if name != outer}
    if inner:
        rest[outer] = {name: value for name, value in each.settings[outer].items() if name != inner}
    return json.dumps(rest, sort_keys=True)


def _uncut(answerers: Sequence[Answerer], cut: Answerer) -> Answerer | None:
    """The answerer that shows whole documents where another shows chunks of them."""
    wanted = {**cut.settings, "chunking": {}}
    alike = (each for each in answerers if each.generator == cut.generator and _same(each.settings, wanted))
    return next(alike, None)


def _same(one: Json, other: Json) -> bool:
    """Whether two contexts are the same; which chunk is taken has no say where documents are whole."""
    return {**one, "chunk": ""} == {**other, "chunk": ""}


def _table(group: Sequence[Family], changes: Mapping[str, Change]) -> Table:
    setting, posed = group[0].setting, group[0].posed
    values = sorted({value for each in group for value in each.members})
    metric = next(iter(group[0].first.metrics(posed)))
    rows = []
    for each in group:
        cells = [_cell(each.members.get(value), posed, changes) for value in values]
        beside = [_cell(other, posed, changes) for other in (each.plain, each.whole)]
        rows.append([Cell(each.first.generator), Cell(each.name), beside[0], *cells, *beside[1:]])
    columns = [Column("Generator"), Column("Context"), Column("none", "", True)]
    columns += [Column(figures.number(value), "", True) for value in values] + [Column("not cut", "", True)]
    if setting != "chunking.size":
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return Table(columns, rows, f"{posed}, {metric} by {SETTINGS[setting]}")


def _cell(each: Answerer | None, posed: str, changes: Mapping[str, Change]) -> Cell:
    if each is None:
        return NOTHING
    figure, change = _headline(each, posed), changes.get(each.name)
    mark = f" {change.mark}" if change else ""
    interval = figures.interval(figure.get("low"), figure.get("high"))
    return Cell(f"{figures.quality(figure['value'])}{mark}", figure["value"], interval, each.context)


def _headline(each: Answerer, posed: str) -> Json:
    found: Json = next(iter(each.metrics(posed).values()))
    return found


def _plot(grouped: Mapping[tuple[str, str], Sequence[Family]], results: Results) -> Plot:
    palette = plots.colours(results.systems)
    drawn = {f"{posed}|{SETTINGS[name]}": _figure(group, palette) for (posed, name), group in grouped.items()}
    choices = (
        Choice("Problems", list(dict.fromkeys(posed for posed, _ in grouped))),
        Choice("Setting", list(dict.fromkeys(SETTINGS[name] for _, name in grouped))),
    )
    caption = (
        "Bars are 95 % intervals over problems. Grey: the same generator without context; dashed in the colour of its "
        "line: with whole documents."
    )
    return Plot("context-settings", caption, choices, drawn)


def _figure(group: Sequence[Family], palette: Mapping[str, str]) -> plots.Figure:
    posed, setting = group[0].posed, group[0].setting
    values = sorted({value for each in group for value in each.members})
    generators = list(dict.fromkeys(each.first.generator for each in group))
    traces, levels = [], {}
    for place, each in enumerate(group):
        colour = palette.get(each.first.run, plots.COLOURS[place % len(plots.COLOURS)])
        dash = DASHES[generators.index(each.first.generator) % len(DASHES)]
        name = f"{each.name}, {each.first.generator}"
        traces.append(_line(name, {value: _headline(one, posed) for value, one in each.members.items()}, colour, dash))
        if each.plain is not None:
            levels[f"without context, {each.first.generator}"] = (_headline(each.plain, posed), "#8a8a8a")
        if each.whole is not None:
            levels[f"{each.whole.taken()}, whole, {each.first.generator}"] = (_headline(each.whole, posed), colour)
    traces += [_level(name, figure, values, colour) for name, (figure, colour) in levels.items()]
    metric = next(iter(group[0].first.metrics(posed)))
    ticks = {"tickvals": values, "ticktext": [figures.number(value) for value in values]}
    layout = {
        "showlegend": True,
        "legend": {"orientation": "h", "y": 1.12},
        "xaxis": {"title": {"text": SETTINGS[setting]}, "type": "log", **ticks},
        "yaxis": {"title": {"text": f"{metric} × 100"}, "rangemode": "tozero"},
    }
    return {"data": traces, "layout": layout}


def _line(name: str, points: Mapping[int, Json], colour: str, dash: str) -> plots.Figure:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [*points],
        "y": [100 * each["value"] for each in points.values()],
        "error_y": plots.whiskers(points.values()),
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"size": 9},
        "hovertemplate": f"<b>{name}</b><br>%{{x}}: %{{y:.1f}}<extra></extra>",
    }


def _level(name: str, figure: Json, values: Sequence[int], colour: str) -> plots.Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [values[0], values[-1]],
        "y": [100 * figure["value"]] * 2,
        "line": {"color": colour, "width": 1, "dash": "longdash"},
        "hovertemplate": f"<b>{name}</b>: %{{y:.1f}}<extra></extra>",
    }
