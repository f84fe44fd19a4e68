"""Case D8, where two of three pairs share their document; then every loss against float64 loops written here.

NumPy's floats are the reference, one pair after the other as a formula reads; gradients are held against differences.
"""

from math import e, exp, log

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from coderet.training import losses
from coderet.training.losses import info_nce, known_answers, reciprocal_ranks, same_text

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


# Explicit negatives


def test_a_negative_that_is_the_own_document_or_that_of_an_equal_query_is_none():
    queries, documents = torch.tensor([1, 1, 3]), torch.tensor([7, 8, 9])
    negatives = torch.tensor([[7, 5], [9, 6], [8, 9]])
    known = known_answers(queries, documents, negatives)
    assert known.shape == (3, 3, 2)
    for asked in (0, 1):  # equal queries, answered by 7 and by 8
        assert known[asked].tolist() == [[True, False], [False, False], [True, False]]
    assert known[2].tolist() == [[False, False], [True, False], [False, True]]  # 9 answers it


@pytest.mark.parametrize("seed", range(5))
def test_known_answers_are_those_that_a_search_through_all_pairs_finds(seed: int):
    random = np.random.default_rng(seed)
    queries, documents, negatives = (random.integers(-3, 4, shape) for shape in (7, 7, (7, 3)))
    expected = [
        [[any(q == query and d == n for q, d in zip(queries, documents, strict=True)) for n in of] for of in negatives]
        for query in queries
    ]
    assert known_answers(*map(torch.as_tensor, (queries, documents, negatives))).tolist() == expected


def test_explicit_negatives_stand_beside_those_of_the_batch():
    negatives = torch.tensor([[[0.0, 1.0]], [[0.0, 1.0]], [[1.0, 0.0]]])
    own = info_nce(VECTORS, VECTORS, 1.0, same=SAME, negatives=negatives, negatives_of="own", reduction="none")
    assert own.tolist() == pytest.approx([log(1 + 2 / e), log(1 + 2 / e), log(1 + 3 / e)])
    every = info_nce(VECTORS, VECTORS, 1.0, same=SAME, negatives=negatives, reduction="none")
    assert every.tolist() == pytest.approx([log(2 + 3 / e), log(2 + 3 / e), log(3 + 3 / e)])


def test_in_case_d8_a_negative_that_is_the_shared_document_changes_nothing():
    negatives = torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]], [[1.0, 0.0]]])  # P for all; for q3 it is a negative
    known = known_answers(torch.tensor([1, 2, 3]), torch.tensor([7, 7, 8]), torch.tensor([[7], [7], [7]]))
    masked = {"same": SAME, "negatives": negatives, "known": known, "reduction": "none"}
    for whose, more in (("own", 1), ("all", 3)):
        found = info_nce(VECTORS, VECTORS, 1.0, negatives_of=whose, **masked)
        assert found.tolist() == pytest.approx([log(1 + 1 / e), log(1 + 1 / e), log(1 + (2 + more) / e)])


def test_documents_pick_their_queries_without_regard_to_explicit_negatives():
    negatives = torch.tensor([[[0.6, 0.8]]] * 3)
    both = info_nce(VECTORS, VECTORS, 1.0, both_directions=True, negatives=negatives)
    there = info_nce(VECTORS, VECTORS, 1.0, negatives=negatives)
    assert both.item() == pytest.approx((there + info_nce(VECTORS, VECTORS, 1.0)).item() / 2)


# Against loops

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def batch(seed: int = 0, pairs: int = 5, dim: int = 4, negatives: int = 3) -> Arrays:
    random = np.random.default_rng(seed)
    return tuple(random.normal(size=shape) for shape in ((pairs, dim), (pairs, dim), (pairs, negatives, dim)))  # type: ignore[return-value]


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.tensor(each, requires_grad=True) for each in arrays]


def softmax_loss(own: float, others: list[float]) -> float:
    return log(sum(exp(each - own) for each in [own, *others]))


