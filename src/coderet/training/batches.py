"""Which pairs make a batch: the order of an epoch, a function of (seed, epoch) alone.

By NumPy's PCG64 it is the same on every machine and under any PYTHONHASHSEED. The number of batches is the same in
every epoch. Batches are full, but those of a budget of tokens, which are of several sizes.

A plan is of the whole batch: devices share its pairs out among themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from coderet import registry
from coderet.records import DataError

NO_SOURCE = -1

Plan = np.ndarray | list[np.ndarray]


class Batches(Protocol):
    """The batches of an epoch."""

    @property
    def batch(self) -> int:
        """Pairs in each."""
        ...

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


class _OfGroups:
    """Full batches of pairs with labels groups (N,), as many as there can be without two of a group in one."""

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


class DistinctBatches(_OfGroups):
    """Full batches in which no two pairs share a text, and as many of them as there can be.

    groups: (N,) labels; pairs of one group share a text. A group of n pairs fills at most one place a batch, so with m
    batches min(n, m) of its pairs are used; m is the largest for which these sum to m * batch. In every epoch other
    pairs of a large group are used, and the rest counts as left over.
    """

    def plan(self, epoch: int) -> np.ndarray:
        """(len, batch) rows of pairs."""
        random = random_of(self.seed, epoch)
        hands = _dealt(np.arange(len(self.groups)), self.groups, len(self), self.batch, random)
        return np.stack([hands[number] for number in random.permutation(len(self))])


class ClusteredBatches(_OfGroups):
    """Full batches in which pairs of one cluster stand together, `together` of them: their negatives are then hard.

    A pair drawn by chance brings others of its cluster along, and so on until the batch is full; a cluster may come up
    twice. clusters: (N,) labels, those of one repository for instance. groups: (N,) labels as in `DistinctBatches`, or
    None where pairs that share a text may meet. Pairs that do share one are dealt out over the batches first, for no
    two of them may meet, and stand where they fall; so there are as many batches as `DistinctBatches` has.
    """

    def __init__(self, clusters: np.ndarray, groups: np.ndarray | None, together: int, batch: int, seed: int) -> None:
        super().__init__(np.arange(len(clusters)) if groups is None else groups, batch, seed)
        self.clusters, self.together = np.unique(clusters, return_inverse=True)[1], together

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


class BudgetBatches:
    """Batches of as many pairs as fit into a number of padded tokens; pairs of like length stand together.

    lengths: (N, 2) tokens of each pair's query and document. groups as in `ClusteredBatches`. tokens: a batch of B
    pairs whose longest query has P and whose longest document D tokens has B * (P + D) <= tokens.

    Which pairs are of like length is decided once: by document, in steps of STEP tokens; what does not fill a batch
    waits for the next longer ones, and what is left at the end makes smaller batches. Every epoch draws anew which of
    them meet. Every pair comes once, but for a last one without company and, with groups, those of a group that is
    larger than the batches of its length; these are left_over.
    """

    STEP = 16

    def __init__(self, lengths: np.ndarray, groups: np.ndarray | None, tokens: int, seed: int) -> None:
        self.groups = np.arange(len(lengths)) if groups is None else np.unique(groups, return_inverse=True)[1]
        self.seed, self._parts = seed, list[tuple[np.ndarray, int, int]]()
        lengths = np.maximum(1, lengths)  # a text without a token is padded to one
        steps = -(-lengths[:, 1] // self.STEP)
        order = random_of(seed, 0).permutation(len(lengths))
        waiting, queries, size = np.empty(0, np.int64), 0, 0
        for step in np.unique(steps).tolist():
            arrived = order[steps[order] == step]
            queries, documents = np.maximum((queries, 0), lengths[arrived].max(axis=0)).tolist()
            size = tokens // (queries + documents)
            if size < 2:
                raise DataError(
                    f"a budget of {tokens} tokens holds {size} pairs of up to {queries + documents} tokens; "
                    "wanted at least two: raise batches.tokens or lower encoder.max_document_tokens"
                )
            waiting = self._take(np.concatenate([waiting, arrived]), size)
        while (size := min(size, len(np.unique(self.groups[waiting])))) >= 2:
            waiting = self._take(waiting, size)
        self.left_over = len(waiting)
        if not self._parts:
            raise DataError(f"a batch wants two pairs without a common text, found {len(lengths)} pairs that have one")

    def _take(self, rows: np.ndarray, size: int) -> np.ndarray:
        """Make batches of size of rows, those in front first; returns the rows that are left."""
        groups = self.groups[rows]
        if len(np.unique(groups)) < size:
            return rows
        batches = _most_batches(groups, size)
        chosen = np.flatnonzero(place_in_group(groups) < batches)[: batches * size]
        self._parts.append((rows[chosen], batches, size))
        return np.delete(rows, chosen)

    def __len__(self) -> int:
        return sum(batches for _, batches, _ in self._parts)

    @property
    def batch(self) -> int:
        """Pairs in a batch, the mean of all, rounded."""
        return round(sum(len(rows) for rows, _, _ in self._parts) / len(self))

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Rows of the pairs of each batch."""
        random = random_of(self.seed, epoch)
        hands = [hand for part in self._parts for hand in _dealt(part[0], self.groups, part[1], part[2], random)]
        return [hands[number] for number in random.permutation(len(hands))]


