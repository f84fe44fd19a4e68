"""Objectives as params.yaml names them, held against sentence-transformers' losses where it has the same."""

from collections.abc import Callable
from math import exp, log
from typing import Any

import pytest
import torch
from sentence_transformers.sentence_transformer import losses as theirs
from sentence_transformers.util import pairwise_cos_sim
from torch import Tensor, nn

from coderet.records import DataError
from coderet.registry import BadValue, UnknownName
from coderet.training import OBJECTIVES
from coderet.training.losses import info_nce, unit
from coderet.training.objectives import LOWEST_LEARNED, Keep, Marks, build

PAIRS, DIM, NEGATIVES = 6, 8, 2


def different(**fields: Any) -> Marks:
    """Marks of PAIRS pairs that have nothing in common."""
    keys = torch.arange(PAIRS)
    return Marks(keys, keys + 100, keys[:, None] * 10 + torch.arange(NEGATIVES) + 1000, **fields)


def vectors(*shape: int, seed: int = 0, of_unit: bool = True) -> Tensor:
    made = torch.randn(*shape, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return unit(made) if of_unit else made


QUERIES, DOCUMENTS, HARD = vectors(PAIRS, seed=1), vectors(PAIRS, seed=2), vectors(PAIRS, NEGATIVES, seed=3)
TEACHER = torch.randn(PAIRS, 1 + NEGATIVES, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
RAW_QUERIES, RAW_DOCUMENTS = vectors(PAIRS, seed=1, of_unit=False), vectors(PAIRS, seed=2, of_unit=False)


def loss(settings: dict[str, Any], negatives: Tensor | None = None, marks: Marks | None = None) -> float:
    return build(settings)(QUERIES, DOCUMENTS, negatives, marks or different()).item()


# Against sentence-transformers, the same vectors in


class Given(nn.Sequential):
    """A model whose features are its vectors."""

    def __init__(self) -> None:
        super().__init__(nn.Identity())

    def get_embedding_dimension(self) -> int:
        return DIM

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features["vectors"]}


def of_theirs(made: nn.Module, labels: Tensor | None = None, hard: bool = False) -> float:
    columns = [QUERIES, DOCUMENTS, *(HARD.unbind(1) if hard else ())]
    return made([{"vectors": each} for each in columns], labels).item()


SYMMETRIC = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(("both", "settings"), [(False, {}), (True, SYMMETRIC)])
def test_info_nce_is_their_multiple_negatives_ranking_loss(both: bool, settings: dict[str, Any], hard: bool):
    expected = of_theirs(theirs.MultipleNegativesRankingLoss(Given(), scale=20.0, **settings), hard=hard)
    ours = {"temperature": 0.05, "both_directions": both}
    assert loss(ours, HARD if hard else None) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("hard", [False, True])
def test_info_nce_is_their_loss_with_cached_gradients_too(hard: bool):
    cached = theirs.CachedMultipleNegativesRankingLoss(Given(), scale=20.0, mini_batch_size=2)
    columns = [[QUERIES], [DOCUMENTS], *([each] for each in (HARD.unbind(1) if hard else ()))]
    expected = cached.calculate_loss(columns).item()
    ours = {"temperature": 0.05, "both_directions": False}
    assert loss(ours, HARD if hard else None) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 0.25]])
def test_matryoshka_is_theirs(weights: list[float] | None):
    sizes = [8, 5, 2]
    model = Given()
    inner = theirs.MultipleNegativesRankingLoss(model, scale=20.0)
    expected = of_theirs(theirs.MatryoshkaLoss(model, inner, sizes, weights))
    ours = {"temperature": 0.05, "both_directions": False, "matryoshka": sizes}
    assert loss(ours | ({"matryoshka_weights": weights} if weights else {})) == pytest.approx(expected, rel=1e-6)