def test_info_nce_is_what_a_loop_over_queries_gives():
    queries, documents, negatives = batch()
    expected = []
    for i, query in enumerate(queries):
        others = [query @ documents[j] / 0.7 for j in range(5) if j not in (i, (i + 1) % 5)]
        others += [query @ negatives[j, n] / 0.7 for j in range(5) for n in range(3) if (j, n) != (i, 0)]
        back = [queries[j] @ documents[i] / 0.7 for j in range(5) if j not in (i, (i - 1) % 5)]
        own = query @ documents[i] / 0.7
        expected.append((softmax_loss(own, others) + softmax_loss(own, back)) / 2)
    same = torch.eye(5, dtype=torch.bool).roll(1, 1)
    known = torch.zeros(5, 5, 3, dtype=torch.bool)
    known[torch.arange(5), torch.arange(5), 0] = True
    q, d, n = tensors(queries, documents, negatives)
    settings = {"same": same, "both_directions": True, "known": known, "reduction": "none"}
    assert info_nce(q, d, 0.7, negatives=n, **settings).tolist() == pytest.approx(expected, rel=1e-12)
    temperature = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda *given: info_nce(*given[:3], negatives=given[3], **settings), (q, d, temperature, n))


def test_softmax_of_2019_is_cross_entropy_of_dot_products():
    queries, documents, _ = batch()
    expected = [
        softmax_loss(query @ documents[i], [query @ documents[j] for j in range(5) if j != i])
        for i, query in enumerate(queries)
    ]
    given = tensors(queries, documents)
    assert losses.softmax_2019(*given).tolist() == pytest.approx(expected, rel=1e-12)
    assert gradcheck(losses.softmax_2019, given)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return one @ other / (np.linalg.norm(one) * np.linalg.norm(other))


@pytest.mark.parametrize("seed", range(4))
def test_cosine_of_2019_compares_with_the_nearest_other_document_and_never_with_less_than_0(seed: int):
    queries, documents, _ = batch(seed, pairs=3)
    expected = [
        max(
            0.0,
            1 - cosine(query, documents[i]) + max(max(0.0, cosine(query, documents[j])) for j in range(3) if j != i),
        )
        for i, query in enumerate(queries)
    ]
    given = tensors(queries, documents)
    assert losses.cosine_2019(*given, 1.0).tolist() == pytest.approx(expected, rel=1e-12)
    assert gradcheck(lambda q, d: losses.cosine_2019(q, d, 1.0), given)


def test_max_margin_of_2019_does_the_same_with_log_probabilities():
    queries, documents, _ = batch(seed=3)
    documents[0] = 5 * queries[0]
    expected = []
    for i, query in enumerate(queries):
        scores = documents @ query
        logs = scores - log(np.exp(scores).sum())
        expected.append(max(0.0, 1 - logs[i] + max(logs[j] for j in range(5) if j != i)))
    assert min(expected) == 0 < max(expected)
    given = tensors(queries, documents)
    assert losses.max_margin_2019(*given, 1.0).tolist() == pytest.approx(expected, rel=1e-12)
    assert gradcheck(lambda q, d: losses.max_margin_2019(q, d, 1.0), given)


def test_triplet_of_2019_is_the_mean_over_the_documents_that_are_still_too_near():
    queries, documents, _ = batch(seed=2)
    documents[4] = queries[4]  # at no distance
    expected = []
    for i, query in enumerate(queries):
        far = [np.linalg.norm(query - document) for document in documents]
        active = [far[i] - far[j] + 0.5 for j in range(5) if j != i and far[i] - far[j] + 0.5 > 0]
        expected.append(sum(active) / len(active) if active else 0.0)
    assert min(expected) == 0 < max(expected)
    given = tensors(queries, documents)
    found = losses.triplet_2019(*given, 0.5)
    assert found.tolist() == pytest.approx(expected, rel=1e-12)
    assert gradcheck(lambda q, d: losses.triplet_2019(q, d, 0.5), tensors(*batch(seed=2)[:2]))


def test_a_student_is_as_far_from_its_teacher_as_their_distributions_diverge():
    random = np.random.default_rng(1)
    scores, teacher = random.normal(size=(3, 4)), random.normal(size=(3, 4))
    expected = []
    for mine, wanted in zip(scores / 0.5, teacher / 2.0, strict=True):
        p, q = np.exp(wanted) / np.exp(wanted).sum(), np.exp(mine) / np.exp(mine).sum()
        expected.append(sum(a * log(a / b) for a, b in zip(p, q, strict=True)))
    [given] = tensors(scores)
    found, taught = losses.distilled(given, torch.tensor(teacher), 0.5, 2.0)
    assert found.tolist() == pytest.approx(expected, rel=1e-12) and taught.all()
    assert gradcheck(lambda student: losses.distilled(student, torch.tensor(teacher), 0.5, 2.0)[0], [given])


