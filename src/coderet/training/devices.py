"""Several processes, one batch: every device sees the vectors of all, and gradients come out as on one.

Each device encodes its own rows of a batch, gathers those of the others, and computes the objective of the whole batch.
Only its own rows have a graph here, so what it lacks of the gradient the others have: the sum over devices is exact.
DistributedDataParallel takes the mean instead, so what flows back into own rows is multiplied by the number of devices.
What an objective learns itself (a temperature) has its whole gradient on every device, of which the mean is right.

Without other processes all of this changes nothing.
"""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch import distributed as others

from coderet.records import DataError


def count() -> int:
    """Devices that train together."""
    return others.get_world_size() if others.is_available() and others.is_initialized() else 1


def rank() -> int:
    """This device's number among them, from 0."""
    return others.get_rank() if count() > 1 else 0


def gathered(own: Tensor) -> Tensor:
    """The rows of all devices, in order of their ranks; own is (B, ...), where B may be another on each.

    Gradients flow back into own rows only, times the number of devices.
    """
    return own if count() == 1 else _Gathered.apply(own)  # type: ignore[no-any-return,no-untyped-call]


def total(own: Tensor) -> Tensor:
    """The sum over devices, the same on each."""
    if count() == 1:
        return own
    summed = own.clone()
    others.all_reduce(summed)
    return summed


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other process is in this block with the same folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the process dies, too
        yield


@contextlib.contextmanager
def no_other_training(folder: Path) -> Iterator[None]:
    """DataError if the processes of another training are in this block with the same folder, which is there."""
    with (folder / "training.lock").open("w") as lock:
        if _first_by_environment():  # the processes do not know each other yet
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataError(
                    f"another process trains the same in {folder}; wait until it has ended, or end it: this one then "
                    "goes on from its last checkpoint"
                ) from None
        yield


def only_the_first_goes_on() -> None:
    """What follows is done once: every process but the first ends here, successfully."""
    if rank() > 0:
        sys.stdout.flush()
        raise SystemExit(0)


def _first_by_environment() -> bool:
    """Whether nobody started this process as a later one of several."""
    return all(os.environ.get(name, "0") in ("", "0") for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"))


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, own: Tensor) -> Tensor:
        sizes = own.new_tensor([len(own)], dtype=torch.int64)
        every_size = [torch.empty_like(sizes) for _ in range(count())]
        others.all_gather(every_size, sizes)
        lengths = [int(size) for size in every_size]
        # All ranks must send as much: short ones send rows that nobody keeps.
        sent = own.new_zeros((max(lengths), *own.shape[1:]))
        sent[: len(own)] = own
        every = [torch.empty_like(sent) for _ in lengths]
        others.all_gather(every, sent)
        context.first, context.rows = sum(lengths[: rank()]), len(own)
        return torch.cat([rows[:length] for rows, length in zip(every, lengths, strict=True)])

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        return gradients[0][context.first : context.first + context.rows] * count()
