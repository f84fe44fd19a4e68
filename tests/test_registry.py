import pytest

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