class MixedBatches:
    """Full batches, each mixed of sources in the same proportion.

    Every source has its own batches, of its places in the common one, and walks through them at its own speed: a small
    source is seen several times an epoch, a large one is seen whole over several epochs, and no pair of a source comes
    twice before the others came once, but for what its own batches leave over. So nothing is ever copied or weighted.
    """

    def __init__(self, parts: Sequence[tuple[np.ndarray, Batches]], batches: int) -> None:
        """parts: the rows of each source and the batches of places in these rows. batches: how many an epoch has."""
        self._parts, self._batches = parts, batches
        self.batch = sum(each.batch for _, each in parts)

    def __len__(self) -> int:
        return self._batches

    @property
    def left_over(self) -> int:
        """Pairs of the sources that an epoch does not reach, at least."""
        return sum(len(rows) - min(len(self), len(each)) * each.batch for rows, each in self._parts)

    def plan(self, epoch: int) -> np.ndarray:
        """(len, batch) rows of pairs, source by source."""
        columns = []
        for rows, batches in self._parts:
            passes, places = np.divmod(np.arange(epoch * len(self), (epoch + 1) * len(self)), len(batches))
            plans = {each: batches.plan(each) for each in np.unique(passes).tolist()}
            columns.append(rows[np.stack([plans[each][at] for each, at in zip(passes.tolist(), places, strict=True)])])
        return np.concatenate(columns, axis=1)


class Mixture(NamedTuple):
    """Which source each pair is of, and what share of every batch a source has.

    sources: (N,) places in names, NO_SOURCE for a pair that is of none. shares sum to 1. pairs: of an epoch.
    """

    names: tuple[str, ...]
    sources: np.ndarray
    shares: tuple[float, ...]
    pairs: int


class Traits(NamedTuple):
    """What batches go by, a row a pair. Keys are int64 and equal where texts are; labels are equal inside a cluster.

    lengths: (N, 2) tokens of query and document at their longest.
    """

    query_keys: np.ndarray
    document_keys: np.ndarray
    clusters: Mapping[str, np.ndarray]  # (N,) labels by what they are of: repository, file
    lengths: np.ndarray
    mixture: Mixture | None = None


def batches_of(
    traits: Traits,
    seed: int,
    *,
    kind: Literal["random", "distinct", "clustered", "budget"] = "random",
    size: int = 2048,
    distinct: bool = False,
    clusters: int = 16,
    cluster: Literal["repository", "file"] = "repository",
    tokens: int = 65_536,
) -> Batches:
    """The batches of pairs with these traits: size pairs in each, or for a budget as many as tokens hold.

    kind: random; distinct, which is random with `distinct`; clustered, where `clusters` pairs of one `cluster` stand
    together; or budget. distinct: pairs that share a text, also by way of other pairs, never meet in a batch. Of
    sources that are mixed, those that share a text with a pair of an earlier source are then left out.
    """
    registry.check_range("fit.batches.size", size, 2)  # of one pair there are no negatives
    registry.check_range("fit.batches.clusters", clusters, 1)
    registry.check_range("fit.batches.tokens", tokens, 2)
    groups = sharing(traits.query_keys, traits.document_keys) if distinct or kind == "distinct" else None

    def of(rows: np.ndarray, size: int, seed: int) -> Batches:
        if kind == "clustered":
            return ClusteredBatches(
                traits.clusters[cluster][rows], None if groups is None else groups[rows], clusters, size, seed
            )
        return RandomBatches(len(rows), size, seed) if groups is None else DistinctBatches(groups[rows], size, seed)

    if traits.mixture is not None:
        if kind == "budget":
            raise registry.BadValue("fit.batches.kind is 'budget', which has no places to mix fit.pairs.mixture in")
        return _mixed(traits.mixture, groups, size, seed, of)
    if kind == "budget":
        return BudgetBatches(traits.lengths, groups, tokens, seed)
    return of(np.arange(len(traits.query_keys)), size, seed)


def _mixed(
    mixture: Mixture, groups: np.ndarray | None, size: int, seed: int, of: Callable[[np.ndarray, int, int], Batches]
) -> MixedBatches:
    sources = mixture.sources
    if groups is not None:
        used = np.where(sources == NO_SOURCE, len(mixture.names), sources)
        first = np.full(int(groups.max()) + 1, len(mixture.names))
        np.minimum.at(first, groups, used)
        sources = np.where(first[groups] == sources, sources, NO_SOURCE)
    parts = []
    for number, (name, places) in enumerate(zip(mixture.names, places_of(mixture.shares, size), strict=True)):
        rows = np.flatnonzero(sources == number)
        if not places:
            raise DataError(
                f"fit.pairs.mixture gives {name} less than one of {size} places; raise its share or batches.size"
            )
        try:
            parts.append((rows, of(rows, places, seed + number)))
        except DataError as error:
            raise DataError(f"of {name}, {places} of {size} places: {error}, or its share in fit.pairs") from None
    return MixedBatches(parts, max(1, mixture.pairs // size))


def places_of(shares: Sequence[float], size: int) -> list[int]:
    """size places by shares, which sum to 1: whole numbers, the largest remainders rounded up, the first of equals."""
    exact = np.asarray(shares) * size
    places = np.floor(exact + 1e-9).astype(np.int64)
    places[np.argsort(places - exact, kind="stable")[: size - int(places.sum())]] += 1
    return [int(each) for each in places]


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
    rows = rows[place_in_group(groups[rows]) < hands]
    return [random.permutation(rows[first::hands])[:most] for first in range(hands)]


def place_in_group(groups: np.ndarray) -> np.ndarray:
    """(N,) how many before it are of the same group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    place = np.empty(len(groups), np.int64)
    place[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))
    return place


def random_of(seed: int, epoch: int) -> np.random.Generator:
    """The random numbers of an epoch, the same on every machine."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch])))
