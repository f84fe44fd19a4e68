"""The plots, as Plotly's own JSON: quality against cost, bars with intervals, training curves, depth by size.

Colours go by system and are the same in every plot. Fonts, grid and background are the page's, set where it is drawn.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coderet.reports import figures
from coderet.reports.answers import Answerer
from coderet.reports.page import Choice, Plot
from coderet.reports.results import Results, costs
from coderet.reports.summary import Row

# Okabe and Ito's colours that can be told apart without seeing red or green, dark enough for white and light for black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8b6fc9", "#c79a00", "#3a9bdc", "#8a8a8a")

COST_AXES = {
    "queries_per_second": "queries answered per second (more is better)",
    "query_milliseconds_p50": "milliseconds for one query, median (less is better)",
    "documents_per_second": "documents indexed per second (more is better)",
    "index_bytes": "bytes of the index on disk (less is better)",
    "search_peak_memory_bytes": "bytes of memory at the peak of searching (less is better)",
}

Figure = dict[str, Any]


def colours(systems: Sequence[str]) -> dict[str, str]:
    return {system: COLOURS[place % len(COLOURS)] for place, system in enumerate(systems)}


def quality_against_cost(results: Results) -> Plot | None:
    """A point a system: up is better. None if no system has both a score and a cost."""
    scores = _scored(results)
    drawn = {}
    axes = []
    for name, axis in COST_AXES.items():
        for (benchmark, metric), label in scores.items():
            figure = _scatter(results, benchmark, metric, name, axis)
            if figure:
                drawn[f"{label}|{axis}"] = figure
                axes.append(axis)
    if not drawn:
        return None
    choices = (Choice("Quality", list(scores.values())), Choice("Cost", list(dict.fromkeys(axes))))
    return Plot("cost", "Bars are 95 % intervals. Systems towards the top give better answers.", choices, drawn)


def _scatter(results: Results, benchmark: str, metric: str, cost: str, axis: str) -> Figure | None:
    palette = colours(results.systems)
    told = [(system, results.mean(system, benchmark, metric), costs(results, system, benchmark)) for system in palette]
    drawn = sorted((each for each in told if each[1] and cost in each[2]), key=lambda each: each[2][cost])
    traces = []
    for place, (system, mean, spent) in enumerate(drawn):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "name": system,
                "x": [spent[cost]],
                "y": [100 * mean["value"]],
                "error_y": whiskers([mean]),
                "text": [f"{system}<br>{caveat}" if (caveat := figures.caveat(cost, spent)) else system],
                "textposition": ("top right", "bottom right")[place % 2],  # neighbours would write over each other
                "cliponaxis": False,
                "marker": {"size": 12, "color": palette[system]},
                "hovertemplate": _hover(system, mean, spent),
            }
        )
    if not traces:
        return None
    layout = {
        "showlegend": False,
        "xaxis": {"title": {"text": axis}, "type": "log", **_ticks([spent[cost] for _, _, spent in drawn])},
        "yaxis": {"title": {"text": f"{metric} × 100"}},
    }
    return {"data": traces, "layout": layout}


def _ticks(values: list[float]) -> dict[str, Any]:
    """1, 2 and 5 of every power of ten around the values, written out."""
    low, high = (math.floor(math.log10(value)) for value in (min(values), max(values)))
    places = [digit * 10.0**power for power in range(low, high + 2) for digit in (1, 2, 5)]
    return {"tickvals": places, "ticktext": [figures.number(place) for place in places]}


def _hover(system: str, mean: Mapping[str, Any], spent: Mapping[str, float]) -> str:
    lines = [f"<b>{system}</b>", f"{figures.quality(mean['value'])} ({figures.interval(mean['low'], mean['high'])})"]
    lines += [f"{figures.words(name)}: {figures.cost(name, value)}" for name, value in spent.items()]
    return "<br>".join(lines) + "<extra></extra>"


def bars(results: Results, published: Iterable[Row]) -> Plot | None:
    """A bar a system with its interval, on every metric of every benchmark; the papers' figures below in grey."""
    papers = list(published)
    drawn, labels = {}, []
    for benchmark in results.benchmarks:
        for metric in results.metrics(benchmark):
            label = f"{benchmark} · {metric}"
            drawn[label] = _bars(results, benchmark, metric, papers)
            labels.append(label)
    if not drawn:
        return None
    caption = (
        "Bars are means, whiskers 95 % intervals over queries. Grey: figures that papers print, not measured here."
    )
    return Plot("bars", caption, (Choice("Benchmark and metric", labels),), drawn)


def _bars(results: Results, benchmark: str, metric: str, papers: list[Row]) -> Figure:
    palette = colours(results.systems)
    means = {system: results.mean(system, benchmark, metric) for system in results.systems}
    ranked = sorted((name for name, mean in means.items() if mean), key=lambda name: means[name]["value"])
    printed = [r for r in papers if (r["benchmark"], r["metric"], r["dataset"]) == (benchmark, metric, "all")]
    printed.sort(key=lambda row: row["value"])
    names = [f"{row['system']} (paper)" for row in printed] + ranked
    values = [row["value"] for row in printed] + [means[name]["value"] for name in ranked]
    told: list[Mapping[str, Any]] = [*printed, *(means[name] for name in ranked)]
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": [100 * value for value in values],
        "error_x": whiskers(told),
        "text": [figures.quality(value) for value in values],
        "textposition": "inside",
        "insidetextanchor": "start",
        "insidetextfont": {"color": "#ffffff"},
        "marker": {"color": ["#9a9a9a"] * len(printed) + [palette[name] for name in ranked]},
        "customdata": [figures.interval(each.get("low"), each.get("high")) for each in told],
        "hovertemplate": "<b>%{y}</b><br>%{x:.1f} (%{customdata})<extra></extra>",
    }
    layout = {
        "showlegend": False,
        "height": 110 + 34 * len(names),
        "xaxis": {"title": {"text": f"{metric} × 100"}, "range": [0, 105]},
        "yaxis": {"automargin": True},
    }
    return {"data": [trace], "layout": layout}


