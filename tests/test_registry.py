from collections.abc import Sequence
from typing import Literal

import pytest

from coderet import registry
from coderet.registry import UnknownName, fit_arguments, load

TABLE = {"ordered": "collections:OrderedDict", "absent": "no_such_module:Nothing"}


def component(folder, *, k1: float = 1.2, name: str):
    return folder, k1, name


def test_a_name_is_imported_on_use_only():
    from collections import OrderedDict

    assert load(TABLE, "ordered", "containers") is OrderedDict


def test_an_unknown_name_is_answered_with_the_known_ones_and_the_nearest():
    with pytest.raises(
        UnknownName, match=r"here is 'orderd'; known containers: absent, ordered. Did you mean ordered\?"
    ):
        load(TABLE, "orderd", "containers", "here")


def test_settings_are_held_against_the_constructor():
    assert fit_arguments(component, {"name": "x"}, "here") == {"name": "x"}
    with pytest.raises(UnknownName, match=r"here.k is not a setting; known settings: k1, name. Did you mean k1\?"):
        fit_arguments(component, {"k": 1, "name": "x"}, "here")
    with pytest.raises(UnknownName, match="here lacks name"):
        fit_arguments(component, {}, "here")
    with pytest.raises(UnknownName, match=r"here\.folder is not a setting"):
        fit_arguments(component, {"folder": 1, "name": "x"}, "here")


def test_settings_may_be_those_of_several_functions():
    def part(place, *, depth: int = 1): ...

    assert fit_arguments(component, {"name": "x", "depth": 2}, "here", part) == {"name": "x", "depth": 2}
    assert list(registry.named_arguments(part, component))[:1] == ["depth"]
    with pytest.raises(registry.BadValue, match=r"here\.depth is 'x'; wanted a whole number"):
        fit_arguments(component, {"name": "x", "depth": "x"}, "here", part)


def searcher(*, k: int = 1, share: float = 0.5, fields: Sequence[str] = (), mode: Literal["a", "b"] | None = None):
    """What settings are held against."""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"k": "1"}, "x.k is '1'; wanted a whole number"),
        ({"k": 1.0}, "x.k is 1.0; wanted a whole number"),
        ({"k": True}, "x.k is True; wanted a whole number"),
        ({"k": None}, "x.k is None; wanted a whole number"),
        ({"share": "1e-3"}, "x.share is '1e-3'; wanted a number .in YAML 1.0e-3"),
        ({"share": float("nan")}, "x.share is nan; wanted a number"),
        ({"fields": "text"}, "x.fields is 'text'; wanted a list, each text"),
        ({"fields": ["text", 1]}, "x.fields is .*; wanted a list, each text"),
        ({"mode": "c"}, "x.mode is 'c'; wanted a, b or nothing"),
    ],
)
def test_a_setting_of_another_type_is_refused(given, said):
    with pytest.raises(registry.BadValue, match=said):
        registry.fit_arguments(searcher, given, "x")


def test_settings_of_their_types_are_taken_as_they_are():
    given = {"k": 2, "share": 1, "fields": ["text"], "mode": None}
    assert registry.fit_arguments(searcher, given, "x") == given
