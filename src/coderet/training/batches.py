"""Which pairs make a batch: the order of an epoch, a function of (seed, epoch) alone.

By NumPy's PCG64 it is the same on every machine and under any PYTHONHASHSEED. Batches are always full; their number is
the same in every epoch.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from coderet import registry
from coderet.records import DataError

Plan = np.ndarray | list[np.ndarray]


class Batches(Protocol):
    """The batches of an epoch. batch: pairs in each."""

    batch: int

    def __len__(self) -> int:
        """Batches, as many in every epoch."""
        ...

    @property
    def left_over(self) -> int:
        """Pairs that an epoch does not use."""
        ...

    def plan(self, epoch: int) -> Plan:
        """The rows of the pairs of each batch: (len, batch), or a list where batches differ in size."""
        ...


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
        self._batches = _most_batches(self.groups, batch)

    def __len__(self) -> int:
        return self._batches

    @property
    def left_over(self) -> int:
        """Pairs that an epoch does not use."""
        return len(self.groups) - len(self) * self.batch

    def plan(self, epoch: int) -> np.ndarray:
        """(len, batch) rows of pairs."""
        random = random_of(self.seed, epoch)
        hands = _dealt(np.arange(len(self.groups)), self.groups, len(self), self.batch, random)
        return np.stack([hands[number] for number in random.permutation(len(self))])


class ClusteredBatches:
    """Full batches in which pairs of one cluster stand together, `together` of them: their negatives are then hard.

    A pair drawn by chance brings others of its cluster along, and so on until the batch is full; a cluster may come up
    twice. clusters: (N,) labels, those of one repository for instance. groups: (N,) labels as in `DistinctBatches`, or
    None where pairs that share a text may meet. Pairs that do share one are dealt out over the batches first, for no
    two of them may meet, and stand where they fall; so there are as many batches as `DistinctBatches` has.
    """

    def __init__(self, clusters: np.ndarray, groups: np.ndarray | None, together: int, batch: int, seed: int) -> None:
        self.clusters = np.unique(clusters, return_inverse=True)[1]
        self.groups = np.arange(len(clusters)) if groups is None else np.unique(groups, return_inverse=True)[1]
        self.together, self.batch, self.seed = together, batch, seed
        self._batches = _most_batches(self.groups, batch)

    def __len__(self) -> int:
        return self._batches

    @property
    def left_over(self) -> int:
        """Pairs that an epoch does not use."""
        return len(self.groups) - len(self) * self.batch

    def plan(self, epoch: int) -> np.ndarray:
        """(len, batch) rows of pairs."""
        random = random_of(self.seed, epoch)
        bound = np.bincount(self.groups)[self.groups] > 1
        hands = _dealt(np.flatnonzero(bound), self.groups, len(self), self.batch, random)
        free = random.permutation(np.flatnonzero(~bound))
        by_cluster = free[np.argsort(self.clusters[free], kind="stable")]
        ends = np.cumsum(np.bincount(self.clusters[free], minlength=int(self.clusters.max()) + 1))
        nexts, drawn = np.append(0, ends[:-1]).tolist(), iter(self.clusters[random.permutation(free)].tolist())
        for number, hand in enumerate(hands):
            pieces, room = [hand], self.batch - len(hand)
            while room:
                cluster = next(drawn)  # as often as it has pairs, so that one that has still some comes up in time
                first = nexts[cluster]
                taken = by_cluster[first : min(first + min(self.together, room), int(ends[cluster]))]
                nexts[cluster] += len(taken)
                room -= len(taken)
                pieces.append(taken)
            hands[number] = np.concatenate(pieces)
        return np.stack([hands[number] for number in random.permutation(len(self))])


class Traits(NamedTuple):
    """What batches go by, a row a pair. Keys are int64 and equal where texts are; labels are equal inside a cluster."""

    query_keys: np.ndarray
    document_keys: np.ndarray
    clusters: Mapping[str, np.ndarray]  # (N,) labels by what they are of: repository, file


def batches_of(
    traits: Traits,
    seed: int,
    *,
    kind: Literal["random", "distinct", "clustered"] = "random",
    size: int = 2048,
    distinct: bool = False,
    clusters: int = 16,
    cluster: Literal["repository", "file"] = "repository",
) -> Batches:
    """The batches of pairs with these traits: size pairs in each batch.

    kind: random; distinct, which is random with `distinct`; clustered, where `clusters` pairs of one `cluster` stand
    together. distinct: pairs that share a text, also by way of other pairs, never meet in a batch.
    """
    registry.check_range("fit.batches.size", size, 2)  # of one pair there are no negatives
    registry.check_range("fit.batches.clusters", clusters, 1)
    groups = sharing(traits.query_keys, traits.document_keys) if distinct or kind == "distinct" else None
    if kind == "clustered":
        return ClusteredBatches(traits.clusters[cluster], groups, clusters, size, seed)
    if groups is not None:
        return DistinctBatches(groups, size, seed)
    return RandomBatches(len(traits.query_keys), size, seed)


def sharing(query_keys: np.ndarray, document_keys: np.ndarray) -> np.ndarray:
    """(N,) labels, equal for pairs that share a query or a document by their keys (N,), also by way of other pairs."""
    count = len(query_keys)
    queries = np.unique(query_keys, return_inverse=True)[1]
    documents = np.unique(document_keys, return_inverse=True)[1] + count
    links = coo_matrix((np.ones(count, dtype=bool), (queries, documents)), shape=(2 * count, 2 * count))
    return np.asarray(connected_components(links, directed=False)[1][queries])


def _most_batches(groups: np.ndarray, batch: int) -> int:
    """The largest m with sum(min(n, m)) >= m * batch over the sizes n of groups; DataError if there is not even one."""
    sizes = np.bincount(groups)
    low, high = 0, len(groups) // batch
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(sizes, middle).sum() >= middle * batch else (low, middle - 1)
    if not low:
        raise DataError(
            f"a batch of {batch} pairs without a common text cannot be made of {len(sizes)} different ones; "
            "lower batches.size"
        )
    return low


def _dealt(
    rows: np.ndarray, groups: np.ndarray, hands: int, most: int, random: np.random.Generator
) -> list[np.ndarray]:
    """rows dealt out like cards, at most `most` a hand, so that none holds two of a group; the rest is left out."""
    rows = random.permutation(rows)
    turn_of_group = random.permutation(int(groups.max()) + 1)
    rows = rows[np.argsort(turn_of_group[groups[rows]], kind="stable")]  # groups together, inside by chance
    turns = turn_of_group[groups[rows]]
    starts = np.flatnonzero(np.diff(turns, prepend=-1))
    place = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
    rows = rows[place < hands]
    return [random.permutation(rows[first::hands])[:most] for first in range(hands)]


def random_of(seed: int, epoch: int) -> np.random.Generator:
    """The random numbers of an epoch, the same on every machine."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
