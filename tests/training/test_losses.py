"""Case D8: two of three pairs share their document."""

from math import e, log

import pytest
import torch

from coderet.training.losses import info_nce, reciprocal_ranks, same_text

VECTORS = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # q1 = q2 = P = (1, 0), q3 = R = (0, 1)
SAME = same_text(torch.tensor([1, 2, 3]), torch.tensor([7, 7, 8]))


def test_pairs_that_share_a_document_are_no_negatives_of_each_other():
    losses = info_nce(VECTORS, VECTORS, 1.0, same=SAME, reduction="none")
    assert losses.tolist() == pytest.approx([log(1 + 1 / e), log(1 + 1 / e), log(1 + 2 / e)])
    assert losses.tolist() == pytest.approx([0.3133, 0.3133, 0.5514], abs=1e-4)


def test_without_a_mask_they_are():
    losses = info_nce(VECTORS, VECTORS, 1.0, reduction="none")
    assert losses.tolist() == pytest.approx([0.8620, 0.8620, 0.5514], abs=1e-4)


def test_pairs_that_share_a_query_are_no_negatives_either():
    assert same_text(torch.tensor([1, 1, 3]), torch.tensor([7, 8, 9])).tolist() == [
        [True, True, False],
        [True, True, False],
        [False, False, True],
    ]


def test_the_temperature_divides_the_scores():
    assert info_nce(VECTORS[1:], VECTORS[1:], 0.5).item() == pytest.approx(log(1 + e**-2))


def test_both_directions_are_the_mean_of_the_two():
    queries = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    documents = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    one, other = info_nce(queries, documents, 1.0), info_nce(documents, queries, 1.0)
    assert one.item() == pytest.approx((log(1 + 1 / e) + log(1 + e)) / 2)
    assert other.item() == pytest.approx(log(2))
    both = info_nce(queries, documents, 1.0, both_directions=True)
    assert both.item() == pytest.approx((one.item() + other.item()) / 2)


def test_a_masked_batch_gives_finite_gradients():
    vectors = VECTORS.clone().requires_grad_()
    everything = torch.ones(3, 3, dtype=torch.bool)
    info_nce(vectors, VECTORS, 0.05, same=everything, both_directions=True).backward()
    assert vectors.grad is not None and torch.isfinite(vectors.grad).all()


def test_the_rank_counts_documents_of_an_equal_score_first():
    documents = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 3.0]])
    assert reciprocal_ranks(queries, documents).tolist() == pytest.approx([1 / 2, 1 / 3, 1.0])
