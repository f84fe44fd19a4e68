"""Means over groups: kinds weigh alike, and what is missing is named."""

import pytest

from coderet import reports
from coderet.reports import groups
from coderet.reports.results import Results


def results_of(values):
    """values[system][benchmark]: the headline of each."""
    stages = {
        system: {
            benchmark: {"score": {"headline": "ndcg@10", "all": {"ndcg@10": {"value": value}}}}
            for benchmark, value in of_system.items()
        }
        for system, of_system in values.items()
    }
    benchmarks = list(dict.fromkeys(name for of_system in values.values() for name in of_system))
    return Results(benchmarks, list(values), stages=stages)


GROUPS = {"pairs-go": "pairs", "pairs-java": "pairs", "questions": "questions", "own": ""}


def test_a_group_of_two_weighs_as_much_as_a_group_of_one():
    found = reports.group_means(
        results_of({"s": {"pairs-go": 0.2, "pairs-java": 0.4, "questions": 0.9, "own": 0.0}}), GROUPS
    )["s"]
    assert found.by_group == pytest.approx({"pairs": 0.3, "questions": 0.9})
    assert found.mean == pytest.approx(0.6)


def test_a_system_that_lacks_a_benchmark_has_no_mean_and_says_which():
    values = {"whole": {"pairs-go": 0.2, "pairs-java": 0.4, "questions": 0.9}, "part": {"pairs-go": 1, "questions": 1}}
    found = reports.group_means(results_of(values), GROUPS)["part"]
    assert found.mean is None and found.by_group == {"questions": 1.0} and found.missing == ["pairs-java"]
    section = groups.section(results_of(values), GROUPS)
    assert "part has no mean: it lacks pairs-java." in section.points


def test_where_no_benchmark_is_in_a_group_nothing_is_said():
    assert groups.section(results_of({"s": {"own": 0.5}}), GROUPS) is None
