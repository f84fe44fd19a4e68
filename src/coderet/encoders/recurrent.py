"""Recurrent networks that read a text from both ends: LSTM or GRU cells (the biRNN of Husain et al., 2019).

Two stacks that do not know each other, one reading forwards and one backwards, each giving half a token's numbers. The
one that reads backwards begins at a text's last token, not at the padding behind it. The paper names GRU cells; LSTM is
what its code uses, and the default here.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from coderet import registry
from coderet.encoders.pooling import Pooling
from coderet.encoders.sequences import LARGEST_DROPOUT, SequenceTower

CELLS: dict[str, type[nn.LSTM | nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class Recurrent(SequenceTower):
    """dim: of tokens and texts, even: each direction has half of it. dropout: share of what each layer gives that is
    left out while training.
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        dim: int = 128,
        pooling: Pooling = "weighted",
        cell: Literal["lstm", "gru"] = "lstm",
        layers: int = 2,
        dropout: float = 0.2,
        table_dropout: float = 0.1,
    ) -> None:
        registry.check_range("layers", layers, 1)
        registry.check_range("dropout", dropout, 0, LARGEST_DROPOUT)
        super().__init__(vocabulary, dim, pooling, table_dropout)
        if dim % 2:
            raise registry.BadValue(f"dim is {dim}; wanted an even number, for each direction gives half of it")
        self.dropout = dropout
        between = dropout if layers > 1 else 0.0
        self.forwards, self.backwards = (
            CELLS[cell](dim, dim // 2, layers, batch_first=True, dropout=between) for _ in range(2)
        )

    def read(self, tokens: Tensor, mask: Tensor) -> Tensor:
        # Padded, not packed: for texts about equally long half the time of torch's packed sequences on processors.
        turned = _turned(mask)
        forwards, _ = self.forwards(tokens)
        backwards, _ = self.backwards(_at(tokens, turned))
        both = torch.cat([forwards, _at(backwards, turned)], dim=2)
        return dropout(both, self.dropout, self.training)


def _turned(mask: Tensor) -> Tensor:
    """(N, T) the place that each place has when a text is read backwards; padding stays where it is."""
    places = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)


def _at(tokens: Tensor, places: Tensor) -> Tensor:
    return tokens.gather(1, places.unsqueeze(2).expand_as(tokens))
