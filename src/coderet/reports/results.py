"""What the stages left on disk, read once: the only thing that the report knows.

A file that should be there and is not is named in `missing`; nothing else is made up for it. A file that is there but
broken raises.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coderet import paths
from coderet.corpora import store
from coderet.records import DataError

Json = Mapping[str, Any]

_COSTS = ("index", "search", "rerank")  # stages that tell what a system costs


@dataclass(frozen=True)
class Results:
    """stages: JSON by system, benchmark and stage (index, search, rerank, score). Names are in the grid's order."""

    benchmarks: Sequence[str]
    systems: Sequence[str]
    collected: Mapping[str, Json] = field(default_factory=dict)
    stages: Mapping[str, Mapping[str, Mapping[str, Json]]] = field(default_factory=dict)
    training: Mapping[str, Json] = field(default_factory=dict)
    mining: Json = field(default_factory=dict)
    missing: Sequence[str] = ()

    def of(self, system: str, benchmark: str, stage: str) -> Json:
        """The stage's JSON, empty if it is missing."""
        return self.stages.get(system, {}).get(benchmark, {}).get(stage, {})

    def lacks(self, system: str, benchmark: str) -> bool:
        """Whether a file of the system's costs on the benchmark should be there and is not."""
        files = {paths.result(benchmark, system, stage).as_posix() for stage in _COSTS}
        return not files.isdisjoint(self.missing)

    def mean(self, system: str, benchmark: str, metric: str) -> Json:
        """The metric's mean over the benchmark: value, low, high, queries, datasets; empty if there is none."""
        return self.of(system, benchmark, "score").get("all", {}).get(metric, {})

    def floor(self, benchmark: str, metric: str) -> float | None:
        """What a random order of the corpus scores, in runs as deep as those here; None where nothing says so."""
        found = [self.mean(system, benchmark, metric).get("random") for system in self.systems]
        return next((value for value in found if value is not None), None)

    def metrics(self, benchmark: str) -> list[str]:
        """Every metric that some system has on the benchmark, the headline first."""
        scores = [self.of(system, benchmark, "score") for system in self.systems]
        names = [score["headline"] for score in scores if score.get("headline")]
        return list(dict.fromkeys(names + [name for score in scores for name in score.get("all", {})]))

    def leading_metrics(self, benchmark: str) -> list[str]:
        """The headline, and the first metric of every dataset that is judged by others."""
        firsts = [
            next(iter(dataset["metrics"]), None)
            for system in self.systems
            for dataset in self.of(system, benchmark, "score").get("datasets", {}).values()
        ]
        known = self.metrics(benchmark)
        return [name for name in known if name == known[0] or name in firsts]


def read(
    benchmarks: Sequence[str],
    retrievers: Sequence[str],
    fusions: Sequence[str] = (),
    trained: Iterable[str] = (),
    *,
    rerankings: Iterable[str] = (),
    mined: bool = True,
    root: Path = Path(),
) -> Results:
    """The results of the grid below root. Fusions are only scored; mined says whether there should be pairs."""
    missing: list[str] = []

    def read_or_miss(path: Path) -> Json | None:
        if (root / path).exists():
            found = store.read_json(root / path)
            if not isinstance(found, Mapping):
                raise DataError(f"{path} holds {type(found).__name__}, wanted an object; remove it and run: dvc repro")
            return found
        missing.append(path.as_posix())
        return None

    wanted: dict[str, tuple[str, ...]] = dict.fromkeys(retrievers, ("index", "search", "score")) | dict.fromkeys(
        fusions, ("score",)
    )
    wanted |= dict.fromkeys(rerankings, ("rerank", "score"))
    stages: dict[str, dict[str, dict[str, Json]]] = {}
    for system, names in wanted.items():
        for benchmark in benchmarks:
            for stage in names:
                found = read_or_miss(paths.result(benchmark, system, stage))
                if found is not None:
                    stages.setdefault(system, {}).setdefault(benchmark, {})[stage] = found
    return Results(
        tuple(benchmarks),
        tuple(wanted),
        _present({name: read_or_miss(paths.result(name, "collect")) for name in benchmarks}),
        stages,
        _present({name: read_or_miss(paths.training_result(name)) for name in trained}),
        (read_or_miss(paths.MINING_REPORT) if mined else None) or {},
        tuple(missing),
    )


def _present(found: Mapping[str, Json | None]) -> dict[str, Json]:
    return {name: value for name, value in found.items() if value is not None}


def costs(results: Results, system: str, benchmark: str) -> dict[str, float]:
    """What the system costs on the benchmark, by name with unit; what was measured.

    Speed and size are those of the headline dataset and its corpus: a percentile of several is no percentile, and
    documents of further corpora may have been encoded before. An approximate index has its recall among them. Of a
    reranked run they are the reranking's own.
    """
    index = results.of(system, benchmark, "index")
    search = results.of(system, benchmark, "search") or results.of(system, benchmark, "rerank")
    found: dict[str, Any] = {
        **headline(search, "datasets"),
        **headline(index, "corpora"),
        **{key: index.get(key, search.get(key)) for key in ("model_bytes", "parameters")},
    }
    found["index_peak_memory_bytes"] = index.get("peak_memory_bytes")
    found["search_peak_memory_bytes"] = search.get("peak_memory_bytes")
    found["threads"] = search.get("threads")
    told = [*UNITS, *(name for name in found if name.startswith(RECALL))]
    return {name: found[name] for name in told if isinstance(found.get(name), int | float)}


def headline(stage: Json, parts: str) -> Json:
    """The facts of the headline corpus or dataset among the parts of a stage's results."""
    named: dict[str, Json] = stage.get(parts, {})
    return named.get(stage.get("headline", ""), next(iter(named.values()), {}))


UNITS = {
    "documents_per_second": "documents/s",
    "milliseconds_per_document": "ms/document",
    "queries_per_second": "queries/s",
    "pairs_per_second": "pairs/s",
    "query_milliseconds_p50": "ms/query",
    "query_milliseconds_p95": "ms/query",
    "batch_milliseconds_p50": "ms/batch",
    "batch_milliseconds_p95": "ms/batch",
    "index_bytes": "bytes",
    "model_bytes": "bytes",
    "parameters": "parameters",
    "index_peak_memory_bytes": "bytes",
    "search_peak_memory_bytes": "bytes",
    "threads": "threads",
}
"""Unit of each cost, in the order they are told."""

SEARCH_SPEEDS = tuple(name for name, each in UNITS.items() if each in ("queries/s", "ms/query", "ms/batch"))
RECALL = "recall_against_flat@"
"""Of an approximate index: the share of an exact search's first k hits that it finds too, k behind it."""


def unit(name: str) -> str:
    """The unit of a cost."""
    return "fraction" if name.startswith(RECALL) else UNITS[name]


def hardware(results: Results, system: str, benchmark: str) -> str:
    """The machine that the system's costs were measured on, in words; empty if nothing says so."""
    for stage in reversed(_COSTS):
        facts = results.of(system, benchmark, stage)
        machine = facts.get("hardware", facts)
        if "processor" in machine:
            memory = machine.get("memory_bytes")
            words = [machine["processor"], f"{machine['cores']} cores" if "cores" in machine else ""]
            words += [f"{memory / 2**30:.0f} GiB" if memory else "", machine.get("accelerator") or "no accelerator"]
            return ", ".join(word for word in words if word)
    return ""
