"""What holds for the record of every benchmark."""

import pytest

from coderet import registry
from coderet.benchmarks import BENCHMARKS, benchmark
from coderet.metrics import ranking
from coderet.metrics.scorecards import BLOCK_METRICS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_its_settings_can_be_read_and_its_metrics_are_known(name):
    record = benchmark(name)
    registry.check_types(record.collect, {}, name)
    for metric in set(record.metrics) - set(BLOCK_METRICS):
        assert ranking.parse(metric)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_no_two_of_its_files_share_a_place(name):
    names = [each.name for each in benchmark(name).files]
    assert len(set(names)) == len(names)
