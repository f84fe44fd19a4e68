"""What answers are worth: pass@k, and whether one context lets more problems be solved than another.

pass@k is the chance that one of k answers passes, estimated without bias from n >= k samples (Chen et al., 2021). Gains
and losses are told apart from chance by McNemar's exact test (1947): of the problems that only one of two systems
solves, either is as likely as the other if both are equally good.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from coderet.records import DataError


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """1 less the chance that k of the samples, drawn without replacement, all fail; DataError if k > samples."""
    if not 1 <= k <= samples:
        raise DataError(
            f"pass@{k} wants at least {k} samples a problem and there are {samples}; raise answering.samples"
        )
    if not 0 <= passed <= samples:
        raise DataError(f"{passed} of {samples} samples passed; wanted from 0 to {samples}")
    return 1 - math.comb(samples - passed, k) / math.comb(samples, k)


class Sample(Protocol):
    """A judged answer. grades: metrics of an answer that is graded as it stands."""

    @property
    def passed(self) -> bool: ...

    @property
    def verdict(self) -> str: ...

    @property
    def grades(self) -> Mapping[str, float]: ...


def values(samples: Mapping[str, Sequence[Sample]], ks: Iterable[int], metrics: Iterable[str]) -> dict[str, np.ndarray]:
    """Every metric of every problem, (S,) float64 in the order of samples, which are by problem.

    metrics: what the problems are judged by; `pass@1` among them stands for pass@k of all ks, any other is the mean of
    a problem's grades. DataError if a problem has no samples.
    """
    if lacking := [problem for problem, each in samples.items() if not each]:
        raise DataError(f"{len(lacking)} problems have no completion, {lacking[0]!r} among them; generate again")
    found: dict[str, np.ndarray] = {}
    for metric in metrics:
        if metric.startswith("pass@"):
            for k in ks:
                passing = [pass_at_k(len(each), sum(one.passed for one in each), k) for each in samples.values()]
                found[f"pass@{k}"] = np.array(passing, np.float64)
        else:
            means = [np.mean([one.grades[metric] for one in each]) for each in samples.values()]
            found[metric] = np.array(means, np.float64)
    return found


def counts(samples: Mapping[str, Sequence[Sample]]) -> dict[str, int]:
    """How many samples there are, and how many problems of which no sample could be judged by a test."""
    untested = sum(all(one.verdict == "no tests" for one in each) for each in samples.values())
    return {"samples": sum(map(len, samples.values())), "problems_without_tests": untested}


def mcnemar(gains: int, losses: int) -> float:
    """Two-sided exact p of so many problems that only ours solves and so many that only theirs does; 1 without any."""
    both = gains + losses
    if not both:
        return 1.0
    tail = sum(math.comb(both, each) for each in range(min(gains, losses) + 1))
    return min(1.0, 2 * tail / 2**both)
