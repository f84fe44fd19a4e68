"""Which pairs make a batch: the order of an epoch, a function of (seed, epoch) alone.

By NumPy's PCG64 it is the same on every machine and under any PYTHONHASHSEED. Batches are always full; their number is
the same in every epoch.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from coderet import registry
from coderet.records import DataError


class RandomBatches:
    """Every pair at most once an epoch, in full batches; the n % batch pairs left over are others every epoch."""

    def __init__(self, pairs: int, batch: int, seed: int) -> None:
        if pairs < batch:
            raise DataError(f"a batch of {batch} wants at least as many pairs, found {pairs}; lower batches.size")
        self.pairs, self.batch, self.seed = pairs, batch, seed

    def __len__(self) -> int:
        return self.pairs // self.batch

    @property
    def left_over(self) -> int:
        """Pairs that an epoch does not use."""
        return self.pairs - len(self) * self.batch

    def plan(self, epoch: int) -> np.ndarray:
        """(len, batch) rows of pairs."""
        order = random_of(self.seed, epoch).permutation(self.pairs)
        return order[: len(self) * self.batch].reshape(len(self), self.batch)


class DistinctBatches:
    """Full batches in which no two pairs share a text, and as many of them as there can be.

    groups: (N,) labels; pairs of one group share a text. A group of n pairs fills at most one place a batch, so with m
    batches min(n, m) of its pairs are used; m is the largest for which these sum to m * batch. In every epoch other
    pairs of a large group are used, and the rest counts as left over.
    """

    def __init__(self, groups: np.ndarray, batch: int, seed: int) -> None:
        self.groups = np.unique(groups, return_inverse=True)[1]
        self.batch, self.seed = batch, seed
        sizes = np.bincount(self.groups)
        low, high = 0, len(groups) // batch
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if np.minimum(sizes, middle).sum() >= middle * batch else (low, middle - 1)
        self._batches = low
        if not low:
            raise DataError(
                f"a batch of {batch} pairs without a common text cannot be made of {len(sizes)} different ones; "
                "lower batches.size"
            )

    def __len__(self) -> int:
        return self._batches

    @property
    def left_over(self) -> int:
        """Pairs that an epoch does not use."""
        return len(self.groups) - len(self) * self.batch

    def plan(self, epoch: int) -> np.ndarray:
        """(len, batch) rows of pairs."""
        random = random_of(self.seed, epoch)
        rows = random.permutation(len(self.groups))
        turn_of_group = random.permutation(int(self.groups.max()) + 1)
        rows = rows[np.argsort(turn_of_group[self.groups[rows]], kind="stable")]  # groups together, inside by chance
        turns = turn_of_group[self.groups[rows]]
        starts = np.flatnonzero(np.diff(turns, prepend=-1))
        place = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
        rows = rows[place < len(self)]
        # Dealt out like cards: a group's pairs, of which there are no more than batches, go to different batches.
        hands = [random.permutation(rows[first :: len(self)])[: self.batch] for first in range(len(self))]
        return np.stack([hands[number] for number in random.permutation(len(self))])


def batches_of(
    keys: Mapping[Any, np.ndarray], seed: int, *, kind: Literal["random", "distinct"] = "random", size: int = 2048
) -> RandomBatches | DistinctBatches:
    """The batches of pairs with these keys (N,) of their texts, a side each: size pairs in each batch.

    kind: random, where pairs that share a text may meet in a batch, or distinct, where they may not.
    """
    registry.check_range("fit.batches.size", size, 2)  # of one pair there are no negatives
    if kind == "distinct":
        return DistinctBatches(sharing(*keys.values()), size, seed)
    return RandomBatches(len(next(iter(keys.values()))), size, seed)


def sharing(query_keys: np.ndarray, document_keys: np.ndarray) -> np.ndarray:
    """(N,) labels, equal for pairs that share a query or a document by their keys (N,), also by way of other pairs."""
    count = len(query_keys)
    queries = np.unique(query_keys, return_inverse=True)[1]
    documents = np.unique(document_keys, return_inverse=True)[1] + count
    links = coo_matrix((np.ones(count, dtype=bool), (queries, documents)), shape=(2 * count, 2 * count))
    return np.asarray(connected_components(links, directed=False)[1][queries])


def random_of(seed: int, epoch: int) -> np.random.Generator:
    """The random numbers of an epoch, the same on every machine."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