def test_margin_mse_is_theirs():
    expected = of_theirs(theirs.MarginMSELoss(Given()), TEACHER, hard=True)
    assert loss({"kind": "margin-mse"}, HARD, different(teacher=TEACHER)) == pytest.approx(expected, rel=1e-6)


def test_kl_is_theirs_less_the_square_of_the_temperature():
    settings = {"student_temperature": 0.5, "teacher_temperature": 2.0}
    expected = of_theirs(theirs.DistillKLDivLoss(Given(), pairwise_cos_sim, **settings), TEACHER, hard=True)
    ours = loss({"kind": "kl", "temperature": 0.5, "teacher_temperature": 2.0}, HARD, different(teacher=TEACHER))
    assert ours * 0.5**2 == pytest.approx(expected, rel=1e-6)


# False negatives: case D8


def test_case_d8_in_the_objective():
    same = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    marks = Marks(torch.tensor([1, 2, 3]), torch.tensor([7, 7, 8]))
    settings = {"temperature": 1.0, "both_directions": False}
    found = build(settings)(same, same, None, marks)
    assert found.item() == pytest.approx((2 * log(1 + exp(-1)) + log(1 + 2 * exp(-1))) / 3)
    negatives = torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]], [[1.0, 0.0]]])
    shared = marks._replace(negative_keys=torch.tensor([[7], [7], [8]]))
    hard = build(settings)(same, same, negatives, shared)
    # For q3 the two of key 7 are negatives, for q1 and q2 the one of key 8.
    assert hard.item() == pytest.approx((2 * log(2 + exp(-1)) + log(1 + 4 * exp(-1))) / 3)
    own = build(settings | {"negatives": "own"})(same, same, negatives, shared)
    assert own.item() == pytest.approx(found.item())  # all are answers to their own query


# Matryoshka


def test_prefixes_of_unit_rows_are_unit_rows_again_and_others_are_left_as_they_are():
    settings = {"temperature": 0.1, "both_directions": False}
    short = build(settings | {"matryoshka": [3]})
    renormalised = info_nce(unit(QUERIES[:, :3]), unit(DOCUMENTS[:, :3]), 0.1)
    assert short(QUERIES, DOCUMENTS, None, different()).item() == pytest.approx(renormalised.item())
    as_they_are = info_nce(RAW_QUERIES[:, :3], RAW_DOCUMENTS[:, :3], 0.1)
    assert short(RAW_QUERIES, RAW_DOCUMENTS, None, different()).item() == pytest.approx(as_they_are.item())


def test_unit_rows_in_bfloat16_count_as_such_and_so_does_a_row_of_zeros():
    queries = QUERIES.bfloat16()
    queries[0] = 0
    found = build({"matryoshka": [3]})(queries, DOCUMENTS.bfloat16(), None, different())
    expected = build({})(unit(queries[:, :3].float()), unit(DOCUMENTS.bfloat16()[:, :3].float()), None, different())
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)


@pytest.mark.parametrize("kind", [each for each in OBJECTIVES if each not in ("kl", "margin-mse")])
def test_every_kind_sums_what_it_gives_over_the_prefixes(kind: str):
    marks = different(teacher_queries=RAW_QUERIES, teacher_documents=RAW_DOCUMENTS)
    one = build({"kind": kind})
    expected = sum(
        weight * one(unit(QUERIES[:, :size]), unit(DOCUMENTS[:, :size]), None, marks).item()
        for size, weight in ((8, 1.0), (4, 0.5))
    )
    found = build({"kind": kind, "matryoshka": [8, 4], "matryoshka_weights": [1, 0.5]})
    assert found(QUERIES, DOCUMENTS, None, marks).item() == pytest.approx(expected)


def test_negatives_are_cut_to_the_prefix_too():
    found = loss({"kind": "margin-mse", "matryoshka": [3]}, HARD, different(teacher=TEACHER))
    cut = build({"kind": "margin-mse"})(
        unit(QUERIES[:, :3]), unit(DOCUMENTS[:, :3]), unit(HARD[..., :3]), different(teacher=TEACHER)
    )
    assert found == pytest.approx(cut.item())


