"""Case D11: orders, and batches without a text twice."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coderet.records import DataError
from coderet.training.batches import ClusteredBatches, DistinctBatches, RandomBatches, sharing

SHARED = np.array([0] * 12 + list(range(1, 9)))  # 20 pairs of which 12 share one positive


def test_random_batches_use_every_pair_at_most_once_and_count_what_is_left():
    batches = RandomBatches(20, 6, seed=1)
    plan = batches.plan(0)
    assert plan.shape == (len(batches), 6) == (3, 6) and batches.left_over == 2
    assert len(set(plan.ravel().tolist())) == 18


def test_orders_differ_between_epochs_and_seeds_and_are_the_same_for_the_same():
    plan = RandomBatches(20, 4, seed=1).plan(2)
    assert np.array_equal(plan, RandomBatches(20, 4, seed=1).plan(2))
    assert not np.array_equal(plan, RandomBatches(20, 4, seed=1).plan(1))
    assert not np.array_equal(plan, RandomBatches(20, 4, seed=2).plan(2))


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_no_distinct_batch_holds_a_text_twice_and_the_rest_is_left_over(epoch: int):
    batches = DistinctBatches(SHARED, 4, seed=1)
    plan = batches.plan(epoch)
    # Each batch takes one of the 12 and three of the 8: two batches, and two pairs of the 8 are not enough for a third.
    assert plan.shape == (len(batches), 4) == (2, 4) and batches.left_over == 12
    assert all(len(set(SHARED[batch].tolist())) == 4 for batch in plan)
    assert len(set(plan.ravel().tolist())) == 8


def test_distinct_batches_are_as_many_as_there_can_be():
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 3, 3])
    plan = DistinctBatches(groups, 3, seed=0).plan(0)
    assert plan.shape == (3, 3) and all(len(set(groups[batch].tolist())) == 3 for batch in plan)
    assert sorted(plan.ravel().tolist()) == list(range(9))


def test_distinct_batches_reach_every_pair_over_the_epochs():
    batches = DistinctBatches(SHARED, 4, seed=1)
    seen = {row for epoch in range(40) for row in batches.plan(epoch).ravel().tolist()}
    assert seen == set(range(20))


def test_batches_that_cannot_be_filled_are_refused():
    with pytest.raises(DataError, match=r"lower batches\.size"):
        RandomBatches(3, 4, seed=0)
    with pytest.raises(DataError, match=r"lower batches\.size"):
        DistinctBatches(np.array([0, 0, 0, 0, 1]), 3, seed=0)


def test_the_order_does_not_hang_on_the_hash_seed():
    code = (
        "from coderet.training.batches import *; import numpy as np; "
        "print(RandomBatches(20, 4, 1).plan(1).tolist(), "
        "DistinctBatches(np.array([0] * 12 + list(range(1, 9))), 4, 1).plan(1).tolist())"
    )
    orders = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1")
    }
    assert len(orders) == 1 and "[[" in orders.pop()


def test_pairs_share_by_way_of_other_pairs():
    # 0 and 1 share a query, 1 and 2 a document; the document of 3 has the key of a query, which is no shared text.
    groups = sharing(np.array([1, 1, 2, 3]), np.array([10, 20, 20, 1]))
    assert groups[0] == groups[1] == groups[2] != groups[3]


REPOSITORIES = np.repeat(np.arange(4), 25)  # 100 pairs of 4 repositories


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 5), st.integers(1, 40), st.integers(2, 40), st.integers(1, 100), st.integers(0, 9))
def test_clustered_batches_are_full_and_distinct_and_use_a_pair_once(epoch, together, size, texts, draw):
    groups = np.random.default_rng(draw).integers(0, texts, 100)
    try:
        wanted = DistinctBatches(groups, size, seed=2)
    except DataError:
        assume(False)
    batches = ClusteredBatches(REPOSITORIES, groups, together, size, seed=2)
    plan = batches.plan(epoch)
    assert plan.shape == (len(batches), size) == (len(wanted), size)
    assert len(np.unique(plan)) == plan.size == 100 - batches.left_over
    assert all(len(np.unique(groups[batch])) == size for batch in plan)
    assert np.array_equal(plan, ClusteredBatches(REPOSITORIES, groups, together, size, seed=2).plan(epoch))


def test_pairs_of_one_repository_stand_together_so_many_at_a_time():
    plan = ClusteredBatches(REPOSITORIES, None, together=5, batch=10, seed=0).plan(0)
    runs = [np.diff(np.flatnonzero(np.diff(REPOSITORIES[batch], prepend=-1, append=-1))) for batch in plan]
    assert all(length % 5 == 0 for each in runs for length in each.tolist())
    inside = np.mean([np.bincount(REPOSITORIES[batch]).max() for batch in plan])
    apart = np.mean([np.bincount(REPOSITORIES[batch]).max() for batch in RandomBatches(100, 10, seed=0).plan(0)])
    assert inside >= 5 > apart


def test_clustered_batches_differ_between_epochs_and_reach_every_pair():
    batches = ClusteredBatches(np.arange(20) % 3, SHARED, together=3, batch=4, seed=1)
    plans = [batches.plan(epoch).ravel().tolist() for epoch in range(40)]
    assert plans[0] != plans[1] and {row for plan in plans for row in plan} == set(range(20))
