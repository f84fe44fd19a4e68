"""Vectors of tokens to one vector a text.

Every function takes tokens (B, T, D) and a bool mask (B, T) that is true on real tokens, and gives (B, D). Padding may
lie on either side. A text without tokens gives the zero vector.
"""

from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from coderet.records import DataError
from coderet.registry import nearest


def mean(tokens: Tensor, mask: Tensor) -> Tensor:
    """The mean over real tokens."""
    return weighted(tokens, mask, torch.ones_like(tokens[..., 0]))


def weighted(tokens: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """The mean over real tokens by weights (B, T), which are not negative."""
    weights = weights * mask
    total = weights.sum(1, keepdim=True)
    return (weights.unsqueeze(1) @ tokens).squeeze(1) / total.clamp_min(torch.finfo(total.dtype).tiny)


def maximum(tokens: Tensor, mask: Tensor) -> Tensor:
    """The largest value of each dimension over real tokens."""
    lowest = torch.finfo(tokens.dtype).min
    largest = tokens.masked_fill(~mask.unsqueeze(-1), lowest).amax(1)
    return largest * mask.any(1, keepdim=True)


def first(tokens: Tensor, mask: Tensor) -> Tensor:
    """The first real token: the begin mark (CLS) where the tokenizer sets one."""
    return _at(tokens, mask, mask.long().argmax(1))


def position_weighted(tokens: Tensor, mask: Tensor) -> Tensor:
    """The mean over real tokens, the first with weight 1, the second with 2 and so on (Muennighoff, 2022)."""
    return weighted(tokens, mask, mask.cumsum(1).to(tokens.dtype))


def last(tokens: Tensor, mask: Tensor) -> Tensor:
    """The last real token: the end mark where the tokenizer sets one."""
    return _at(tokens, mask, mask.shape[1] - 1 - mask.flip(1).long().argmax(1))


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": mean,
    "max": maximum,
    "cls": first,
    "last": last,
    "weightedmean": position_weighted,
}

Pooling = Literal["weighted", "mean", "max", "cls", "last"]


class LearnedWeights(nn.Module):
    """`weighted` with weights that are learned: the sigmoid of a bias-free linear map of a token's vector, as in
    CodeSearchNet's encoders (Husain et al., 2019).
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weigh = nn.Linear(dim, 1, bias=False)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return weighted(tokens, mask, torch.sigmoid(self.weigh(tokens)).squeeze(-1))


def made(name: Pooling, dim: int) -> Callable[[Tensor, Tensor], Tensor]:
    """The pooling of vectors of dim numbers that a tower's setting names; DataError for a name that is not known."""
    known = get_args(Pooling)
    if name not in known:
        raise DataError(f"pooling is {name!r}; known: {', '.join(known)}.{nearest(name, known)}")
    return LearnedWeights(dim) if name == "weighted" else POOLINGS[name]


def _at(tokens: Tensor, mask: Tensor, places: Tensor) -> Tensor:
    return tokens[torch.arange(len(tokens), device=tokens.device), places] * mask.any(1, keepdim=True)