def test_more_dimensions_than_there_are_are_refused():
    with pytest.raises(DataError, match="names 9 dimensions; the encoder's vectors have 8"):
        loss({"matryoshka": [9, 4]})


# Teachers


def test_keep_is_zero_for_the_teacher_itself_and_grows_with_the_distance_from_him():
    for by in ("kl", "mse"):
        keep = Keep(by=by)
        himself = different(teacher_queries=QUERIES, teacher_documents=DOCUMENTS)
        assert keep(QUERIES, DOCUMENTS, None, himself).item() == pytest.approx(0, abs=1e-12)
        away = [
            keep(unit(QUERIES + step * RAW_DOCUMENTS.roll(1, 0)), DOCUMENTS, None, himself).item()
            for step in (0.1, 0.5, 2)
        ]
        assert 0 < away[0] < away[1] < away[2]


def test_keep_compares_similarities_of_all_queries_to_all_documents_whatever_the_teachers_dimension():
    queries, documents = QUERIES[:, :3], DOCUMENTS[:, :3]
    marks = different(teacher_queries=queries, teacher_documents=documents)
    squares = [
        [(float(q @ d) - float(p @ e)) ** 2 for d, e in zip(DOCUMENTS, documents, strict=True)]
        for q, p in zip(QUERIES, queries, strict=True)
    ]
    assert loss({"kind": "keep", "by": "mse"}, None, marks) == pytest.approx(sum(map(sum, squares)) / PAIRS**2)
    divergences = []
    for student, teacher in (
        (QUERIES @ DOCUMENTS.T, queries @ documents.T),
        (DOCUMENTS @ QUERIES.T, documents @ queries.T),
    ):
        p, q = (teacher / 0.2).softmax(1), (student / 0.1).softmax(1)
        divergences.append((p * (p / q).log()).sum(1).mean().item())
    settings = {"kind": "keep", "temperature": 0.1, "teacher_temperature": 0.2}
    assert loss(settings, None, marks) == pytest.approx(sum(divergences) / 2)
    assert loss(settings | {"both_directions": False}, None, marks) == pytest.approx(divergences[0])


def test_pairs_that_a_teacher_has_not_scored_are_left_out_of_the_mean():
    teacher = TEACHER.clone()
    teacher[2:] = torch.nan
    for kind in ("kl", "margin-mse"):
        few = Marks(*(each[:2] for each in different()[:3]), teacher=teacher[:2])  # type: ignore[index]
        expected = build({"kind": kind})(QUERIES[:2], DOCUMENTS[:2], HARD[:2], few)
        assert loss({"kind": kind}, HARD, different(teacher=teacher)) == pytest.approx(expected.item())


def test_a_batch_without_any_opinion_teaches_nothing():
    queries = QUERIES.clone().requires_grad_()
    nothing = different(teacher=torch.full((PAIRS, 1 + NEGATIVES), torch.nan))
    for kind in ("kl", "margin-mse"):
        found = build({"kind": kind})(queries, DOCUMENTS, HARD, nothing)
        found.backward()
        assert found.item() == 0 and queries.grad is not None and queries.grad.abs().sum() == 0


def test_a_vector_that_is_not_a_number_gives_no_number_and_hides_nowhere():
    broken = QUERIES.clone()
    broken[0, 0] = torch.nan
    marks = different(teacher=TEACHER, teacher_queries=QUERIES, teacher_documents=DOCUMENTS)
    for kind in OBJECTIVES:
        hard = HARD if kind in ("kl", "margin-mse") else None
        assert build({"kind": kind})(broken, DOCUMENTS, hard, marks).isnan(), kind


