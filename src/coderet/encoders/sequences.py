"""What architectures that read tokens in their order have in common: a table of vectors, and what becomes of padding.

A batch is read in parts of texts about equally long, each part padded to its own length, and every text from the left:
so no work is spent on padding, a token's place is counted from the text's first token wherever padding lay, and what
stands beside a text changes nothing of it. A text without tokens has the zero vector.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding

from coderet import registry
from coderet.encoders import encoding
from coderet.encoders import pooling as poolings
from coderet.encoders.base import Tower
from coderet.encoders.pooling import Pooling

LARGEST_DIM = 65_536
LARGEST_DROPOUT = 0.99
PART_TOKENS = 65_536  # padded tokens of a part: bounds its memory where nothing is kept for a gradient


class SequenceTower(Tower):
    """A subclass says in `read` what tokens' vectors become; its vectors are then pooled.

    vocabulary: token ids lie below it. dim: dimension of tokens and texts. pooling: as `pooling.made` knows it.
    table_dropout: share of the table's numbers that are set to zero in a training step, the same ones for every
    occurrence of a token, as in 2019.
    """

    def __init__(self, vocabulary: int, dim: int, pooling: Pooling, table_dropout: float) -> None:
        super().__init__(dim)
        registry.check_range("dim", dim, 1, LARGEST_DIM)
        registry.check_range("table_dropout", table_dropout, 0, LARGEST_DROPOUT)
        self.table_dropout = table_dropout
        self.table = nn.Embedding(vocabulary, dim, padding_idx=0)
        nn.init.normal_(self.table.weight, std=dim**-0.5)
        self.pool = poolings.made(pooling, dim)

    def read(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Vectors (N, T, dim) of tokens (N, T, dim) in their texts; mask (N, T) is true on a text's first places.

        What stands where the mask is false must leave no trace where it is true.
        """
        raise NotImplementedError

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        lengths = mask.sum(1)
        ids, mask = _to_the_left(ids, mask)
        mask[:, 0] |= lengths == 0  # an attention over nothing is not a number
        table = dropout(self.table.weight, self.table_dropout, self.training)
        order, parts = [], []
        for rows, width in self._parts(lengths, ids.shape[1]):
            inside = mask[rows, :width]
            tokens = embedding(ids[rows, :width], table, padding_idx=0)
            order.append(rows)
            parts.append(self.pool(self.read(tokens, inside), inside))
        if not parts:
            return table.new_zeros(0, self.dim)
        vectors = torch.cat(parts).index_select(0, torch.cat(order).argsort())
        return vectors * (lengths > 0).unsqueeze(1)

    def _parts(self, lengths: Tensor, width: int) -> list[tuple[Tensor, int]]:
        """Rows of texts and the width that they are read at. Away from the processor all are one part: there work costs
        less than many small calls, and than waiting for the lengths.
        """
        longest = min(width, self.longest or width)
        if lengths.device.type != "cpu":
            return [(torch.arange(len(lengths), device=lengths.device), longest)]
        host = lengths.numpy()
        parts = [torch.from_numpy(rows) for rows in encoding.batches(host, PART_TOKENS)]
        return [(rows, min(longest, _padded(int(lengths[rows].max())))) for rows in parts]


def _padded(length: int) -> int:
    return max(1, -(-length // encoding.LENGTH_STEP)) * encoding.LENGTH_STEP


def _to_the_left(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The same tokens (B, T) in their order, each text's from its row's first place on."""
    order = torch.argsort(~mask, dim=1, stable=True)
    return ids.gather(1, order), mask.gather(1, order)
