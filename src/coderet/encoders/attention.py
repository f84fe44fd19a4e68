"""Self-attention from scratch: a small BERT (Devlin et al., 2019) as CodeSearchNet trains one (Husain et al., 2019).

Tokens and learned places are added and normalised; then layers of attention and of a wider inner layer, what goes in
being added to what comes out and the sum normalised. BERT's segments, of which there is one, are left out.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, gelu, scaled_dot_product_attention

from coderet import registry
from coderet.encoders.pooling import Pooling
from coderet.encoders.sequences import LARGEST_DROPOUT, SequenceTower

SCALE = 0.02  # spread of all weights at the start, BERT's
EPSILON = 1e-12  # BERT's, in every normalisation


class Attention(SequenceTower):
    """dim: of tokens and texts, a multiple of heads. inner: width of the inner layers. positions: places that there are
    vectors for; no text may be longer. dropout, attention_dropout: shares of numbers and of attention left out while
    training.
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        dim: int = 128,
        pooling: Pooling = "weighted",
        layers: int = 3,
        heads: int = 8,
        inner: int = 512,
        positions: int = 512,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        table_dropout: float = 0.0,
    ) -> None:
        for name, value in (("layers", layers), ("heads", heads), ("inner", inner), ("positions", positions)):
            registry.check_range(name, value, 1)
        for name, share in (("dropout", dropout), ("attention_dropout", attention_dropout)):
            registry.check_range(name, share, 0, LARGEST_DROPOUT)
        super().__init__(vocabulary, dim, pooling, table_dropout)
        if dim % heads:
            raise registry.BadValue(f"dim is {dim}; wanted a multiple of heads, which is {heads}")
        self.longest, self.dropout = positions, dropout
        self.places = nn.Parameter(torch.empty(positions, dim))
        self.norm = nn.LayerNorm(dim, eps=EPSILON)
        self.layers = nn.ModuleList(Layer(dim, heads, inner, dropout, attention_dropout) for _ in range(layers))
        for weights in (self.table.weight, self.places):
            nn.init.normal_(weights, std=SCALE)

    def read(self, tokens: Tensor, mask: Tensor) -> Tensor:
        current = self.norm(tokens + self.places[: tokens.shape[1]])
        current = dropout(current, self.dropout, self.training)
        for layer in self.layers:
            current = layer(current, mask)
        return current


class Layer(nn.Module):
    """One of BERT's layers: (N, T, dim) and mask (N, T) to (N, T, dim)."""

    def __init__(self, dim: int, heads: int, inner: int, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout, self.attention_dropout = heads, dropout, attention_dropout
        self.asked = nn.Linear(dim, 3 * dim)  # queries, keys and values, one below the other
        self.answered = nn.Linear(dim, dim)
        self.widened = nn.Linear(dim, inner)
        self.narrowed = nn.Linear(inner, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim, eps=EPSILON) for _ in range(2))
        for linear in (self.asked, self.answered, self.widened, self.narrowed):
            nn.init.normal_(linear.weight, std=SCALE)
            nn.init.zeros_(linear.bias)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        heads = self.asked(tokens).unflatten(2, (3, self.heads, -1))  # (N, T, 3, heads, dim / heads)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4).unbind()
        share = self.attention_dropout if self.training else 0.0
        seen = scaled_dot_product_attention(queries, keys, values, mask[:, None, None, :], share)
        seen = self.answered(seen.transpose(1, 2).flatten(2))
        tokens = self.norms[0](tokens + dropout(seen, self.dropout, self.training))
        inner = self.narrowed(gelu(self.widened(tokens)))
        return self.norms[1](tokens + dropout(inner, self.dropout, self.training))