@pytest.mark.parametrize(
    ("kind", "negatives", "lacking"),
    [
        ("kl", None, "explicit negatives"),
        ("margin-mse", None, "explicit negatives"),
        ("kl", HARD, "a teacher's scores"),
        ("margin-mse", HARD, "a teacher's scores"),
        ("keep", None, "a teacher's vectors"),
    ],
)
def test_an_objective_that_lacks_its_teacher_says_so(kind: str, negatives: Tensor | None, lacking: str):
    with pytest.raises(DataError, match=f"objective {kind} wants {lacking}"):
        loss({"kind": kind}, negatives)


def test_scores_of_another_shape_are_refused():
    with pytest.raises(DataError, match=r"of shape \(6, 2\); wanted \(6, 3\)"):
        loss({"kind": "kl"}, HARD, different(teacher=TEACHER[:, 1:]))


@pytest.mark.parametrize("kind", [each for each in OBJECTIVES if each.endswith("2019")])
def test_the_losses_of_2019_have_no_place_for_explicit_negatives(kind: str):
    with pytest.raises(DataError, match=f"{kind} has no place"):
        loss({"kind": kind}, HARD)


# Sums and weights


def test_also_adds_further_objectives_by_their_weights():
    marks = different(teacher=TEACHER, teacher_queries=RAW_QUERIES, teacher_documents=RAW_DOCUMENTS)
    also = [{"kind": "kl", "weight": 0.5}, {"kind": "keep", "by": "mse", "matryoshka": [4], "weight": 3}]
    expected = (
        loss({}, HARD, marks)
        + 0.5 * loss({"kind": "kl"}, HARD, marks)
        + 3 * loss({"kind": "keep", "by": "mse", "matryoshka": [4]}, HARD, marks)
    )
    assert loss({"also": also}, HARD, marks) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [each for each in OBJECTIVES if each not in ("kl", "margin-mse", "keep")])
def test_a_pair_of_weight_two_counts_twice_in_the_mean(kind: str):
    weights = torch.tensor([2.0, 0, 1, 0, 0, 0])
    found = loss({"kind": kind}, None, different(weights=weights))
    only = [loss({"kind": kind}, None, different(weights=torch.eye(PAIRS)[i])) for i in (0, 2)]
    assert found == pytest.approx((2 * only[0] + only[1]) / 3)
    assert loss({"kind": kind}, None, different(weights=torch.ones(PAIRS))) == pytest.approx(loss({"kind": kind}))


# The temperature


def test_a_learned_temperature_never_falls_below_a_hundredth_and_can_rise_again():
    objective = build({"temperature": 0.011, "learn_temperature": True})
    sharp = torch.eye(PAIRS, DIM)
    optimizer = torch.optim.SGD(objective.parameters(), lr=1e4)
    for _ in range(3):
        optimizer.zero_grad()
        objective(0.05 * sharp, 0.05 * sharp, None, different()).backward()  # all right already: colder is better
        optimizer.step()
        assert objective.temperature.item() == pytest.approx(LOWEST_LEARNED)
    optimizer.zero_grad()
    objective(sharp, sharp.roll(1, 0), None, different()).backward()  # all wrong: warmer is better
    optimizer.param_groups[0]["lr"] = 1e-3
    optimizer.step()
    assert objective.temperature.item() > LOWEST_LEARNED


def test_two_losses_before_one_backward_may_share_a_learned_temperature():
    objective = build({"temperature": 0.05, "learn_temperature": True, "matryoshka": [8, 4]})
    first, second = (objective(QUERIES, DOCUMENTS, None, different()) for _ in range(2))
    (first + second).backward()
    [temperature] = objective.parameters()
    both = temperature.grad.item()  # type: ignore[union-attr]
    temperature.grad = None
    objective(QUERIES, DOCUMENTS, None, different()).backward()
    assert both == pytest.approx(2 * temperature.grad.item())  # type: ignore[union-attr]


