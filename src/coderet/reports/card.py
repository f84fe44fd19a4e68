"""The card of a trained encoder: what it is, what it learned from, how well it does, how it is loaded, whose it is.

The fit stage writes into the encoder's folder what it knows. What a stage has written is not changed after it: with the
scores of the grid the card is a file of its own, which goes along to MLflow and to a hub. Nothing in the first kind
depends on a clock, so that a training repeated gives the same bytes.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from coderet import paths
from coderet.corpora import licences, pins, store
from coderet.params import Params
from coderet.records import DataError
from coderet.registry import nearest
from coderet.reports import figures
from coderet.reports.results import Results, read

FILE = licences.CARD
SHOWN = 20  # repositories and licences that are listed one by one
_CURVE = ("pairs", "validation_pairs", "epochs", "steps", "best_epoch", "best_validation_mrr", "parameters")
_COST = ("seconds", "pairs_per_second", "peak_memory_bytes")
_OWN_CODE = "sentence_module.py"


@dataclass(frozen=True)
class Learned:
    """A file of pairs: how many, its SHA-256, and how many pairs of each repository and of each language."""

    pairs: int
    sha256: str
    repositories: Mapping[str, int]
    languages: Mapping[str, int]


def learned(path: Path) -> Learned:
    """What is to be said of a file of pairs."""
    table = store.read_pairs(path, ["repository", "language"])
    counts = {name: Counter(table[name].to_pylist()) for name in ("repository", "language")}
    return Learned(len(table), pins.digest(path), counts["repository"], counts["language"])


def card(
    name: str,
    params: Params,
    folder: Path,
    training: Mapping[str, Any],
    *,
    results: Results | None = None,
    repository: str | None = None,
) -> str:
    """The card, in Markdown with the header that hubs read, of the encoder in folder, which is retriever `name`'s.

    training: the facts of its fit. results: those of the grid, for the card with scores. repository: of a hub, that it
    is loaded from; None for the folder where `fit` writes it.
    """
    settings = _json(folder / "encoder.json")
    sides = {side: learned(paths.PAIRS / f"{side}.parquet") for side in ("train", "valid")}
    of_teacher = name in params.grid.distilled  # what it knows it has from there
    base_licence = _licence(paths.retriever(params.grid.teacher) / "encoder" if of_teacher else folder)
    parts = [
        _header(name, params, settings, base_licence, results),
        _what_it_is(name, settings, folder),
        _data(sides),
        _training(params.retrievers[name].fit, training, with_costs=results is not None),
        *([_scores(name, params, results)] if results is not None else []),
        _loading(name, repository, (folder / _OWN_CODE).exists()),
        _licences(params, base_licence, sides["train"] if results is not None else None),
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def scored_card(params: Params, name: str, *, repository: str | None = None) -> str:
    """The card of a trained retriever of the grid with its scores, as far as they are there.

    DataError if it is not one that learns, or is not fitted.
    """
    grid = params.grid
    if name not in grid.learned:
        near = nearest(name, grid.learned)
        known = ", ".join(grid.learned) or "none"
        raise DataError(f"{name!r} is not trained here; wanted one of grid.trained or grid.distilled: {known}.{near}")
    results = read(grid.benchmarks, grid.retrievers, grid.fusions, grid.learned, rerankings=grid.rerankings)
    training = store.read_json(paths.training_result(name))
    return card(name, params, paths.retriever(name) / "encoder", training, results=results, repository=repository)


def _header(
    name: str, params: Params, settings: Mapping[str, Any], licence: str | None, results: Results | None
) -> Iterator[str]:
    fit = params.retrievers[name].fit.get("encoder", {})
    source = str(fit.get("source", ""))
    about: dict[str, Any] = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "feature-extraction", "code-retrieval", "coderet", str(settings["kind"])],
    }
    if licence:
        about["license"] = licence
    if source.startswith("hub:"):
        about["base_model"] = pins.parse(source).place.partition("@")[0]
    measured = [_result(benchmark, results, name) for benchmark in results.benchmarks] if results else []
    if any(measured):
        about["model-index"] = [{"name": name, "results": [each for each in measured if each]}]
    yield "---"
    yield yaml.safe_dump(about, sort_keys=False, allow_unicode=True).rstrip()
    yield "---"


def _result(benchmark: str, results: Results, name: str) -> dict[str, Any] | None:
    """A benchmark's headline in the form of a hub's model index."""
    metric = results.of(name, benchmark, "score").get("headline", "")
    found = results.mean(name, benchmark, metric)
    if not found:
        return None
    return {
        "task": {"type": "information-retrieval", "name": "Information Retrieval"},
        "dataset": {"type": benchmark, "name": benchmark},
        "metrics": [{"type": metric.replace("@", "_at_"), "name": metric, "value": found["value"]}],
    }


def _what_it_is(name: str, settings: Mapping[str, Any], folder: Path) -> Iterator[str]:
    yield from (f"# {name}", "")
    yield "An encoder for code retrieval: questions and code to vectors, whose cosine says how well they go together."
    yield from ("", "| setting | value |", "|---|---|")
    for key, value in settings.items():
        if key != "format":
            yield f"| {key} | {_cell(value)} |"
    size = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    yield f"| weights | {figures.size(size)} |"


def _data(sides: Mapping[str, Learned]) -> Iterator[str]:
    yield from ("## What it learned from", "")
    yield from ("| file | pairs | repositories | languages | SHA-256 |", "|---|---:|---:|---|---|")
    for side, each in sides.items():
        languages = ", ".join(f"{language or 'not said'} {n:,}" for language, n in _ranked(each.languages))
        yield f"| {side}.parquet | {each.pairs:,} | {len(each.repositories):,} | {languages} | `{each.sha256}` |"
    yield ""
    ranked = [(name or "not said", n) for name, n in _ranked(sides["train"].repositories)]
    rest = f", and {len(ranked) - SHOWN} more" if len(ranked) > SHOWN else ""
    yield "Pairs by repository: " + ", ".join(f"{name} {n:,}" for name, n in ranked[:SHOWN]) + rest + "."


def _training(fit: Mapping[str, Any], training: Mapping[str, Any], with_costs: bool) -> Iterator[str]:
    yield from ("## How it was trained", "", "```yaml")
    yield yaml.safe_dump(_plain(fit), sort_keys=False, allow_unicode=True).rstrip()
    yield from ("```", "", "| fact | value |", "|---|---:|")
    for name in (*_CURVE, *(_COST if with_costs else ())):
        if isinstance(training.get(name), int | float):
            told = f"{training[name]:.4f}" if name.endswith("mrr") else figures.number(training[name])
            yield f"| {name.replace('_', ' ')} | {told} |"
    yield ""
    yield "The validation MRR is that of the best epoch, whose weights these are, on pairs that were not trained on."


def _scores(name: str, params: Params, results: Results) -> Iterator[str]:
    """The headline of every benchmark of the grid, beside those of all other systems."""
    others = [each for each in results.systems if each != name]
    yield from ("## How well it does", "")
    share = f"{100 * params.scoring.confidence:g} %"
    yield f"In hundredths, with the {share} interval over queries; other systems stand beside it."
    yield ""
    yield "| benchmark | metric | queries | " + " | ".join([f"**{name}**", "interval", *others]) + " |"
    yield "|---|---|---:|" + "---:|" * (2 + len(others))
    for benchmark in results.benchmarks:
        metric = results.of(name, benchmark, "score").get("headline", "")
        found = results.mean(name, benchmark, metric)
        if found:
            beside = [results.mean(other, benchmark, metric).get("value") for other in others]
            cells = [figures.quality(found["value"]), figures.interval(found.get("low"), found.get("high"))]
            cells += ["–" if value is None else figures.quality(value) for value in beside]
            yield f"| {benchmark} | {metric} | {found['queries']:,} | " + " | ".join(cells) + " |"


def _loading(name: str, repository: str | None, own_code: bool) -> Iterator[str]:
    place = repository or (paths.retriever(name) / "encoder").as_posix()
    yield from ("## How to load it", "", "With sentence-transformers:", "", "```python")
    yield "from sentence_transformers import SentenceTransformer"
    yield ""
    trust = ", trust_remote_code=True" if own_code else ""
    yield f'model = SentenceTransformer("{place}"{trust})'
    yield 'queries = model.encode_query(["sort a list in place"])'
    yield 'documents = model.encode_document(["def sort(values): ..."])'
    yield "```"
    if own_code:
        yield from ("", f"`trust_remote_code` runs `{_OWN_CODE}`, which lies here with the modules that it takes.")
        yield "It needs pyarrow and safetensors, and no installed coderet."
    yield from ("", "With coderet:", "", "```python", "from pathlib import Path", "")
    yield from ("import pyarrow as pa", "from coderet import encoders")
    if repository:
        yield "from huggingface_hub import snapshot_download"
    folder = f'snapshot_download("{repository}")' if repository else f'"{place}"'
    yield ""
    yield f"encoder = encoders.load(Path({folder}))"
    yield 'vectors = encoder.encode_queries(pa.array(["sort a list in place"], pa.large_string()))'
    yield from ("```", "", "From MLflow's registry, where coderet is installed:", "", "```python", "import mlflow", "")
    yield f'model = mlflow.pyfunc.load_model("models:/coderet-{name}@champion")'
    yield 'vectors = model.predict(["def sort(values): ..."], params={"side": "documents"})'
    yield "```"
    yield ""
    yield "All give the same vectors to 1e-5 where they compute in float32. coderet computes a transformer in bfloat16"
    yield "where the processor is fast in it, unless the encoder's `precision` is fp32."


def _licences(params: Params, base: str | None, train: Learned | None) -> Iterator[str]:
    yield from ("## Licences", "")
    yield f"Base model: {base}." if base else "Base model: none, or one whose folder states no licence."
    if train is None:
        return
    from coderet.corpora import mining  # brings grammars, which only this asks for

    stated: dict[str, list[str]] = {}
    for source in params.grid.sources:
        folder = paths.source(source)
        for repository, path in mining.repositories(folder).items() if folder.is_dir() else ():
            if repository in train.repositories:
                stated.setdefault(licences.of_package(path), []).append(repository)
    unknown = set(train.repositories) - {each for names in stated.values() for each in names}
    yield from ("", "The code that it learned from is under these licences, as its packages state them:", "")
    for licence, names in sorted(stated.items()):
        yield f"- {licence}: {', '.join(sorted(names))}"
    if unknown:
        shown = sorted(name or "pairs without a repository" for name in unknown)
        yield f"- known to whoever supplied the pairs: {', '.join(shown[:SHOWN])}" + (
            " ..." if len(shown) > SHOWN else ""
        )


def _licence(folder: Path) -> str | None:
    """Of the model that the encoder in folder is or was."""
    return licences.of_model(folder / "model")


def _ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def _cell(value: object) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`".replace("|", "\\|")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _json(path: Path) -> dict[str, Any]:
    found = store.read_json(path)
    if not isinstance(found, dict) or "kind" not in found:
        raise DataError(f"{path} says nothing of an encoder; fit or prepare it again")
    return found
