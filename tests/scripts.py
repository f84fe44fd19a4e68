"""The scripts of train/ and eval/ as functions."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main_of(script: str) -> Callable[..., None]:
    """The main of a script that is named without its ending, as in `eval/fuse`."""
    spec = importlib.util.spec_from_file_location("script", ROOT / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main