def training_curves(results: Results) -> Plot | None:
    """Loss and validation MRR of every trained system, against steps or seconds."""
    curves = {name: each["curve"] for name, each in results.training.items() if each.get("curve")}
    if not curves:
        return None
    palette = colours(results.systems)
    what = {"validation MRR": "validation_mrr", "loss": "loss"}
    against = {"steps": "step", "seconds": "seconds", "epochs": "epoch"}
    drawn = {}
    for shown, key in what.items():
        for axis, place in against.items():
            traces = [_line(name, curve, place, key, palette.get(name, COLOURS[0])) for name, curve in curves.items()]
            layout = {
                "showlegend": True,
                "legend": {"orientation": "h", "y": 1.12},
                "xaxis": {"title": {"text": axis}, "rangemode": "tozero"},
                "yaxis": {"title": {"text": shown}, "rangemode": "tozero"},
            }
            drawn[f"{shown}|{axis}"] = {"data": [trace for trace in traces if trace["x"]], "layout": layout}
    caption = "Validation MRR is on pairs of packages held out of training; it chooses the checkpoint that is kept."
    return Plot("training", caption, (Choice("Shown", list(what)), Choice("Against", list(against))), drawn)


def _line(name: str, curve: Sequence[Mapping[str, Any]], place: str, key: str, colour: str) -> Figure:
    points = [(point[place], point[key]) for point in curve if point.get(key) is not None and place in point]
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(points) < 200 else "lines",
        "name": name,
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "line": {"color": colour, "width": 2},
        "hovertemplate": f"<b>{name}</b><br>%{{x}}: %{{y:.4f}}<extra></extra>",
    }


def depth_by_size(readers: Sequence[Answerer]) -> Plot | None:
    """Where in a window a needle stands against the window's size, a map a generator; None without windows."""
    drawn: dict[str, Figure] = {}
    shown = ("match@0.8", "similarity")
    windows = [each for each in readers if each.settings.get("window") and each.judged["groups"].get("depth")]
    kinds = list(dict.fromkeys(map(_kind, windows)))
    for kind in kinds:
        mine = [each for each in windows if _kind(each) == kind]
        for metric in shown:
            drawn[f"{kind}|{metric}"] = _heat_map(mine, metric)
    if not drawn:
        return None
    choices = (Choice("Read by", kinds), Choice("Shown", shown))
    caption = (
        "Rows: where in the window the middle of the needle is, 0 the beginning. Columns: tokens of the window. A cell "
        "says how many needles it has; point at it for the functions that stand in the window, and those of the "
        "repository, that an answer may be a copy of."
    )
    return Plot("depth", caption, choices, drawn)


def _kind(each: Answerer) -> str:
    comments = each.settings.get("comments", "kept")
    return f"{each.generator} · {each.benchmark}" + ("" if comments == "kept" else f" · comments {comments}")


def _heat_map(windows: Sequence[Answerer], metric: str) -> Figure:
    by_size = {each.settings["window"]: each.judged["groups"]["depth"] for each in windows}
    sizes = sorted(by_size)
    depths = sorted({depth for cells in by_size.values() for depth in cells})
    cells = [[by_size[size].get(depth) for size in sizes] for depth in depths]
    trace = {
        "type": "heatmap",
        "x": [f"{size:,}" for size in sizes],
        "y": [f"{depth}–{float(depth) + 0.1:.1f}" for depth in depths],
        "z": [[100 * cell["metrics"][metric]["value"] if cell else None for cell in row] for row in cells],
        "text": [[f"{cell['queries']}" if cell else "" for cell in row] for row in cells],
        "customdata": [[[cell["shown"], cell["candidates"]] if cell else [0, 0] for cell in row] for row in cells],
        "texttemplate": "%{text}",
        "zmin": 0,
        "zmax": 100,
        "colorscale": "Viridis",
        "colorbar": {"title": {"text": f"{metric} × 100"}},
        "hovertemplate": "%{x} tokens, depth %{y}<br>%{z:.1f} of %{text} needles<br>%{customdata[0]:.0f} functions in "
        "the window, %{customdata[1]:.0f} in the repository<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "tokens of the window"}, "type": "category"},
        "yaxis": {"title": {"text": "depth of the needle"}, "type": "category", "autorange": "reversed"},
    }
    return {"data": [trace], "layout": layout}


def _scored(results: Results) -> dict[tuple[str, str], str]:
    return {(b, m): f"{b} · {m}" for b in results.benchmarks for m in results.leading_metrics(b)}


def whiskers(means: Iterable[Mapping[str, Any]]) -> Figure:
    """Whiskers of the intervals; none where there is no interval."""
    above, below = [], []
    for mean in means:
        known = mean.get("low") is not None and mean.get("high") is not None
        above.append(100 * (mean["high"] - mean["value"]) if known else 0)
        below.append(100 * (mean["value"] - mean["low"]) if known else 0)
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "thickness": 1.2,
        "width": 4,
        "color": "#808890",
    }
