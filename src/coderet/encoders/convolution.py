"""A one-dimensional convolution over tokens: a token is seen with its neighbours (the 1D-CNN of Husain et al., 2019).

Tokens get learned vectors of their places; then layers of as many filters as a token has numbers, each of an even or
odd width, padded by zeros so that a text keeps its length. From the second layer on a layer's input is added to what
it makes, before the activation.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, pad

from coderet import registry
from coderet.encoders.pooling import Pooling
from coderet.encoders.sequences import LARGEST_DROPOUT, SequenceTower

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "gelu": nn.functional.gelu}
PLACE_SCALE = 0.02  # spread of the places' vectors at the start, as in 2019


class Convolution(SequenceTower):
    """dim: of tokens, filters and texts. width: tokens that a filter sees at once, itself and as many before as behind,
    one more behind where width is even. positions: places that there are vectors for; no text may be longer. dropout:
    share of a layer's numbers left out while training.
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        dim: int = 128,
        pooling: Pooling = "weighted",
        layers: int = 3,
        width: int = 16,
        activation: Literal["tanh", "relu", "gelu"] = "tanh",
        positions: int = 256,
        dropout: float = 0.1,
        table_dropout: float = 0.1,
    ) -> None:
        registry.check_range("layers", layers, 1)
        registry.check_range("width", width, 1)
        registry.check_range("positions", positions, 1)
        registry.check_range("dropout", dropout, 0, LARGEST_DROPOUT)
        super().__init__(vocabulary, dim, pooling, table_dropout)
        self.longest = positions
        self.width, self.dropout, self.activation = width, dropout, ACTIVATIONS[activation]
        self.places = nn.Parameter(torch.empty(positions, dim))
        nn.init.trunc_normal_(self.places, std=PLACE_SCALE)
        self.layers = nn.ModuleList(nn.Conv1d(dim, dim, width) for _ in range(layers))

    def read(self, tokens: Tensor, mask: Tensor) -> Tensor:
        inside = mask.unsqueeze(1)
        around = ((self.width - 1) // 2, self.width // 2)
        current = (tokens + self.places[: tokens.shape[1]]).transpose(1, 2)  # (N, dim, T)
        for number, layer in enumerate(self.layers):
            made = layer(pad(current * inside, around))
            current = dropout(self.activation(made + current if number else made), self.dropout, self.training)
        return current.transpose(1, 2)
