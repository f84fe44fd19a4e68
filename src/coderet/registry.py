"""Names to things: a table maps a name to "module:attribute", which is imported on first use.

A family's table is a plain dict of strings, so reading it imports nothing. A component's params are its constructor's
named, typed, defaulted arguments; `fit_arguments` holds what params.yaml gives against them.
"""

import difflib
import importlib
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal


class UnknownName(ValueError):
    """A name that is in no table, with the known ones and the nearest."""


class BadValue(ValueError):
    """A setting of the wrong type, or a number that is none: says where, what was found and what was wanted."""


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


def named_arguments(*functions: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keyword-only arguments of functions by name: what params.yaml may give them."""
    every = (each for function in functions for each in inspect.signature(function).parameters.values())
    return {each.name: each for each in every if each.kind is each.KEYWORD_ONLY}


def fit_arguments(
    function: Callable[..., Any], given: Mapping[str, Any], where: str, *parts: Callable[..., Any]
) -> dict[str, Any]:
    """given, once its keys are found to be named arguments of function, its values of their types.

    UnknownName for a key that is not, or a lack; BadValue for a value of another type than the argument's annotation.
    where is the place in params.yaml that given comes from. Arguments that function takes by position are not params.
    parts: further functions that take some of given.
    """
    named = named_arguments(function, *parts)
    for key in given:
        if key not in named:
            known = ", ".join(sorted(named)) or "none"
            raise UnknownName(f"{where}.{key} is not a setting; known settings: {known}.{nearest(key, named)}")
    missing = [name for name, each in named.items() if each.default is each.empty and name not in given]
    if missing:
        raise UnknownName(f"{where} lacks {', '.join(missing)}")
    for each in (function, *parts):
        check_types(each, given, where)
    return dict(given)


def check_types(function: Callable[..., Any], given: Mapping[str, Any], where: str) -> None:
    """BadValue unless each value of given is of the type that function's argument of that name is annotated with.

    Numbers, texts, truth values, choices, None and sequences of these are told apart; any other type is taken as it is.
    A whole number may stand for a fraction; NaN and infinity may not.
    """
    constructor: Any = vars(function).get("__init__") if isinstance(function, type) else function
    hints = typing.get_type_hints(constructor)
    for key, value in given.items():
        if key in hints and not _fits(hints[key], value):
            raise BadValue(f"{where}.{key} is {value!r}; wanted {_in_words(hints[key])}")


def check_range(name: str, value: float, low: float, high: float = math.inf) -> None:
    """BadValue unless value lies from low to high, both allowed."""
    if not low <= value <= high:
        raise BadValue(f"{name} is {value!r}; wanted a number from {low:g} {_up_to(high)}")


def _up_to(high: float) -> str:
    return "on" if high == math.inf else f"to {high:g}"


def _fits(hint: Any, value: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(each, value) for each in arguments)
    if origin is Literal:
        return any(value == each and type(value) is type(each) for each in arguments)
    if origin in (Iterable, Sequence, tuple, list):
        return isinstance(value, list | tuple) and all(_fits(arguments[0], each) for each in value)
    if hint in (int, float):
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return number and (hint is float or isinstance(value, int))
    return isinstance(value, hint) if hint in (bool, str, types.NoneType) else True


def _in_words(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_in_words(each) for each in arguments)
    if origin is Literal:
        return ", ".join(str(each) for each in arguments)
    if origin in (Iterable, Sequence, tuple, list):
        return f"a list, each {_in_words(arguments[0])}"
    return _WORDS.get(hint, str(hint))


_WORDS = {
    int: "a whole number",
    float: "a number (in YAML 1.0e-3, not 1e-3, which is text)",
    bool: "true or false",
    str: "text",
    types.NoneType: "nothing",
}
