"""docs/encoders.md names every setting of every architecture that is trained here, with its default."""

import inspect
import re
from pathlib import Path

import pytest

from coderet import registry
from coderet.encoders import TOWERS
from coderet.encoders.base import DualEncoder

PAGE = (Path(__file__).parents[2] / "docs" / "encoders.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \|([^|]*)\|[^|]+\|$", PAGE, re.MULTILINE)


def told(default: object) -> str:
    """A default as YAML has it."""
    return str(default).lower() if isinstance(default, bool) else str(default)


def documented(kind: str) -> dict[str, str]:
    (cell,) = [cell for name, cell in ROWS if name == kind]
    return dict(re.findall(r"`(\w+)` ([\w.]+)", cell))


@pytest.mark.parametrize("kind", TOWERS)
def test_an_architectures_settings_and_their_defaults_are_told(kind: str):
    named = registry.named_arguments(registry.load(TOWERS, kind, "encoders"))
    assert documented(kind) == {name: told(each.default) for name, each in named.items()}


def test_the_settings_of_all_and_their_defaults_are_told():
    named = registry.named_arguments(DualEncoder)
    own = {name: told(each.default) for name, each in named.items() if each.default is not inspect.Parameter.empty}
    assert {name: cell.strip() for name, cell in ROWS if name not in {*TOWERS, "kind", "setting"}} == own
