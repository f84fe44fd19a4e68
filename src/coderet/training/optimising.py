"""Which weights move how fast: optimisers, groups of weights, and the learning rate over a training.

Weight decay spares what has one dimension (biases, norms). layer_decay lets the lower layers of a pretrained encoder
move less than the upper ones: a layer's rate is that of the layer above times layer_decay, the embeddings being lowest.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from coderet import registry
from coderet.records import DataError
from coderet.training import OPTIMISERS

LOWEST_RATE = 0.01  # share of the learning rate that is left at the very end
_LAYER = re.compile(r"\.(?:layers?|h|blocks?)\.(\d+)\.")
_EMBEDDINGS = re.compile(r"\.(?:embeddings?|embed_tokens|wte|wpe)\.")


def optimiser(
    module: nn.Module,
    kind: str,
    learning_rate: float,
    *,
    weight_decay: float = 0.0,
    layer_decay: float = 1.0,
    fused: bool = True,
) -> Any:
    """The optimiser of all weights of module that learn. kind: one of OPTIMISERS."""
    make = registry.load(OPTIMISERS, kind, "optimisers", "fit.training.optimiser")
    learned = {name: weights for name, weights in module.named_parameters() if weights.requires_grad}
    if not weight_decay and layer_decay == 1:
        return make(learned.values(), lr=learning_rate, weight_decay=0.0, fused=fused)
    rates = _rates(list(learned), layer_decay)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, weights in learned.items():
        decay = weight_decay if weights.ndim > 1 else 0.0
        groups.setdefault((learning_rate * rates[name], decay), []).append(weights)
    return make(
        [{"params": members, "lr": rate, "weight_decay": decay} for (rate, decay), members in groups.items()],
        lr=learning_rate,
        fused=fused,
    )


def schedule(optimizer: torch.optim.Optimizer, kind: str, warmup: float, steps: int) -> Any:
    """A torch scheduler, to be stepped after every step of the optimiser, of so many in all."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, share(kind, warmup, steps))


def share(kind: str, warmup: float, steps: int) -> Callable[[int], float]:
    """Step, counted from 0, to the share of the learning rate it is taken with.

    It rises for warmup steps, or for that share of all steps if it is below 1, and meanwhile and afterwards falls
    linearly or along half a cosine to LOWEST_RATE, or is constant.
    """
    rising = max(1, round(warmup * steps) if warmup < 1 else int(warmup))

    def of_step(step: int) -> float:
        if kind == "constant":
            left = 1.0
        elif kind == "cosine":
            left = max(LOWEST_RATE, (1 + math.cos(math.pi * min(1.0, step / steps))) / 2)
        else:
            left = max(LOWEST_RATE, 1.0 - step / steps)
        return min(1.0, (step + 1) / rising) * left

    return of_step


def _rates(names: list[str], layer_decay: float) -> dict[str, float]:
    """What the learning rate of each of these weights is multiplied by."""
    layers = {name: int(found[1]) for name in names if (found := _LAYER.search(name))}
    if not layers and layer_decay != 1:
        raise DataError(
            f"fit.training.layer_decay is {layer_decay}, but this encoder has no numbered layers; take it out"
        )
    top = max(layers.values(), default=-1) + 1
    depth = {name: layers.get(name, -1 if _EMBEDDINGS.search(f".{name}") else top) for name in names}
    return {name: layer_decay ** (top - depth[name]) for name in names}
