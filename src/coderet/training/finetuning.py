"""A training of a user's own: their pairs and a base model to a folder in which the stages of the pipeline can work.

The folder is like a preset's: its params.yaml says all that is done in it, and can be turned and used again. Its
systems are the base model as it is, the tuned one, and BM25; its benchmark is the pairs that neither taught nor chose.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import yaml

from coderet import paths, registry
from coderet.corpora import exchange, pins, store, supplied
from coderet.corpora.sources import SourceError
from coderet.encoders import TRAINED
from coderet.params import Params, is_name, of
from coderet.records import DataError

BENCHMARK, BASE, BASELINE = "held-out", "base", "bm25-code"
SETTINGS = Path("train/finetune.yaml")
STEPS_AN_EPOCH, SMALLEST_BATCH = 10, 16  # few pairs make smaller batches, for an epoch of one step learns nothing
_COMMIT = re.compile(r"[0-9a-f]{40}")


class StepFailed(RuntimeError):
    """A stage of the run ended badly; it has said why."""


@dataclass(frozen=True)
class Run:
    """name: of the tuned system. systems: all that are scored. steps: scripts and their arguments, in order."""

    name: str
    folder: Path
    systems: Sequence[str]
    steps: Sequence[tuple[str, ...]]


def base_encoder(base: str, params: Params) -> dict[str, Any]:
    """`fit.encoder` of a base: the name of a retriever in params.yaml, a model folder, or `<owner>/<id>[@revision]`.

    A branch or a tag of the hub is looked up and pinned to today's commit. DataError for what is none of these.
    """
    if base in params.retrievers:
        encoder = params.retrievers[base].fit.get("encoder")
        if not isinstance(encoder, Mapping) or encoder.get("kind") not in {"pretrained", *TRAINED}:
            raise DataError(f"retrievers.{base} has no encoder to train; wanted a model folder or a hub's id")
        return dict(encoder)
    path = Path(base).expanduser()
    if path.exists():
        if not (path / "config.json").is_file() and not (path / "modules.json").is_file():
            inside = " Did you mean its folder model?" if (path / "model").is_dir() else ""
            raise DataError(f"{base} has no config.json and no modules.json; wanted a model folder.{inside}")
        return _pretrained(f"file:{path.resolve()}#sha256={pins.digest(path)}")
    if base.count("/") == 1:
        return _pretrained(f"hub:{_pinned(base)}")
    near = registry.nearest(base, params.retrievers)
    raise DataError(
        f"{base!r} is no model folder, no <owner>/<id>[@revision] of a hub and no retriever of params.yaml.{near}"
    )


def write_run(params_file: Path, encoder: Mapping[str, Any], pairs: Path, name: str, seed: int) -> Run:
    """Write the folder of the run called name: its pairs, its benchmark and its params.

    params_file: the project's, from which all that is not about this run is taken; SETTINGS beside it says how is
    trained. encoder: as `base_encoder` gives it. DataError for pairs that cannot be used,
    BadValue for a name that cannot be.
    """
    if not is_name(name) or name in (BASE, BASELINE):
        raise registry.BadValue(
            f"NAME is {name!r}; wanted letters, digits, '.', '_' and '-', the first a letter or digit, and neither "
            f"{BASE} nor {BASELINE}, which stand beside it"
        )
    folder, code = paths.run(name), params_file.parent
    settings = yaml.safe_load((code / SETTINGS).read_text(encoding="utf-8"))
    table, counts = supplied.read(pairs)
    sides = supplied.divide(table, settings["held_out"], seed)
    folder.mkdir(parents=True, exist_ok=True)
    with store.new_folder(folder / paths.PAIRS) as new:
        for side in ("train", "valid"):
            store.write_pairs(new / f"{side}.parquet", [getattr(sides, side)])
    with store.new_folder(folder / BENCHMARK) as new:
        exchange.write_beir(supplied.benchmark(sides.test), new)
    facts: dict[str, Any] = {"supplied": counts, "pairs": {side: len(getattr(sides, side)) for side in supplied.SIDES}}
    facts |= {"leaks_left_out": sides.leaked, "held_out_by": "group" if sides.grouped else "pair"}
    store.write_json(folder / paths.MINING_REPORT, facts)
    distinct = min(len(pc.unique(sides.train[side])) for side in ("query", "code"))
    raw = yaml.safe_load(params_file.read_text(encoding="utf-8"))
    raw |= _params(raw, encoder, settings, name, distinct) | {"code": os.path.relpath(code, folder)}
    raw["benchmarks"][BENCHMARK]["source"] = [f"file:{BENCHMARK}#sha256={pins.digest(folder / BENCHMARK)}"]
    of(raw, f"{folder}/params.yaml")
    with store.new_file(folder / "params.yaml") as draft:
        draft.write_text(yaml.safe_dump(raw, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
    return Run(name, folder, raw["grid"]["runs"], _steps(raw))


def carry_out(run: Run, code: Path, store_uri: str) -> None:
    """Run the steps, each a process of its own, in the run's folder; StepFailed at the first that ends badly.

    What a step has finished is kept: the same call again goes on with a training that was cut off. store_uri: MLflow's,
    unless the environment names one.
    """
    environment = {"MLFLOW_TRACKING_URI": store_uri} | os.environ
    for script, *arguments in run.steps:
        command = [sys.executable, str(code.resolve() / script), *arguments]
        ended = subprocess.run(command, cwd=run.folder, env=environment, check=False).returncode
        if ended:
            what = " ".join([script, *arguments])
            raise StepFailed(
                f"{what} ended with {ended}; what was done is kept in {run.folder}: mend it and run it again"
            )


def _params(
    raw: Mapping[str, Any], encoder: Mapping[str, Any], settings: Mapping[str, Any], name: str, distinct: int
) -> dict[str, Any]:
    """What of the project's params a run has otherwise."""
    untrained = {BASELINE: raw["retrievers"][BASELINE]}
    if encoder["kind"] not in TRAINED:  # what starts from nothing has no base to be compared with
        untrained[BASE] = {"kind": "dense", "fit": {"encoder": dict(encoder)}, **settings["search"]}
    kind = "own" if encoder["kind"] in TRAINED else "pretrained"
    fit = {"encoder": dict(encoder), **settings["fit"][kind]}
    few = min(distinct, max(SMALLEST_BATCH, distinct // STEPS_AN_EPOCH))
    fit["batches"] = fit["batches"] | {"size": min(fit["batches"]["size"], few)}
    systems = [*untrained, name]
    return {
        "sources": {},
        "benchmarks": {BENCHMARK: {"kind": "beir", "depth": settings["depth"]}},
        "retrievers": {**untrained, name: {"kind": "dense", "fit": fit, **settings["search"]}},
        "fusions": {},
        "rerankers": {},
        "compare": raw["compare"] | {"baseline": BASELINE},
        "grid": {
            "sources": [],
            "benchmarks": [BENCHMARK],
            "trained": [name],
            "untrained": list(untrained),
            "retrievers": systems,
            "fusions": [],
            "reranked": [],
            "rerankers": [],
            "runs": systems,
        },
    }


def _steps(raw: Mapping[str, Any]) -> list[tuple[str, ...]]:
    grid = raw["grid"]
    (name,) = grid["trained"]
    own = raw["retrievers"][name]["fit"]["encoder"]["kind"] in TRAINED
    steps: list[tuple[str, ...]] = [("train/vocabulary.py",)] if own else []
    steps.append(("train/fit.py", name))
    steps += [("train/prepare.py", each) for each in grid["untrained"]]
    steps += [("eval/gather.py", BENCHMARK), ("eval/collect.py", BENCHMARK)]
    for each in grid["retrievers"]:
        steps += [(f"eval/{stage}.py", BENCHMARK, each) for stage in ("index", "search", "score")]
    return [*steps, ("eval/compare.py",), ("eval/card.py", name), ("eval/log.py",)]


def _pretrained(source: str) -> dict[str, Any]:
    return {"kind": "pretrained", "source": source}


def _pinned(base: str) -> str:
    """owner/id@commit of what a hub has today."""
    repository, _, revision = base.partition("@")
    if _COMMIT.fullmatch(revision):
        return base
    from huggingface_hub import HfApi, constants

    try:
        commit = HfApi(endpoint=constants.ENDPOINT).model_info(repository, revision=revision or None).sha
    except Exception as error:  # the client raises those of its http library too
        raise SourceError(
            f"{base} could not be asked for at {constants.ENDPOINT} ({type(error).__name__}); wanted a model of the "
            "hub, or the folder of one on this machine"
        ) from None
    return f"{repository}@{commit}"
