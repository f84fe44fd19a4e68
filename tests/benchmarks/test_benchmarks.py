"""What holds for the record of every benchmark."""

import pytest

from coderet import benchmarks, registry
from coderet.benchmarks import BENCHMARKS, benchmark, choices
from coderet.metrics import ranking, reach
from coderet.metrics.scorecards import BLOCK_METRICS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_its_settings_can_be_read_and_its_metrics_are_known(name):
    record = benchmark(name)
    registry.check_types(record.collect, {}, name)
    for metric in set(record.metrics) - set(BLOCK_METRICS):
        assert reach.is_reach(metric) or ranking.parse(metric)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_no_two_of_its_files_share_a_place(name):
    names = [each.name for each in benchmark(name).files]
    assert len(set(names)) == len(names)


def test_what_params_set_is_a_choice_of_the_result_and_so_is_what_they_leave_out():
    pool = benchmark("csn-judged-java")
    told = choices(pool, {})
    assert told == {**pool.choices, "setting distractors": "False"} == choices(pool, {"distractors": False})
    assert choices(pool, {"distractors": True}) == {**told, "setting distractors": "True"}
    windows = choices(benchmark("repoeval-5"), {"window": 20})
    assert (windows["setting window"], windows["setting step"]) == ("20", "10")


def test_a_setting_that_is_empty_is_no_choice():
    cosqa = benchmark("coir-cosqa")
    assert choices(cosqa, {}) == dict(cosqa.choices)
    assert choices(cosqa, {"cutoffs": [1, 10]})["setting cutoffs"] == "1, 10"


def test_what_a_benchmark_is_made_of_is_named_by_its_pins_or_by_its_record():
    swebench = benchmarks.benchmark("swebench-lite-51")
    assert {"flask", "requests", "pytest"} < set(benchmarks.packages(swebench, ["official"]))
    pinned = ["wheel:dulwich==1.2.21#sha256=" + "0" * 64, "file:/data/mine"]
    assert benchmarks.packages(benchmarks.benchmark("pypi"), pinned) == ["dulwich", "mine"]
    assert benchmarks.packages(benchmarks.benchmark("mbpp"), ["official"]) == []
