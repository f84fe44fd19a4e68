"""A neural bag of words: a text is the weighted mean of its tokens' vectors (Husain et al., 2019, the NBoW baseline).

The weight of a token is the sigmoid of a bias-free linear map of its vector, so one table holds meaning and weight;
`mean` and `max` pooling do without. Word order is not seen. A text without tokens has the zero vector.
"""

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, embedding_bag

from coderet import registry
from coderet.encoders import pooling as poolings
from coderet.encoders.base import Tower
from coderet.records import DataError

LARGEST_DIM = 65_536
LARGEST_DROPOUT = 0.99  # at 1 no text would keep a token
WEIGHT_SCALE = 16.0  # length of the linear map at the start: logits of a few units then cost the vectors little room


class NeuralBagOfWords(Tower):
    """vocabulary: token ids lie below it. dim: dimension of tokens and texts. dropout: share of tokens left out of a
    text while training. distinct: every token counts once a text, however often it stands there.
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        dim: int = 256,
        pooling: Literal["weighted", "mean", "max"] = "weighted",
        dropout: float = 0.0,
        distinct: bool = False,
    ) -> None:
        super().__init__(dim)
        if pooling not in ("weighted", "mean", "max"):
            raise DataError(f"pooling is {pooling!r}; an nbow knows weighted, mean and max")
        registry.check_range("dim", dim, 1, LARGEST_DIM)
        registry.check_range("dropout", dropout, 0, LARGEST_DROPOUT)
        self.pooling, self.dropout, self.distinct = pooling, dropout, distinct
        self.table = nn.Embedding(vocabulary, dim, padding_idx=0)
        nn.init.normal_(self.table.weight, std=dim**-0.5)
        self.weigh = nn.Linear(dim, 1, bias=False) if pooling == "weighted" else None
        if self.weigh is not None:
            nn.init.normal_(self.weigh.weight)
            self.weigh.weight.data *= WEIGHT_SCALE / self.weigh.weight.data.norm()

    def start_from(self, weights: np.ndarray) -> None:
        """Set the tokens' weights (V,), each in (0, 1), before training: rare tokens are worth more than common ones.

        Moves every token's vector along the linear map only. No effect unless pooling is weighted.
        """
        if self.weigh is None:
            return
        with torch.no_grad():
            direction = self.weigh.weight[0]
            wanted = torch.logit(torch.as_tensor(weights, dtype=torch.float32), eps=1e-3)
            now = self.table.weight @ direction
            self.table.weight += torch.outer(wanted - now, direction) / direction.square().sum()

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        if self.distinct:
            ids, mask = _distinct(ids, mask)
        if self.training and self.dropout:
            mask = mask & (torch.rand(mask.shape, device=mask.device) >= self.dropout)
        if self.pooling == "max":
            return poolings.maximum(self.table(ids), mask)
        # One pass over the tokens that are there, instead of a (B, T, D) block that is mostly padding.
        flat = ids[mask]
        lengths = mask.sum(1)
        offsets = torch.cumsum(lengths, 0) - lengths
        if self.weigh is None:
            return embedding_bag(flat, self.table.weight, offsets, mode="mean")
        direction = self.weigh.weight[0]
        if self.training:  # once a token of the vocabulary instead of once an occurrence
            of_token = torch.sigmoid(self.table.weight @ direction)
            # Not of_token[flat]: its gradient is summed by threads in whatever order they come.
            weights = embedding(flat, of_token.unsqueeze(1)).squeeze(1)
        else:
            many = len(flat) > len(self.table.weight)  # then a product a token of the vocabulary is less work
            logits = (self.table.weight * direction).sum(1)[flat] if many else (self.table(flat) * direction).sum(1)
            weights = torch.sigmoid(logits)
        total = torch.zeros_like(lengths, dtype=weights.dtype).index_add(
            0, torch.repeat_interleave(torch.arange(len(lengths), device=ids.device), lengths), weights
        )
        weights = weights.to(self.table.weight.dtype)  # of half precision under autocast
        summed = embedding_bag(flat, self.table.weight, offsets, mode="sum", per_sample_weights=weights)
        return summed / total.clamp_min(torch.finfo(total.dtype).tiny).unsqueeze(1)


def _distinct(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    ids, _ = ids.masked_fill(~mask, -1).sort(1)
    mask = ids >= 0
    mask[:, 1:] &= ids[:, 1:] != ids[:, :-1]
    return ids.clamp_min(0), mask