def test_a_teacher_without_an_opinion_of_a_candidate_leaves_it_out():
    scores = torch.tensor([[1.0, 2.0, 9.0], [4.0, 5.0, 6.0], [4.0, 5.0, 6.0]], requires_grad=True)
    nan = torch.nan
    teacher = torch.tensor([[3.0, 1.0, nan], [nan, 2.0, nan], [nan, nan, nan]])
    found, taught = losses.distilled(scores, teacher, 1.0, 1.0)
    [alone], _ = losses.distilled(scores[:1, :2], teacher[:1, :2], 1.0, 1.0)
    assert found.tolist() == pytest.approx([alone.item(), 0, 0]) and taught.tolist() == [True, False, False]
    found.sum().backward()
    assert scores.grad is not None and scores.grad[:, 2].tolist() == [0, 0, 0] and scores.grad[1:].abs().sum() == 0
    assert scores.grad[0, :2].abs().min() > 0 and scores.grad.isfinite().all()


def test_a_teacher_who_is_certain_gives_info_nce():
    queries, documents, _ = map(torch.tensor, batch())
    certain = torch.eye(5, dtype=torch.float64)
    found, _ = losses.distilled(queries @ documents.T, certain, 0.3, 1e-4)
    assert torch.allclose(found, info_nce(queries, documents, 0.3, reduction="none"), rtol=1e-12)


def test_margins_are_compared_with_the_teachers_and_what_he_leaves_open_is_left_out():
    scores = torch.tensor([[3.0, 1.0, 0.0], [1.0, 2.0, 5.0], [1.0, 2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    teacher = torch.tensor([[5.0, 4.0, 0.0], [2.0, torch.nan, 1.0], [torch.nan, 1.0, 2.0]], dtype=torch.float64)
    found, taught = losses.margin_mse(scores, teacher)
    assert found.tolist() == [((2 - 1) ** 2 + (3 - 5) ** 2) / 2, (-4 - 1) ** 2, 0]
    assert taught.tolist() == [True, True, False]
    assert gradcheck(lambda student: losses.margin_mse(student, teacher)[0], [scores])


def test_own_document_and_own_negatives_are_scored_by_dot_products():
    queries, documents, negatives = batch()
    expected = [[q @ each for each in (d, *n)] for q, d, n in zip(queries, documents, negatives, strict=True)]
    assert np.allclose(losses.candidate_scores(*map(torch.tensor, (queries, documents, negatives))), expected)


def test_a_row_of_zeros_has_no_direction_and_finite_gradients():
    vectors = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    assert losses.unit(vectors).tolist() == pytest.approx(np.array([[0.6, 0.8], [0, 0]]))
    losses.unit(vectors).sum().backward()
    assert vectors.grad is not None and vectors.grad.abs().max() <= 1


PAIRWISE = {
    "softmax": losses.softmax_2019,
    "cosine": lambda q, d: losses.cosine_2019(q, d, 1.0),
    "max-margin": lambda q, d: losses.max_margin_2019(q, d, 1.0),
    "triplet": lambda q, d: losses.triplet_2019(q, d, 1.0),
    "info-nce": lambda q, d: info_nce(q, d, 0.05, both_directions=True, reduction="none"),
}


@pytest.mark.parametrize("name", PAIRWISE)
def test_vectors_of_zeros_give_finite_losses_and_gradients(name: str):
    given = tensors(np.zeros((3, 4)), np.zeros((3, 4)))
    found = PAIRWISE[name](*given)
    found.sum().backward()
    assert found.isfinite().all() and all(each.grad.isfinite().all() for each in given)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "expected"), [("softmax", 0), ("max-margin", 0), ("triplet", 0), ("info-nce", 0), ("cosine", 1 - 0.6)]
)
def test_a_lone_pair_has_nothing_to_be_told_from(name: str, expected: float):
    given = tensors(np.array([[1.0, 0.0]]), np.array([[0.6, 0.8]]))
    found = PAIRWISE[name](*given)
    found.sum().backward()
    assert found.tolist() == pytest.approx([expected])
    assert all(each.grad.isfinite().all() for each in given)  # type: ignore[union-attr]
