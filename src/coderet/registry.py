"""Names to things: a table maps a name to "module:attribute", which is imported on first use.

A family's table is a plain dict of strings, so reading it imports nothing. A component's params are its constructor's
named, typed, defaulted arguments; `fit_arguments` holds what params.yaml gives against them.
"""

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any


class UnknownName(ValueError):
    """A name that is in no table, with the known ones and the nearest."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A question that offers the known name nearest to name, or the empty string if none is near."""
    near = difflib.get_close_matches(str(name), [str(one) for one in known], n=1, cutoff=0.5)
    return f" Did you mean {near[0]}?" if near else ""


def load(table: Mapping[str, str], name: str, family: str, where: str = "") -> Any:
    """The attribute that table names; UnknownName says where the name stood and which ones there are."""
    if name not in table:
        place = f"{where} is {name!r}" if where else f"no {family} is called {name!r}"
        raise UnknownName(f"{place}; known {family}: {', '.join(sorted(table))}.{nearest(name, table)}")
    module, _, attribute = table[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def fit_arguments(function: Callable[..., Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """given, once its keys are found to be named arguments of function; UnknownName for a key that is not, or a lack.

    where is the place in params.yaml that given comes from. Arguments that function takes by position are not params.
    """
    parameters = inspect.signature(function).parameters.values()
    named = {each.name: each for each in parameters if each.kind is each.KEYWORD_ONLY}
    for key in given:
        if key not in named:
            known = ", ".join(sorted(named)) or "none"
            raise UnknownName(f"{where}.{key} is not a setting; known settings: {known}.{nearest(key, named)}")
    missing = [name for name, each in named.items() if each.default is each.empty and name not in given]
    if missing:
        raise UnknownName(f"{where} lacks {', '.join(missing)}")
    return dict(given)
