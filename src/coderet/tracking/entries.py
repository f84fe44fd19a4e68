"""What the log-book keeps of a system, of a paper's figure and of the report: names of metrics, tags, files."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from coderet import paths
from coderet.params import Params
from coderet.tracking.logbook import PUBLISHED, REPORT, SYSTEM, Entry

_TRAINING = ("seconds", "pairs", "pairs_per_second", "epochs", "steps", "best_validation_mrr", "peak_memory_bytes")
_ANSWERING = ("prompts", "truncated", "tokens_lost", "prompt_tokens", "completion_tokens", "seconds")


def of_system(
    name: str,
    spec: Mapping[str, Any],
    results: Mapping[str, Mapping[str, Mapping[str, Any]]],
    *,
    costs: Mapping[str, Mapping[str, float]] | None = None,
    training: Mapping[str, Any] | None = None,
    hardware: str = "",
    artifacts: Mapping[str, Sequence[Path]] | None = None,
    datasets: Iterable[tuple[Path, str]] = (),
    grid: str = "default",
) -> Entry:
    """The entry of a retriever, a fusion or a reranked run.

    spec: its part of params. results: the stages' JSON (index, search, rerank, score) by benchmark, as far as they are
    there.
    costs: figures told beside quality, by benchmark.
    """
    metrics: dict[str, float] = {}
    for benchmark, stages in results.items():
        score = stages.get("score", {})
        metrics |= {f"{benchmark}/{metric}": figures["value"] for metric, figures in score.get("all", {}).items()}
        if ranks := score.get("ranks"):
            metrics[f"{benchmark}/median-rank"] = ranks["median"]
    for benchmark, figures in (costs or {}).items():
        metrics |= {f"efficiency/{benchmark}/{cost}": value for cost, value in figures.items()}
    training = training or {}
    metrics |= {f"efficiency/training/{cost}": training[cost] for cost in _TRAINING if _is_number(training, cost)}
    encoder = spec.get("fit", {}).get("encoder", {})
    return Entry(
        name,
        SYSTEM,
        grid,
        params=dict(spec),
        metrics=metrics,
        tags={
            "kind": str(spec.get("kind", "")),
            "encoder": str(encoder.get("kind", "none")),
            **({"hardware": hardware} if hardware else {}),
            "inputs": _digest([results[b].get("score", {}).get("inputs", "") for b in sorted(results)]),
        },
        curve=[_point(point) for point in training.get("curve", [])],
        artifacts=artifacts or {},
        datasets=tuple(datasets),
        computed_from=_digest([results, training, costs]),
    )


def of_answerer(
    name: str,
    spec: Mapping[str, Any],
    judged: Mapping[str, Mapping[str, Any]],
    generated: Mapping[str, Mapping[str, Any]],
    *,
    artifacts: Mapping[str, Sequence[Path]] | None = None,
    grid: str = "default",
) -> Entry:
    """The entry of a generator with a context: metrics by set of problems, tokens and seconds beside them.

    Of problems that are told by what is known of them also those over all sets, `<benchmark>/<metric>`, and the first
    metric of each group, `<benchmark>/depth 0.3/match@0.8`.

    spec: its context, generator and sampling. judged and generated: the stages' JSON by benchmark.
    """
    metrics: dict[str, float] = {}
    for benchmark, stage in judged.items():
        if stage.get("groups"):
            metrics |= {f"{benchmark}/{metric}": figure["value"] for metric, figure in stage["all"].items()}
        for fact, groups in stage.get("groups", {}).items():
            for value, part in groups.items():
                first = next(iter(part["metrics"]))
                metrics[f"{benchmark}/{fact} {value}/{first}"] = part["metrics"][first]["value"]
        for posed, part in stage["datasets"].items():
            metrics |= {f"{posed}/{metric}": figure["value"] for metric, figure in part["metrics"].items()}
            verdicts = stage.get("told", {}).get(posed, {}).get("verdicts", {})
            metrics |= {f"verdicts/{posed}/{verdict}": count for verdict, count in verdicts.items()}
        for posed, spent in generated.get(benchmark, {}).get("datasets", {}).items():
            told = {cost: spent[cost] for cost in _ANSWERING if _is_number(spent, cost)}
            metrics |= {f"efficiency/{posed}/{cost}": value for cost, value in told.items()}
    return Entry(
        name,
        SYSTEM,
        grid,
        params=dict(spec),
        metrics=metrics,
        tags={
            "kind": str(spec.get("generator", {}).get("kind", "")),
            "context": str(spec.get("context", {}).get("run", "")),
            "inputs": _digest([judged[each].get("inputs", "") for each in sorted(judged)]),
        },
        artifacts=artifacts or {},
        computed_from=_digest([judged, generated]),
    )


def answerer_spec(params: Params, context: str, generator: str) -> dict[str, Any]:
    """What params say of a generator with a context."""
    return {
        "context": asdict(params.contexts[context]),
        "generator": asdict(params.generators[generator]),
        "sampling": asdict(params.answering.sampling),
    }


def spec_of(params: Params, name: str) -> dict[str, Any]:
    """What params say of a retriever, a fusion or a reranked run."""
    if name in params.grid.rerankings:
        run, reranker = params.grid.rerankings[name]
        return params.rerankers[reranker].spec(run)
    if name in params.fusions:
        fusion = params.fusions[name]
        return {"kind": fusion.kind, "members": list(fusion.members), **fusion.settings}
    retriever = params.retrievers[name]
    spec = {**retriever.spec, "fit": retriever.fit}
    return {key: value for key, value in spec.items() if value != {}}


def files_of(name: str, benchmarks: Iterable[str]) -> dict[str, list[Path]]:
    """The files of a system that go along with its entry, by their folder there: results, scorecards, runs."""
    files = {}
    for benchmark in benchmarks:
        results = paths.result(benchmark, name, "score").parent
        for kind, folder in (
            ("results", results),
            ("scores", paths.scores(benchmark, name)),
            ("runs", paths.runs(benchmark, name)),
            ("completions", paths.completions(benchmark, name)),
        ):
            found = sorted(path for path in folder.glob("*") if path.is_file())
            if found or kind != "completions":  # retrievers have none
                files[f"{benchmark}/{kind}"] = found
    return files


def of_published(rows: Iterable[Mapping[str, Any]], grid: str = "default") -> list[Entry]:
    """One entry for each system and source among summary rows whose source is a paper's table."""
    by_system: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if row["source"].startswith("published:"):
            part = "" if row["dataset"] == "all" else f"{row['dataset']}/"
            metrics = by_system.setdefault((row["system"], row["source"].removeprefix("published:")), {})
            metrics[f"{row['benchmark']}/{part}{row['metric']}"] = row["value"]
    return [
        Entry(
            f"{system} ({source})",
            PUBLISHED,
            grid,
            {},
            metrics,
            {"paper": source.rpartition(" table ")[0] or source, "table": source},
        )
        for (system, source), metrics in by_system.items()
    ]


def of_report(files: Sequence[Path], grid: str = "default") -> Entry:
    """The report and the summary, in a run of their own: they are about all systems."""
    contents = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return Entry("report", REPORT, grid, artifacts={"": files}, computed_from=_digest(contents))


def _point(point: Mapping[str, Any]) -> tuple[int, dict[str, float]]:
    values = {f"training/{key}": value for key, value in point.items() if key not in ("step",) and value is not None}
    return int(point["step"]), values


def _is_number(found: Mapping[str, Any], name: str) -> bool:
    return isinstance(found.get(name), int | float)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
