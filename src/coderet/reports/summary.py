"""The summary: one flat row a figure, measured or published, for whoever reads results with a program.

`value` is in 0..1 for quality, whose unit is `fraction`; other units are named. dataset `all` is the benchmark's mean
of that metric, over queries or over datasets as `mean` says; costs are no means, so theirs is null. `median-rank`, of
needles, is in documents.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coderet.reports.results import Results, costs, unit

Row = dict[str, Any]


def summary_rows(results: Results, published: Iterable[Row] = ()) -> list[Row]:
    """Quality, then cost, by benchmark and system; the published figures last."""
    measured: list[Row] = []
    for benchmark in results.benchmarks:
        for system in results.systems:
            measured += _quality(results, system, benchmark)
            measured += _cost(results, system, benchmark)
    return measured + list(published)


def _quality(results: Results, system: str, benchmark: str) -> Iterator[Row]:
    score = results.of(system, benchmark, "score")
    for metric, figures in score.get("all", {}).items():
        yield _row(system, benchmark, "all", metric, figures, figures["queries"], score["mean"])
    for dataset, part in score.get("datasets", {}).items():
        for metric, figures in part["metrics"].items():
            yield _row(system, benchmark, dataset, metric, figures, part["queries"], "queries")
    if ranks := score.get("ranks"):
        queries = sum(part["queries"] for part in score["datasets"].values())
        yield _row(system, benchmark, "all", "median-rank", {"value": ranks["median"]}, queries, None, "documents")


def _cost(results: Results, system: str, benchmark: str) -> Iterator[Row]:
    for name, value in costs(results, system, benchmark).items():
        yield _row(system, benchmark, "all", name, {"value": value}, None, None, unit(name))


def _row(
    system: str,
    benchmark: str,
    dataset: str,
    metric: str,
    figures: Mapping[str, Any],
    queries: int | None,
    mean: str | None,
    unit: str = "fraction",
) -> Row:
    return {
        "system": system,
        "benchmark": benchmark,
        "dataset": dataset,
        "metric": metric,
        "value": figures["value"],
        "low": figures.get("low"),
        "high": figures.get("high"),
        "queries": queries,
        "mean": mean,
        "source": "measured",
        "unit": unit,
    }
