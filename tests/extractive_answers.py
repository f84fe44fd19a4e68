"""The stages of answering, run by the generator without a model."""

from pathlib import Path
from typing import Any

import yaml
from scripts import ROOT, main_of

from coderet import generators, paths

NAME = "extractive"


def stage(script: str, *arguments: str) -> None:
    main_of(script)(*arguments)


def project(root: Path, raw: dict[str, Any]) -> None:
    """A folder with these params, few resamples, and the generator, which is prepared there."""
    raw["code"] = str(ROOT)
    raw["grid"]["generators"] = [NAME]
    raw["scoring"]["resamples"] = 100
    (root / "params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    folder = root / paths.generator(NAME)
    folder.mkdir(parents=True)
    generators.prepare(NAME, {}, root / "work", folder)


def answer(benchmark: str, contexts: list[str]) -> None:
    """From the files of a benchmark in the working folder to its judged answers."""
    stage("eval/collect", benchmark)
    stage("eval/refer", benchmark)
    for context in contexts:
        stage("eval/generate", benchmark, context, NAME)
        stage("eval/judge", benchmark, context, NAME)
