"""What training makes small: a table of objectives, each a module that may learn numbers of its own (a temperature).

>>> build({"kind": "info-nce", "temperature": 0.05, "matryoshka": [384, 128], "also": [{"kind": "keep", "weight": 2}]})

An objective sees a whole batch at once: queries (B, D) and documents (B, D), row i of one belonging to row i of the
other, N negatives a pair (B, N, D) or None, and marks, which say what of them is equal and what a teacher thinks of
them. It gives a scalar, the mean over pairs. Whatever the precision of the vectors, it is computed in float32 at least.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from coderet import registry
from coderet.records import DataError
from coderet.training import OBJECTIVES, losses
from coderet.training.losses import Whose

LOWEST_TEMPERATURE = 1e-4  # below, float32 knows no losses but 0 and infinity
LOWEST_LEARNED = 0.01  # scores are never multiplied by more than 100, as in CLIP (Radford et al., 2021)
UNIT_WITHIN = 0.01  # how far from 1 the length of a vector in bfloat16 may be that was normalised


class Marks(NamedTuple):
    """What is known of the pairs of a batch. Each field has a row a pair, so batches of several devices are joined.

    Keys are int64 and equal where texts are: query_keys and document_keys (B,), negative_keys (B, N).
    teacher: (B, 1 + N) a teacher's scores of each query's own document and its negatives, NaN where it has none.
    teacher_queries, teacher_documents: (B, D') a teacher's vectors. weights: (B,) what each pair counts, 1 if None.
    """

    query_keys: Tensor
    document_keys: Tensor
    negative_keys: Tensor | None = None
    teacher: Tensor | None = None
    teacher_queries: Tensor | None = None
    teacher_documents: Tensor | None = None
    weights: Tensor | None = None


class Objective(nn.Module):
    """What a new objective implements is `loss`; the constructor's keyword-only arguments are its params."""

    def forward(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        """A scalar, the mean loss of a pair; DataError if marks or negatives lack what this objective needs."""
        with torch.autocast(queries.device.type, enabled=False):  # half precision is for encoders
            negatives = None if negatives is None else _exact(negatives)
            return self.loss(_exact(queries), _exact(documents), negatives, marks)

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        raise NotImplementedError


class InfoNce(Objective):
    """`losses.info_nce`, with what is known to be no negative masked. temperature: scores are divided by it.

    learn_temperature: it is a parameter that never falls below LOWEST_LEARNED. negatives: whether a query's explicit
    negatives are those of its own pair or those of all pairs in the batch.
    """

    def __init__(
        self,
        *,
        temperature: float = 0.04,
        learn_temperature: bool = False,
        both_directions: bool = True,
        negatives: Whose = "all",
    ) -> None:
        super().__init__()
        lowest = LOWEST_LEARNED if learn_temperature else LOWEST_TEMPERATURE
        registry.check_range("fit.objective.temperature", temperature, lowest)
        self.log_temperature = nn.Parameter(torch.tensor(temperature).log(), requires_grad=learn_temperature)
        self.both_directions, self.negatives = both_directions, negatives

    @property
    def temperature(self) -> Tensor:
        if self.log_temperature.requires_grad:
            # Put back instead of clamped on the way: a clamp has no gradient that would ever lead out again.
            with torch.no_grad():
                self.log_temperature.clamp_(min=math.log(LOWEST_LEARNED))
        return self.log_temperature.exp()

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        known = None
        if negatives is not None and marks.negative_keys is not None:
            known = losses.known_answers(marks.query_keys, marks.document_keys, marks.negative_keys)
        each = losses.info_nce(
            queries,
            documents,
            self.temperature,
            same=losses.same_text(marks.query_keys, marks.document_keys),
            both_directions=self.both_directions,
            negatives=negatives,
            negatives_of=self.negatives,
            known=known,
            reduction="none",
        )
        return _mean(each, marks=marks)


class Softmax2019(Objective):
    """`losses.softmax_2019`: raw dot products, so it wants `encoder.normalise: false`."""

    def __init__(self) -> None:
        super().__init__()

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        _no_negatives(negatives, "softmax-2019")
        return _mean(losses.softmax_2019(queries, documents), marks=marks)


class Cosine2019(Objective):
    """`losses.cosine_2019`: cosines, whether or not the encoder normalises."""

    def __init__(self, *, margin: float = 1.0) -> None:
        super().__init__()
        self.margin = _margin(margin)

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        _no_negatives(negatives, "cosine-2019")
        return _mean(losses.cosine_2019(queries, documents, self.margin), marks=marks)


class MaxMargin2019(Objective):
    """`losses.max_margin_2019`: raw dot products, as softmax-2019."""

    def __init__(self, *, margin: float = 1.0) -> None:
        super().__init__()
        self.margin = _margin(margin)

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        _no_negatives(negatives, "max-margin-2019")
        return _mean(losses.max_margin_2019(queries, documents, self.margin), marks=marks)


class Triplet2019(Objective):
    """`losses.triplet_2019`: distances, as long as the encoder makes them."""

    def __init__(self, *, margin: float = 1.0) -> None:
        super().__init__()
        self.margin = _margin(margin)

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        _no_negatives(negatives, "triplet-2019")
        return _mean(losses.triplet_2019(queries, documents, self.margin), marks=marks)


class Kl(Objective):
    """`losses.distilled`: a teacher's scores of own document and explicit negatives, by marks.teacher.

    temperature divides the student's dot products, teacher_temperature the teacher's scores.
    """

    def __init__(self, *, temperature: float = 0.04, teacher_temperature: float = 0.04) -> None:
        super().__init__()
        self.temperature, self.teacher_temperature = _temperatures(temperature, teacher_temperature)

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        scores, teacher = _judged(queries, documents, negatives, marks, "kl")
        return _mean(*losses.distilled(scores, teacher, self.temperature, self.teacher_temperature), marks=marks)


class MarginMse(Objective):
    """`losses.margin_mse` of dot products. scale: the teacher's scores are multiplied by it, to be of the same size."""

    def __init__(self, *, scale: float = 1.0) -> None:
        super().__init__()
        registry.check_range("fit.objective.scale", scale, 1e-12)
        self.scale = scale

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        scores, teacher = _judged(queries, documents, negatives, marks, "margin-mse")
        return _mean(*losses.margin_mse(scores, teacher * self.scale), marks=marks)


class Keep(Objective):
    """The similarities of all queries to all documents of the batch stay what they are by a teacher's vectors.

    Such a teacher may be the base model of a fine-tuning: what it knew is then not unlearned. by: kl,
    `losses.distilled` of each row of dot products, and of each column too if both_directions; or mse, the mean squared
    difference.
    Dimensions need not be equal; temperatures are those of kl.
    """

    def __init__(
        self,
        *,
        by: Literal["kl", "mse"] = "kl",
        temperature: float = 0.04,
        teacher_temperature: float = 0.04,
        both_directions: bool = True,
    ) -> None:
        super().__init__()
        self.by, self.both_directions = by, both_directions
        self.temperature, self.teacher_temperature = _temperatures(temperature, teacher_temperature)

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        if marks.teacher_queries is None or marks.teacher_documents is None:
            raise DataError("objective keep wants a teacher's vectors and has none; set fit.training.teacher")
        scores = queries @ documents.T
        asked, answered = (each.detach().to(scores.dtype) for each in (marks.teacher_queries, marks.teacher_documents))
        teacher = asked @ answered.T
        if self.by == "mse":
            return _mean((scores - teacher).square().mean(1), marks=marks)
        each, taught = losses.distilled(scores, teacher, self.temperature, self.teacher_temperature)
        if self.both_directions:
            other, _ = losses.distilled(scores.T, teacher.T, self.temperature, self.teacher_temperature)
            each = (each + other) / 2
        return _mean(each, taught, marks=marks)


class Matryoshka(Objective):
    """The weighted sum of an objective over the first `sizes` dimensions of all vectors (Kusupati et al., 2022).

    Prefixes are made unit rows again where all vectors of the batch were unit rows, or of zeros. DataError if the
    vectors have fewer dimensions.
    """

    def __init__(self, inner: Objective, *, matryoshka: Sequence[int], matryoshka_weights: Sequence[float]) -> None:
        super().__init__()
        self.inner, self.sizes, self.weights = inner, tuple(matryoshka), tuple(matryoshka_weights)

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        dim = queries.shape[1]
        if max(self.sizes) > dim:
            raise DataError(
                f"objective.matryoshka names {max(self.sizes)} dimensions; the encoder's vectors have {dim}"
            )
        given = [queries, documents] if negatives is None else [queries, documents, negatives]
        renormalise = all(_are_unit(each) for each in given)
        total = queries.new_zeros(())
        for size, weight in zip(self.sizes, self.weights, strict=True):
            first, second, *rest = (
                losses.unit(each[..., :size]) if renormalise else each[..., :size] for each in given
            )
            total = total + weight * self.inner.loss(first, second, rest[0] if rest else None, marks)
        return total


class Sum(Objective):
    """Objectives by their weights."""

    def __init__(self, objectives: Sequence[Objective], weights: Sequence[float]) -> None:
        super().__init__()
        self.objectives, self.weights = nn.ModuleList(objectives), tuple(weights)

    def loss(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        terms = [
            weight * each.loss(queries, documents, negatives, marks)  # type: ignore[operator]
            for weight, each in zip(self.weights, self.objectives, strict=True)
        ]
        return torch.stack(terms).sum()


def build(settings: Mapping[str, Any], where: str = "fit.objective") -> Objective:
    """The objective of a map: `kind`, without which it is info-nce, and the arguments of that kind.

    Besides, whatever the kind: `matryoshka`, sizes of prefixes, with `matryoshka_weights`, each 1 if not given; and
    `also`, further such maps, each with a `weight`, 1 if not given, by which its loss is added.
    """
    given = dict(settings)
    further = given.pop("also", [])
    if not isinstance(further, list | tuple) or not all(isinstance(each, Mapping) for each in further):
        raise registry.BadValue(f"{where}.also is {further!r}; wanted a list of objectives, each a mapping")
    objectives, weights = [_term(given, where)], [1.0]
    for number, each in enumerate(further):
        place, term = f"{where}.also[{number}]", dict(each)
        weight = term.pop("weight", 1.0)
        registry.check_types(_weighted, {"weight": weight}, place)
        registry.check_range(f"{place}.weight", weight, 0)
        objectives.append(_term(term, place))
        weights.append(weight)
    return Sum(objectives, weights) if further else objectives[0]


def _term(given: dict[str, Any], where: str) -> Objective:
    kind = str(given.pop("kind", "info-nce"))
    made = registry.load(OBJECTIVES, kind, "objectives", f"{where}.kind")
    registry.fit_arguments(made, given, where, _shared)
    sizes, weights = given.pop("matryoshka", None), given.pop("matryoshka_weights", None)
    objective: Objective = made(**given)
    if sizes is None:
        if weights is not None:
            raise registry.BadValue(f"{where}.matryoshka_weights stands without {where}.matryoshka; give the sizes too")
        return objective
    weights = [1.0] * len(sizes) if weights is None else weights
    if not sizes or min(sizes) < 1 or len(set(sizes)) != len(sizes):
        raise registry.BadValue(f"{where}.matryoshka is {sizes!r}; wanted different numbers of dimensions from 1 on")
    if len(weights) != len(sizes) or min(weights) < 0:
        raise registry.BadValue(f"{where}.matryoshka_weights is {weights!r}; wanted {len(sizes)} numbers from 0 on")
    return Matryoshka(objective, matryoshka=sizes, matryoshka_weights=weights)


def _shared(*, matryoshka: Sequence[int] | None = None, matryoshka_weights: Sequence[float] | None = None) -> None:
    """What an objective may be given whatever its kind."""


def _weighted(*, weight: float = 1.0) -> None:
    """What an objective beside another may be given."""


def _exact(vectors: Tensor) -> Tensor:
    """Vectors in float32, or in float64 if they are so already."""
    return vectors if vectors.dtype == torch.float64 else vectors.float()


def _mean(each: Tensor, counts: Tensor | None = None, *, marks: Marks) -> Tensor:
    """The mean of losses (B,) by the weights of pairs, of those that count (B,) if not all do; 0 if none does."""
    weights = torch.ones_like(each) if marks.weights is None else marks.weights.to(each.dtype)
    weights = weights if counts is None else weights * counts
    total = weights.sum()
    return (each * weights).sum() / torch.where(total > 0, total, 1)


def _are_unit(vectors: Tensor) -> bool:
    lengths = torch.linalg.vector_norm(vectors.detach(), dim=-1)
    return bool((((lengths - 1).abs() <= UNIT_WITHIN) | (lengths == 0)).all())


def _judged(
    queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks, kind: str
) -> tuple[Tensor, Tensor]:
    """(B, 1 + N) scores of the student and of the teacher."""
    if negatives is None or marks.teacher is None:
        lacking = "explicit negatives" if negatives is None else "a teacher's scores of them"
        raise DataError(f"objective {kind} wants {lacking} and has none; name mined negatives in fit.pairs.negatives")
    scores = losses.candidate_scores(queries, documents, negatives)
    if marks.teacher.shape != scores.shape:
        raise DataError(
            f"objective {kind} has a teacher's scores of shape {tuple(marks.teacher.shape)}; wanted "
            f"{tuple(scores.shape)}, the own document's and each negative's"
        )
    return scores, marks.teacher.detach().to(scores.dtype)


def _no_negatives(negatives: Tensor | None, kind: str) -> None:
    if negatives is not None:
        raise DataError(f"objective {kind} has no place for explicit negatives; leave them out of fit.pairs")


def _margin(margin: float) -> float:
    registry.check_range("fit.objective.margin", margin, 0)
    return margin


def _temperatures(temperature: float, teacher_temperature: float) -> tuple[float, float]:
    registry.check_range("fit.objective.temperature", temperature, LOWEST_TEMPERATURE)
    registry.check_range("fit.objective.teacher_temperature", teacher_temperature, LOWEST_TEMPERATURE)
    return temperature, teacher_temperature
