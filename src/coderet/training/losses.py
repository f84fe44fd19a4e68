"""Contrastive losses over a batch of pairs: the other documents of the batch are a query's negatives.

Pairs of the batch that share a document or a query are positives of each other; `same` marks them, and they are left
out of the negatives instead of being pushed apart.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def same_text(query_keys: Tensor, document_keys: Tensor) -> Tensor:
    """(B, B) bool: whether pairs i and j have the same query or the same document, by the keys (B,) of their texts."""
    return (query_keys[:, None] == query_keys[None, :]) | (document_keys[:, None] == document_keys[None, :])


def info_nce(
    queries: Tensor,
    documents: Tensor,
    temperature: float | Tensor,
    *,
    same: Tensor | None = None,
    both_directions: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy of each query picking its own document out of the batch (van den Oord et al., 2018).

    queries and documents are (B, D) with unit rows; row i of one belongs to row i of the other. same is (B, B) bool:
    true off the diagonal where j is no negative of i. both_directions: the mean with documents picking their queries.
    Returns a scalar, or (B,) losses for reduction `none`.
    """
    scores = queries @ documents.T / temperature  # (B, B)
    own = torch.arange(len(scores), device=scores.device)
    if same is not None:
        scores = scores.masked_fill(same & (own[:, None] != own[None, :]), -torch.inf)
    loss = cross_entropy(scores, own, reduction=reduction)
    return (loss + cross_entropy(scores.T, own, reduction=reduction)) / 2 if both_directions else loss


def reciprocal_ranks(queries: Tensor, documents: Tensor) -> Tensor:
    """(B,) 1 / rank of each query's own document among all B; documents of an equal score count before it."""
    scores = queries @ documents.T
    return 1.0 / (scores >= scores.diagonal()[:, None]).sum(1)