def test_a_fixed_temperature_is_not_learned():
    assert [each.requires_grad for each in build({}).parameters()] == [False]


# Precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", OBJECTIVES)
def test_half_precision_is_left_before_anything_is_computed(kind: str, dtype: torch.dtype):
    hard = HARD if kind in ("kl", "margin-mse") else None
    marks = different(teacher=TEACHER, teacher_queries=QUERIES, teacher_documents=DOCUMENTS)
    halves = [each if each is None else each.to(dtype) for each in (QUERIES, DOCUMENTS.flip(0), hard)]
    exact = [each if each is None else each.float() for each in halves]
    with torch.autocast("cpu", torch.bfloat16):
        found = build({"kind": kind})(*halves, marks)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(build({"kind": kind})(*exact, marks).item(), rel=1e-6)


# What params.yaml may say


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"kind": "infonce"}, UnknownName, "Did you mean info-nce"),
        ({"temprature": 1.0}, UnknownName, "Did you mean temperature"),
        ({"weight": 2.0}, UnknownName, "fit.objective.weight is not a setting"),
        ({"temperature": 0}, BadValue, "temperature is 0; wanted a number from 0.0001"),
        ({"temperature": 0.005, "learn_temperature": True}, BadValue, "from 0.01 on"),
        ({"negatives": "some"}, BadValue, "negatives is 'some'; wanted own, all"),
        ({"kind": "softmax-2019", "margin": 1.0}, UnknownName, "known settings: matryoshka"),
        ({"kind": "cosine-2019", "margin": -1.0}, BadValue, "margin is -1.0"),
        ({"kind": "kl", "teacher_temperature": 0.0}, BadValue, "teacher_temperature is 0.0"),
        ({"kind": "keep", "by": "cosine"}, BadValue, "wanted kl, mse"),
        ({"kind": "margin-mse", "scale": 0}, BadValue, "scale is 0"),
        ({"matryoshka": []}, BadValue, "from 1 on"),
        ({"matryoshka": [4, 4]}, BadValue, "different numbers"),
        ({"matryoshka": [4, 0]}, BadValue, "from 1 on"),
        ({"matryoshka": 4}, BadValue, "wanted a list"),
        ({"matryoshka": [4], "matryoshka_weights": [1, 2]}, BadValue, "wanted 1 numbers"),
        ({"matryoshka": [4], "matryoshka_weights": [-1]}, BadValue, "from 0 on"),
        ({"matryoshka_weights": [1]}, BadValue, "give the sizes too"),
        ({"also": {"kind": "kl"}}, BadValue, "wanted a list of objectives"),
        ({"also": [{"kind": "kl", "weight": -1}]}, BadValue, r"also\[0\].weight is -1"),
        ({"also": [{"kind": "kl", "weight": "half"}]}, BadValue, r"also\[0\].weight is 'half'"),
        ({"also": [{}, {"kind": "kll"}]}, UnknownName, r"also\[1\].kind is 'kll'"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        build(settings)


def test_building_leaves_the_params_as_they_are():
    settings: dict[str, Any] = {"kind": "info-nce", "matryoshka": [8], "also": [{"kind": "keep", "weight": 2}]}
    build(settings)
    assert settings == {"kind": "info-nce", "matryoshka": [8], "also": [{"kind": "keep", "weight": 2}]}


@pytest.mark.parametrize("made", [lambda: build({}), lambda: build({"also": [{"kind": "keep"}]})])
def test_one_pair_is_a_batch(made: Callable[[], nn.Module]):
    key = torch.tensor([1])
    marks = Marks(key, key, teacher_queries=QUERIES[:1], teacher_documents=DOCUMENTS[:1])
    queries = QUERIES[:1].clone().requires_grad_()
    found = made()(queries, DOCUMENTS[:1], None, marks)
    found.backward()
    assert found.item() == 0 and queries.grad is not None and queries.grad.isfinite().all()
