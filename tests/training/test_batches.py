"""Case D11: orders, and batches without a text twice."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coderet.records import DataError
from coderet.registry import BadValue
from coderet.training.batches import (
    BudgetBatches,
    ClusteredBatches,
    DistinctBatches,
    Mixture,
    RandomBatches,
    Traits,
    batches_of,
    places_of,
    sharing,
)

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


def lengths_of(draw: int, count: int = 200) -> np.ndarray:
    random = np.random.default_rng(draw)
    return np.stack([random.integers(1, 30, count), random.integers(1, 200, count)], axis=1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 5), st.integers(460, 5000), st.integers(1, 200), st.integers(0, 9))
def test_no_batch_is_over_its_budget_and_every_pair_comes_once(epoch, tokens, texts, draw):
    lengths, groups = lengths_of(draw), np.random.default_rng(draw + 99).integers(0, texts, 200)
    for given_groups in (None, groups):
        try:
            batches = BudgetBatches(lengths, given_groups, tokens, seed=3)
        except DataError:
            assert given_groups is not None and texts == 1
            continue
        plan = batches.plan(epoch)
        assert len(plan) == len(batches) and all(len(batch) >= 2 for batch in plan)
        assert all(len(batch) * lengths[batch].max(axis=0).sum() <= tokens for batch in plan)
        used = np.concatenate(plan)
        assert len(np.unique(used)) == len(used) == 200 - batches.left_over
        if given_groups is None:
            assert batches.left_over <= 1
        else:
            assert all(len(np.unique(groups[batch])) == len(batch) for batch in plan)


def test_a_budget_pads_little_and_its_batches_change_by_the_epoch():
    lengths = lengths_of(0, 2000)
    batches, plain = BudgetBatches(lengths, None, 4096, seed=3), RandomBatches(2000, 25, seed=3)

    def padded(plan) -> float:
        return sum(len(batch) * lengths[batch].max(axis=0).sum() for batch in plan) / lengths.sum()

    assert padded(batches.plan(0)) < 1.25 < 1.6 < padded(plain.plan(0))
    first, second = ({frozenset(batch.tolist()) for batch in batches.plan(epoch)} for epoch in (0, 1))
    assert len(first & second) <= 1  # the last ones are what was left, the same every time
    assert len({len(batch) for batch in batches.plan(0)}) > 3


def test_a_budget_that_holds_no_two_pairs_is_refused():
    with pytest.raises(DataError, match=r"budget of 400 tokens holds 1 pairs of up to 205 .*raise batches\.tokens"):
        BudgetBatches(np.array([[3, 200], [5, 30]]), None, 400, seed=0)
    with pytest.raises(DataError, match="two pairs without a common text"):
        BudgetBatches(np.array([[3, 20]]), None, 400, seed=0)


def mixture(shares: tuple[float, ...], counts: tuple[int, ...], pairs: int) -> Mixture:
    sources = np.repeat(np.arange(len(counts)), counts)
    return Mixture(tuple("abc"[: len(counts)]), sources, shares, pairs)


def traits(count: int, mixed: Mixture | None = None, keys: np.ndarray | None = None) -> Traits:
    own = np.arange(count) if keys is None else keys
    clusters = {"repository": np.arange(count) % 3, "file": np.arange(count) % 7}
    return Traits(own, np.arange(count), clusters, np.ones((count, 2), np.int64), mixed)


@pytest.mark.parametrize("kind", ["random", "distinct", "clustered"])
def test_every_batch_has_its_share_of_each_source(kind: str):
    mixed = mixture((0.5, 0.3, 0.2), (60, 90, 7), 160)
    batches = batches_of(traits(157, mixed), 4, kind=kind, size=10)
    for epoch in (0, 1, 5):
        plan = batches.plan(epoch)
        assert plan.shape == (len(batches), 10) == (16, 10)
        assert all(np.bincount(mixed.sources[batch]).tolist() == [5, 3, 2] for batch in plan)
    assert np.array_equal(batches.plan(2), batches_of(traits(157, mixed), 4, kind=kind, size=10).plan(2))


def test_a_source_is_seen_whole_before_any_of_it_comes_again():
    # 40 pairs of a in 8 batches of 5, 100 of b in 20: an epoch of 5 batches walks on where the last one stopped.
    mixed = mixture((0.5, 0.5), (40, 100), 50)
    batches = batches_of(traits(140, mixed), 4, size=10)
    walk = np.concatenate([batches.plan(epoch) for epoch in range(8)])  # 40 batches
    for source, places, whole in ((0, slice(0, 5), 8), (1, slice(5, 10), 20)):
        for start in range(0, 40, whole):
            seen = walk[start : start + whole, places].ravel()
            assert sorted(seen.tolist()) == np.flatnonzero(mixed.sources == source).tolist()
    assert batches.left_over == (40 - 25) + (100 - 25)


def test_a_text_of_two_sources_comes_from_the_first_of_them_if_batches_are_distinct():
    mixed, keys = mixture((0.5, 0.5), (20, 20), 40), np.arange(40)
    keys[20:30] = keys[:10]
    batches = batches_of(traits(40, mixed, keys), 4, kind="distinct", size=4)
    used = {row for epoch in range(10) for row in batches.plan(epoch).ravel().tolist()}
    assert used == {*range(20), *range(30, 40)}


def test_a_pair_of_no_source_is_not_used():
    mixed = Mixture(("a", "b"), np.array([0, 0, -1, 1, 1, -1]), (0.5, 0.5), 4)
    plan = batches_of(traits(6, mixed), 0, size=2).plan(0)
    assert sorted(plan.ravel().tolist()) == [0, 1, 3, 4]


@pytest.mark.parametrize(("shares", "size", "places"), [((0.5, 0.5), 5, [3, 2]), ((0.6, 0.3, 0.1), 10, [6, 3, 1])])
def test_places_are_dealt_by_largest_remainder(shares, size, places):
    assert places_of(shares, size) == places


def test_a_mixture_that_cannot_be_made_is_refused():
    with pytest.raises(DataError, match="gives b less than one of 4 places"):
        batches_of(traits(40, mixture((0.95, 0.05), (20, 20), 40)), 0, size=4)
    with pytest.raises(DataError, match=r"of b, 5 of 10 places: a batch of 5 wants at least as many pairs, found 3"):
        batches_of(traits(23, mixture((0.5, 0.5), (20, 3), 23)), 0, size=10)
    with pytest.raises(BadValue, match="has no places to mix"):
        batches_of(traits(40, mixture((0.5, 0.5), (20, 20), 40)), 0, kind="budget")
