"""Prompts to completions. Reading this page imports no torch: the table names classes as strings.

A generator's folder, models/generators/<name>, holds `generator.json`, which names its kind, and whatever that kind
saves. What it needs to be made is under `fit` of params.yaml, what it runs with beside it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coderet import registry
from coderet.generators.base import Generator
from coderet.records import DataError

GENERATORS = {
    "extractive": "coderet.generators.extractive:Extractive",
    "local": "coderet.generators.local:Local",
    "openai": "coderet.generators.openai:OpenAI",
    "vllm": "coderet.generators.vllm:Vllm",
}
FORMAT = 1
_FILE = "generator.json"


def prepare(
    kind: str, fit: Mapping[str, Any], work: Path, folder: Path, where: str = "params.yaml: generators"
) -> None:
    """Make a generator in folder, which is new, from `fit` of params.yaml; what it fetches goes to work.

    where is the entry's place in params.yaml. UnknownName for a kind that is not known and for settings that it does
    not have.
    """
    make = _kind(kind, where).prepare
    made = make(work, folder, **registry.fit_arguments(make, fit, f"{where}.fit"))
    facts = {"kind": kind, "format": FORMAT, "fit": made}
    (folder / _FILE).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def load(folder: Path, kind: str, settings: Mapping[str, Any], where: str | None = None) -> Generator:
    """The generator in folder with the settings of its kind; DataError if the folder holds none or one of another kind.

    where is the place that settings come from, by default the entry in params.yaml that has the folder's name.
    """
    where = where or f"params.yaml: generators.{folder.name}"
    made_by = _kind(kind, where)
    arguments = registry.fit_arguments(made_by.__init__, settings, where)
    again = f"run: dvc repro prepare-generator@{folder.name}"
    try:
        found = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        told = {name: found[name] for name in ("kind", "format")}
        fit = dict(found["fit"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder} holds no generator ({type(error).__name__}: {error}); {again}") from None
    if told != {"kind": kind, "format": FORMAT}:
        raise DataError(f"{folder} holds a generator of {told}, wanted kind {kind!r}, format {FORMAT}; {again}")
    made: Generator = made_by.load(folder, fit, **arguments)
    return made


def _kind(kind: str, where: str) -> Any:
    return registry.load(GENERATORS, kind, "generators", f"{where}.kind")
