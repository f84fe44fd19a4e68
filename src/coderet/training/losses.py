"""Losses over a batch of pairs, as functions of vectors: contrastive ones, those of 2019, and distillation.

Row i of queries (B, D) belongs to row i of documents (B, D); the other documents of the batch are query i's negatives,
and so are explicit ones, negatives (B, N, D), where they are given. Every function gives a loss a pair, (B,), or a
scalar where it says so, in the precision of its vectors.

Pairs of the batch that share a document or a query are positives of each other. `same_text` marks them, and
`known_answers` the explicit negatives that are answers after all: they are left out instead of being pushed away.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, relu

Whose = Literal["own", "all"]


def same_text(query_keys: Tensor, document_keys: Tensor) -> Tensor:
    """(B, B) bool: whether pairs i and j have the same query or the same document, by the keys (B,) of their texts."""
    return (query_keys[:, None] == query_keys[None, :]) | (document_keys[:, None] == document_keys[None, :])


def known_answers(query_keys: Tensor, document_keys: Tensor, negative_keys: Tensor) -> Tensor:
    """(B, B, N) bool: whether negative n of pair j is an answer to query i, by the keys (B,), (B,) and (B, N) of texts.

    It is one if it equals the document of any pair whose query equals query i, i's own among them.
    """
    equal = query_keys[:, None] == query_keys[None, :]  # (B, B)
    pairs = torch.arange(len(query_keys), device=query_keys.device)
    # Pairs by their document, so that a negative finds in one look-up all pairs whose document it is.
    documents, which = torch.unique(document_keys, return_inverse=True)
    answers = equal.new_zeros(len(pairs), len(documents))  # (B, M): whether document m answers query i
    asked, answered = equal.nonzero(as_tuple=True)
    answers[asked, which[answered]] = True
    place = torch.searchsorted(documents, negative_keys).clamp(max=len(documents) - 1)  # (B, N)
    return answers[:, place] & (documents[place] == negative_keys)


def unit(vectors: Tensor) -> Tensor:
    """Rows of length one; a row of zeros stays one and gets finite gradients."""
    lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / torch.where(lengths > 0, lengths, 1)


def info_nce(
    queries: Tensor,
    documents: Tensor,
    temperature: float | Tensor,
    *,
    same: Tensor | None = None,
    both_directions: bool = False,
    negatives: Tensor | None = None,
    negatives_of: Whose = "all",
    known: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy of each query picking its own document out of the batch (van den Oord et al., 2018).

    Scores are dot products. same is (B, B) bool: true off the diagonal where j is no negative of i. both_directions:
    the mean with documents picking their queries, among which explicit negatives have no part. negatives_of: whether a
    query's explicit negatives are those of its own pair or those of all pairs. known is (B, B, N) bool: true where
    negative n of pair j is no negative of query i. Returns a scalar, or (B,) losses for reduction `none`.
    """
    scores = queries @ documents.T / temperature  # (B, B)
    own = torch.arange(len(scores), device=scores.device)
    if same is not None:
        scores = scores.masked_fill(same & (own[:, None] != own[None, :]), -torch.inf)
    candidates = scores
    if negatives is not None:
        harder = _negative_scores(queries, negatives, negatives_of) / temperature
        if known is not None:
            known = known[own, own] if negatives_of == "own" else known.flatten(1)
            harder = harder.masked_fill(known, -torch.inf)
        candidates = torch.cat([scores, harder], dim=1)
    loss = cross_entropy(candidates, own, reduction=reduction)
    return (loss + cross_entropy(scores.T, own, reduction=reduction)) / 2 if both_directions else loss


def softmax_2019(queries: Tensor, documents: Tensor) -> Tensor:
    """Cross-entropy of raw dot products, as CodeSearchNet's baselines have it (Husain et al., 2019)."""
    scores = queries @ documents.T
    return cross_entropy(scores, torch.arange(len(scores), device=scores.device), reduction="none")


def cosine_2019(queries: Tensor, documents: Tensor, margin: float) -> Tensor:
    """How far the own cosine is from being margin above the nearest other one, in which negative cosines count as 0."""
    cosines = unit(queries) @ unit(documents).T
    return _margin_to_the_nearest(cosines.diagonal(), relu(_others(cosines)), margin)


