import numpy as np
import pytest

from coderet.metrics import grouping, scorecards
from coderet.records import DataError


def card(*values: float) -> scorecards.Scorecard:
    return scorecards.of_problems([f"p{n}" for n in range(len(values))], {"match@0.8": np.array(values)}, {})


def grouped(cards, facts):
    return grouping.groups(cards, facts, "datasets", 50, 0.95, 0, "datasets")


def test_a_text_parts_the_problems_and_a_number_is_averaged_in_each_part():
    facts = {"a": [{"depth": "0.1", "candidates": 4.0}, {"depth": "0.5", "candidates": 8.0}, {"candidates": 9.0}]}
    found = grouped({"a": card(1, 0, 1)}, facts)
    assert list(found) == ["depth"] and list(found["depth"]) == ["0.1", "0.5"]
    assert found["depth"]["0.1"] == {
        "queries": 1,
        "metrics": {"match@0.8": {"value": 1.0, "low": 1.0, "high": 1.0}},
        "candidates": 4.0,
    }


def test_datasets_weigh_alike_in_a_group_that_has_them_whole_and_problems_in_one_that_cuts_them():
    cards = {"a": card(1, 1, 1), "b": card(0)}
    facts = {
        "a": [{"language": "go", "shown": "yes"}, {"language": "go", "shown": "yes"}, {"language": "go"}],
        "b": [{"language": "go", "shown": "yes"}],
    }
    found = grouped(cards, facts)
    assert found["language"]["go"]["metrics"]["match@0.8"] == {"value": 0.5, "low": 0.0, "high": 1.0}
    assert found["shown"]["yes"]["metrics"]["match@0.8"]["value"] == pytest.approx(2 / 3)


def test_without_facts_there_are_no_groups_and_facts_of_other_problems_are_refused():
    assert grouped({"a": card(1)}, {"a": [{}]}) == {}
    with pytest.raises(DataError, match="a has 1 scores and facts of 2; judge again"):
        grouped({"a": card(1)}, {"a": [{}, {}]})
