"""How far a mean can be trusted: bootstrap intervals over queries, paired randomisation tests, Holm's correction.

Values come as a sequence of arrays, one a dataset, and the mean looked at is the mean of the datasets' means. A mean
over all queries of a benchmark is the case of one array. Queries are resampled within their dataset, datasets are not:
what is said holds for other queries like these, not for other datasets. Where the queries of a dataset depend on each
other, as functions of one repository do, whole datasets are resampled instead.

Sources: percentile bootstrap (Efron and Tibshirani, 1993), paired randomisation test for retrieval (Smucker, Allan and
Carterette, 2007), step-down correction (Holm, 1979). Left out: bias-corrected intervals, tests of unpaired runs.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from coderet.records import DataError

_NUMBERS_AT_ONCE = 2**22  # bounds the memory of resampling


Resampled = Literal["queries", "datasets"]


def interval(
    values: Sequence[np.ndarray],
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    resampled: Resampled = "queries",
) -> tuple[float, float]:
    """Bootstrap interval (low, high) of the mean over datasets of the means over queries.

    Each array is (S,), the values of one dataset's queries. resampled: what is drawn; of a single dataset its queries
    in any case. Raises DataError without datasets, for an empty one and for values that are not finite. The same seed
    gives the same interval.
    """
    _check(values)
    random = np.random.default_rng(seed)
    if resampled == "datasets" and len(values) > 1:
        values = [np.array([np.mean(column) for column in values])]
    means = np.mean([_resampled_means(column, resamples, random) for column in values], axis=0)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def paired_p_value(
    ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], resamples: int = 10_000, seed: int = 0
) -> float:
    """Two-sided p of the difference of two means if each query's two values were assigned to the systems by a coin.

    ours[d][i] and theirs[d][i] belong to the same query. Where all outcomes of the coins are no more than the resamples
    they are enumerated and p is exact; else p = (1 + outcomes at least as extreme) / (1 + resamples), which is never 0.
    Raises DataError for columns that do not pair up, besides what `interval` refuses.
    """
    _check(ours)
    _check(theirs)
    sizes = [len(column) for column in ours], [len(column) for column in theirs]
    if sizes[0] != sizes[1]:
        raise DataError(f"the two systems have {sizes[0]} and {sizes[1]} values; give one for each query of both")
    differences = np.concatenate([(a - b) / (len(a) * len(ours)) for a, b in zip(ours, theirs, strict=True)])
    differences = differences[differences != 0]  # a coin that changes nothing need not be thrown
    coins = len(differences)
    observed = abs(differences.sum())
    # Outcomes equal in theory differ in the last bits, for their sums were added up in another order.
    extreme = observed - 1e-12 * np.abs(differences).sum()
    if 2**coins <= resamples:
        heads = np.arange(2**coins)[:, None] >> np.arange(coins) & 1
        return float(np.mean(np.abs((2 * heads - 1) @ differences) >= extreme))
    sums = _random_signed_sums(differences, resamples, np.random.default_rng(seed))
    return float((1 + np.sum(np.abs(sums) >= extreme)) / (1 + resamples))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """p values corrected for there being several, in the order given: (M,) float64, at most 1.

    The smallest is multiplied by M, the next by M - 1 and so on, and none becomes smaller than the one before it.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1)
    return corrected


def _check(values: Sequence[np.ndarray]) -> None:
    if not len(values):
        raise DataError("no values: give one array of per-query values a dataset")
    for place, column in enumerate(values):
        if np.ndim(column) != 1 or not len(column):
            raise DataError(
                f"dataset {place} has values of shape {np.shape(column)}; wanted one value a query, at least one"
            )
        if not np.isfinite(column).all():
            raise DataError(f"dataset {place} has {np.sum(~np.isfinite(column))} values that are not finite numbers")


def _resampled_means(values: np.ndarray, resamples: int, random: np.random.Generator) -> np.ndarray:
    """(resamples,) float64: means of as many values drawn with replacement as there are."""
    size = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    if 4 * len(distinct) <= size:
        # Drawing how often each distinct value comes is the same experiment and cheaper: a reciprocal rank in a run of
        # 100 hits has 101 values. With many distinct values drawing the queries themselves is cheaper.
        return random.multinomial(size, counts / size, size=resamples) @ distinct / size
    step = max(1, _NUMBERS_AT_ONCE // size)
    return np.concatenate(
        [
            values[random.integers(0, size, (min(step, resamples - start), size), dtype=np.int32)].mean(axis=1)
            for start in range(0, resamples, step)
        ]
    )


def _random_signed_sums(values: np.ndarray, resamples: int, random: np.random.Generator) -> np.ndarray:
    """(resamples,) float64: sums of the values, each with a random sign.

    Eight values have 256 signed sums: these are tabled, and one random byte picks a sum.
    """
    eights = np.pad(values, (0, -len(values) % 8)).reshape(-1, 8)
    signs = 2.0 * (np.arange(256)[:, None] >> np.arange(8) & 1) - 1
    table = (eights @ signs.T).ravel()
    offsets = 256 * np.arange(len(eights))
    step = max(1, _NUMBERS_AT_ONCE // len(eights))
    return np.concatenate(
        [
            table[offsets + random.integers(0, 256, (min(step, resamples - start), len(eights)), dtype=np.uint8)].sum(
                axis=1
            )
            for start in range(0, resamples, step)
        ]
    )
