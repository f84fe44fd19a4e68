"""Batches of any size in the memory of a small one, with the gradients of the whole (GradCache, Gao et al., 2021).

The texts of a side are encoded a mini-batch at a time without a graph; the objective of all vectors gives its gradient
at each vector; then every mini-batch is encoded again, with the random numbers it had, and what flows back through it
is that gradient. It costs one more forward pass. Mini-batches are cut in order of length, so that little is padding.

>>> queries, documents = (Encoded(encode, side.ids, side.mask, mini_batch=64) for side in sides)
>>> loss = objective(queries.vectors, documents.vectors)
>>> for part, is_last in parts(loss, [queries, documents], objective.parameters()):
...     part.backward()  # devices exchange gradients at the last one only
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from coderet import registry


class GradientCache:
    """mini_batch: texts that are encoded at once; 0 or nothing: whole batches, each encoded once."""

    def __init__(self, *, mini_batch: int | None = 0) -> None:
        registry.check_range("fit.batches.mini_batch", mini_batch or 0, 0)
        self.mini_batch = mini_batch or 0

    def is_needed(self, texts: Iterable[int]) -> bool:
        """Whether any side of so many texts is more than a mini-batch."""
        return bool(self.mini_batch) and max(texts) > self.mini_batch


class Encoded:
    """B texts of one side: their vectors (B, D), and, one mini-batch after the other, what gradients flow back through.

    encode: ids (b, T) and mask (b, T) to vectors (b, D). mini_batch 0: the vectors keep their graph, and there are no
    mini-batches. Each holds the random state its texts were encoded with, so that several may be alive at a time.
    """

    def __init__(self, encode: Callable[[Tensor, Tensor], Tensor], ids: Tensor, mask: Tensor, mini_batch: int = 0):
        self._encode, self._ids, self._mask = encode, ids, mask
        self._cached = bool(mini_batch)
        if not self._cached:
            self.vectors = encode(ids, mask)
            return
        self._device = ids.device
        self._autocast = torch.is_autocast_enabled(ids.device.type), torch.get_autocast_dtype(ids.device.type)
        order = torch.argsort(mask.sum(1), descending=True, stable=True)
        self._rows = list(order.split(mini_batch))
        self._states: list[list[Tensor]] = []
        made = []
        with torch.no_grad(), self._precision():
            for rows in self._rows:
                self._states.append(self._random_state())
                made.append(self._encoded(rows))
        vectors = torch.empty((len(order), made[0].shape[1]), dtype=made[0].dtype, device=made[0].device)
        vectors[order] = torch.cat(made)
        self.vectors = vectors.requires_grad_(torch.is_grad_enabled())

    def again(self, gradient: Tensor) -> Iterator[Tensor]:
        """A scalar a mini-batch, whose gradients sum up to what the vectors' gradient (B, D) makes of the weights'."""
        for rows, state in zip(self._rows, self._states, strict=True):
            with torch.random.fork_rng(self._generators(), device_type=self._device.type), self._precision():
                self._restore(state)
                vectors = self._encoded(rows)
            yield (vectors * gradient[rows]).sum()

    def _encoded(self, rows: Tensor) -> Tensor:
        ids, mask = self._ids[rows], self._mask[rows]
        used = mask.any(0).nonzero()
        first, end = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
        return self._encode(ids[:, first:end], mask[:, first:end])

    def _precision(self) -> AbstractContextManager[None]:
        # Autocast keeps the weights it has cast: those cast without a graph would cut the second pass off from them.
        enabled, dtype = self._autocast
        precision: AbstractContextManager[None] = torch.autocast(
            self._device.type, dtype=dtype, enabled=enabled, cache_enabled=False
        )
        return precision

    def _generators(self) -> list[torch.device]:
        return [] if self._device.type == "cpu" else [self._device]

    def _random_state(self) -> list[Tensor]:
        module = torch.get_device_module(self._device.type)
        return [torch.get_rng_state(), *(module.get_rng_state(each) for each in self._generators())]

    def _restore(self, state: Sequence[Tensor]) -> None:
        module = torch.get_device_module(self._device.type)
        torch.set_rng_state(state[0])
        for each, own in zip(self._generators(), state[1:], strict=True):
            module.set_rng_state(own, each)


def parts(loss: Tensor, sides: Sequence[Encoded], parameters: Iterable[nn.Parameter]) -> Iterator[tuple[Tensor, bool]]:
    """Scalars to call backward on, one after the other, and whether it is the last; their gradients sum to the loss's.

    sides: all that loss was computed of, either all of them in mini-batches or none. parameters: those of the objective
    itself, whose gradients come with the last. Each graph is there only until the next is asked for.
    """
    if not any(side._cached for side in sides):
        yield loss, True
        return
    learned = [each for each in parameters if each.requires_grad]
    gradients = torch.autograd.grad(loss, [*(side.vectors for side in sides), *learned], allow_unused=True)
    of_sides = [
        torch.zeros_like(side.vectors) if each is None else each for side, each in zip(sides, gradients, strict=False)
    ]
    of_objective = [
        (each * own).sum() for each, own in zip(learned, gradients[len(sides) :], strict=True) if own is not None
    ]
    left = sum(len(side._rows) for side in sides)
    for side, gradient in zip(sides, of_sides, strict=True):
        for part in side.again(gradient):
            left -= 1
            yield part if left else torch.stack([part, *(each.to(part) for each in of_objective)]).sum(), not left