def max_margin_2019(queries: Tensor, documents: Tensor, margin: float) -> Tensor:
    """The same of log-probabilities: each row of raw dot products through a log-softmax, none counted as 0."""
    scores = log_softmax(queries @ documents.T, dim=1)
    return _margin_to_the_nearest(scores.diagonal(), _others(scores), margin)


def triplet_2019(queries: Tensor, documents: Tensor, margin: float) -> Tensor:
    """Mean over the documents that are not yet margin farther away than the own one, by Euclidean distance.

    0 for a pair for which there are none. The 2019 code has rows and columns the other way round here, code i against
    all queries j; this is the protocol's query i against all codes j.
    """
    distances = torch.cdist(queries, documents, compute_mode="donot_use_mm_for_euclid_dist")  # exact when they are near
    hinges = relu(_others(distances.diagonal()[:, None] - distances + margin))
    return hinges.sum(1) / (hinges > 0).sum(1).clamp(min=1)


def distilled(
    scores: Tensor, teacher: Tensor, temperature: float | Tensor, teacher_temperature: float
) -> tuple[Tensor, Tensor]:
    """(B,) Kullback-Leibler divergence of what a student thinks of C candidates from what its teacher thinks of them.

    scores and teacher are (B, C), divided by their temperatures and put through a softmax (Hinton et al., 2015). There
    is no factor of temperature squared, so that a teacher that is certain gives just `info_nce`. NaN of the teacher is
    no opinion: such a candidate is left out of both. Second is (B,) bool, false where fewer than two are left, of which
    nothing can be learned; the divergence is 0 there.
    """
    known = ~teacher.isnan()
    taught = known.sum(1) >= 2
    chosen = known & taught[:, None]
    # A row without any candidate keeps them all, at 0: its softmax would be NaN.
    left_out = ~known & taught[:, None]
    wanted = log_softmax((teacher / teacher_temperature).masked_fill(~chosen, 0).masked_fill(left_out, -torch.inf), 1)
    believed = log_softmax((scores / temperature).masked_fill(left_out, -torch.inf), 1)
    terms = wanted.exp() * (wanted - believed)
    return terms.masked_fill(~chosen, 0).sum(1), taught


def margin_mse(scores: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor]:
    """(B,) mean squared error of margins, own document's score less a negative's (Hofstaetter et al., 2020).

    scores and teacher are (B, 1 + N), the own document first. Margins that are NaN for the teacher are left out. Second
    is (B,) bool, false where none is left; the error is 0 there.
    """
    wanted = teacher[:, :1] - teacher[:, 1:]
    known = ~wanted.isnan()
    errors = (scores[:, :1] - scores[:, 1:] - wanted).masked_fill(~known, 0)
    return errors.square().sum(1) / known.sum(1).clamp(min=1), known.any(1)


def candidate_scores(queries: Tensor, documents: Tensor, negatives: Tensor) -> Tensor:
    """(B, 1 + N) dot products of each query with its own document and its own explicit negatives."""
    return torch.cat([(queries * documents).sum(1, keepdim=True), _negative_scores(queries, negatives, "own")], dim=1)


def reciprocal_ranks(queries: Tensor, documents: Tensor) -> Tensor:
    """(B,) 1 / rank of each query's own document among all B; documents of an equal score count before it."""
    scores = queries @ documents.T
    return 1.0 / (scores >= scores.diagonal()[:, None]).sum(1)


def _negative_scores(queries: Tensor, negatives: Tensor, of: Whose) -> Tensor:
    """(B, N) dot products with the negatives of the own pair, or (B, B * N) with those of all."""
    if of == "own":
        return torch.einsum("bd,bnd->bn", queries, negatives)
    return queries @ negatives.flatten(0, 1).T


def _others(matrix: Tensor) -> Tensor:
    """matrix (B, B) with -inf on its diagonal."""
    return matrix.masked_fill(torch.eye(len(matrix), dtype=torch.bool, device=matrix.device), -torch.inf)


def _margin_to_the_nearest(own: Tensor, others: Tensor, margin: float) -> Tensor:
    return relu(margin - own + others.amax(1))
