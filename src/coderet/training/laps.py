"""Epochs cut into laps: so many batches, then a validation. And a batch cut among devices.

A lap is an epoch unless `valid_every` or `max_steps` say otherwise. All laps are equally long and training ends with
one; where that does not come out even, an interval is changed by as little as it takes, and fewer batches than there
are laps stay unused at the very end. The batches are those of the epochs' plans, one epoch after the other.
"""

import numpy as np

from coderet import registry
from coderet.records import DataError
from coderet.training.batches import Batches, Plan


class Laps:
    """batches: those of the epochs. steps are those of the optimiser, accumulate batches each.

    epochs, max_steps: whichever ends first; 0 max_steps is no bound. valid_every: steps of a lap, 0 for an epoch.
    """

    def __init__(
        self, batches: Batches, *, epochs: int = 1, max_steps: int = 0, valid_every: int = 0, accumulate: int = 1
    ) -> None:
        available = epochs * len(batches)
        wanted = min(available, max_steps * accumulate) if max_steps else available
        lap = valid_every * accumulate or len(batches)
        if wanted < accumulate:
            raise registry.BadValue(
                f"fit.training.accumulate is {accumulate}, but the training has {wanted} batches; lower it"
            )
        self.laps = max(1, min(round(wanted / lap), wanted // accumulate))
        self.accumulate, self._batches = accumulate, batches
        self.batch = batches.batch  # pairs, those of all devices
        self._lap = wanted // self.laps // accumulate * accumulate
        self._rank, self._ranks = 0, 1

    def __len__(self) -> int:
        return self._lap

    @property
    def left_over(self) -> int:
        """Pairs that an epoch does not use."""
        return self._batches.left_over

    @property
    def steps(self) -> int:
        """Of the whole training."""
        return self.laps * self._lap // self.accumulate

    def share(self, rank: int, ranks: int) -> None:
        """From now on, plans hold only this rank's rows of every batch."""
        self._rank, self._ranks = rank, ranks

    def epoch(self, lap: int, number: int) -> int:
        """Which epoch of the pairs batch number of a lap belongs to."""
        return (lap * self._lap + number) // len(self._batches)

    def whole(self, lap: int, number: int) -> np.ndarray:
        """Rows of one batch, those of all devices."""
        place = lap * self._lap + number
        rows: np.ndarray = self._batches.plan(place // len(self._batches))[place % len(self._batches)]
        return rows

    def plan(self, lap: int) -> Plan:
        """Rows of the batches of a lap, as many as `len` says."""
        first, end, length = lap * self._lap, (lap + 1) * self._lap, len(self._batches)
        plans = [
            self._batches.plan(epoch)[max(0, first - epoch * length) : end - epoch * length]
            for epoch in range(first // length, -(-end // length))
        ]
        if self._ranks == 1 and len(plans) == 1:
            return plans[0]
        return [self._own(rows) for plan in plans for rows in plan]

    def _own(self, rows: np.ndarray) -> np.ndarray:
        if len(rows) < self._ranks:
            raise DataError(
                f"a batch of {len(rows)} pairs cannot be cut among {self._ranks} devices; "
                "raise batches.size or lower trainer.devices"
            )
        own: np.ndarray = np.array_split(rows, self._ranks)[self._rank]  # sizes differ by one at most
        return own
