"""Case D11: what each device takes of a batch, and where validations stand."""

import numpy as np
import pytest

from coderet.records import DataError
from coderet.registry import BadValue
from coderet.training.batches import DistinctBatches, RandomBatches
from coderet.training.laps import Laps

SHARED = np.array([0] * 12 + list(range(1, 9)))  # 20 pairs of which 12 share one positive


def rows(laps: Laps) -> list[list[int]]:
    return [batch.tolist() for lap in range(laps.laps) for batch in laps.plan(lap)]


def test_a_lap_is_an_epoch_unless_something_else_is_asked_for():
    batches = RandomBatches(20, 4, seed=1)
    laps = Laps(batches, epochs=3)
    assert (laps.laps, len(laps), laps.steps, laps.left_over) == (3, 5, 15, 0)
    assert all(np.array_equal(laps.plan(lap), batches.plan(lap)) for lap in range(3))


@pytest.mark.parametrize(
    ("asked", "laps", "length"),
    [
        ({"epochs": 3, "valid_every": 5}, 3, 5),
        ({"epochs": 3, "valid_every": 4}, 4, 3),  # 15 steps, as near to 4 as comes out even
        ({"epochs": 3, "max_steps": 7}, 1, 7),
        ({"epochs": 3, "max_steps": 12, "valid_every": 6}, 2, 6),
        ({"epochs": 1, "max_steps": 99}, 1, 5),
        ({"epochs": 3, "valid_every": 99}, 1, 15),
        ({"epochs": 2, "accumulate": 2}, 2, 4),
        ({"epochs": 3, "accumulate": 3, "valid_every": 2}, 2, 6),
    ],
)
def test_laps_are_equal_and_training_ends_with_one(asked: dict[str, int], laps: int, length: int):
    made = Laps(RandomBatches(20, 4, seed=1), **asked)
    assert (made.laps, len(made)) == (laps, length)
    assert made.steps * made.accumulate == laps * length
    assert all(len(made.plan(lap)) == length for lap in range(laps))


def test_laps_play_the_epochs_batches_one_after_the_other():
    batches = RandomBatches(20, 4, seed=1)
    laps = Laps(batches, epochs=3, valid_every=4)
    every = [batch.tolist() for epoch in range(3) for batch in batches.plan(epoch)]
    assert rows(laps) == every[:12]
    assert [laps.epoch(lap, number) for lap, number in ((0, 0), (1, 1), (1, 2), (3, 2))] == [0, 0, 1, 2]
    assert laps.whole(1, 2).tolist() == every[5]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize(
    "batches", [RandomBatches(20, 4, seed=1), DistinctBatches(SHARED, 4, seed=1)], ids=["random", "distinct"]
)
def test_devices_have_as_many_batches_each_and_together_the_whole_ones(batches: RandomBatches, ranks: int):
    whole = Laps(batches, epochs=3)
    shares = []
    for rank in range(ranks):
        own = Laps(batches, epochs=3)
        own.share(rank, ranks)
        shares.append(rows(own))
        assert len(shares[-1]) == len(own) * own.laps == len(whole) * whole.laps
    assert [[row for part in parts for row in part] for parts in zip(*shares, strict=True)] == rows(whole)
    sizes = [len(batch) for share in shares for batch in share]
    assert max(sizes) - min(sizes) <= 1


def test_a_batch_smaller_than_the_number_of_devices_is_refused():
    laps = Laps(RandomBatches(20, 4, seed=1))
    laps.share(4, 5)
    with pytest.raises(DataError, match=r"4 pairs cannot be cut among 5 devices; raise batches\.size"):
        laps.plan(0)


def test_more_batches_a_step_than_there_are_batches_are_refused():
    with pytest.raises(BadValue, match=r"fit\.training\.accumulate is 6, but the training has 5 batches"):
        Laps(RandomBatches(20, 4, seed=1), accumulate=6)
