"""Names to things: a table maps a name to "module:attribute", which is imported on first use.

A family's table is a plain dict of strings, so reading it imports nothing.
"""

import difflib
import importlib
from collections.abc import Iterable, Mapping
from typing import Any


class UnknownName(ValueError):
    """A name that is in no table, with the known ones and the nearest."""


def nearest(name: str, known: Iterable[str]) -> str:
    """\" Did you mean x?" for the known name nearest to name, or the empty string."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]}?" if near else ""


def load(table: Mapping[str, str], name: str, family: str, where: str = "") -> Any:
    """The attribute that table names; UnknownName says where the name stood and which ones there are."""
    if name not in table:
        place = f"{where} is {name!r}" if where else f"no {family} is called {name!r}"
        raise UnknownName(f"{place}; known {family}: {', '.join(sorted(table))}.{nearest(str(name), table)}")
    module, _, attribute = table[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
