"""What answers are worth: pass@k, and whether one context lets more problems be solved than another.

pass@k is the chance that one of k answers passes, estimated without bias from n >= k samples (Chen et al., 2021). Gains
and losses are told apart from chance by McNemar's exact test (1947): of the problems that only one of two systems
solves, either is as likely as the other if both are equally good.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from coderet.records import DataError


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """1 less the chance that k of the samples, drawn without replacement, all fail; DataError if k > samples."""
    if not 1 <= k <= samples:
        raise DataError(f"pass@{k} wants at least {k} samples a problem and there are {samples}; raise answering.samples")
    if not 0 <= passed <= samples:
        raise DataError(f"{passed} of {samples} samples passed; wanted from 0 to {samples}")
    return 1 - math.comb(samples - passed, k) / math.comb(samples, k)


def passes(verdicts: Mapping[str, Sequence[bool]], ks: Iterable[int]) -> dict[str, np.ndarray]:
    """`pass@<k>` of every problem, (S,) float64 in the order of verdicts: for each problem whether each sample passed."""
    return {
        f"pass@{k}": np.array([pass_at_k(len(each), sum(each), k) for each in verdicts.values()], np.float64) for k in ks
    }


def mcnemar(gains: int, losses: int) -> float:
    """Two-sided exact p of so many problems that only ours solves and so many that only theirs does; 1 without any."""
    both = gains + losses
    if not both:
        return 1.0
    tail = sum(math.comb(both, each) for each in range(min(gains, losses) + 1))
    return min(1.0, 2 * tail / 2**both)
