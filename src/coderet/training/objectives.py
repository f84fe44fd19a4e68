"""What training makes small: a table of objectives, each a module that may learn numbers of its own (a temperature).

An objective sees a whole batch at once: queries (B, D) and documents (B, D), row i of one belonging to row i of the
other, N negatives a pair (B, N, D) or None, and marks, which say what of them is equal and what a teacher thinks of
them. It gives a scalar, the mean over pairs.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from coderet import registry
from coderet.training import OBJECTIVES
from coderet.training.losses import info_nce, same_text

LOWEST_TEMPERATURE = 1e-4  # below, float32 knows no losses but 0 and infinity


class Marks(NamedTuple):
    """Keys are int64 and equal where texts are: query_keys and document_keys (B,), negative_keys (B, N).

    teacher: (B, 1 + N) a teacher's scores of each query's own document and its negatives, NaN where it has none.
    teacher_queries, teacher_documents: (B, D') a teacher's vectors.
    """

    query_keys: Tensor
    document_keys: Tensor
    negative_keys: Tensor | None = None
    teacher: Tensor | None = None
    teacher_queries: Tensor | None = None
    teacher_documents: Tensor | None = None


class Objective(nn.Module):
    """What a new objective implements; the constructor's keyword-only arguments are its params."""

    def forward(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        raise NotImplementedError


class InfoNce(Objective):
    """`losses.info_nce`. temperature: scores are divided by it; learned if learn_temperature."""

    def __init__(
        self, *, temperature: float = 0.04, learn_temperature: bool = False, both_directions: bool = True
    ) -> None:
        super().__init__()
        registry.check_range("fit.objective.temperature", temperature, LOWEST_TEMPERATURE)
        self.log_temperature = nn.Parameter(torch.tensor(temperature).log(), requires_grad=learn_temperature)
        self.both_directions = both_directions

    def forward(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        return info_nce(
            queries,
            documents,
            self.log_temperature.exp(),
            same=same_text(marks.query_keys, marks.document_keys),
            both_directions=self.both_directions,
        )


def build(settings: Mapping[str, Any], where: str = "fit.objective") -> Objective:
    """The objective of a flat map: `kind` and the arguments of that kind; without a kind it is info-nce."""
    given = dict(settings)
    kind = str(given.pop("kind", "info-nce"))
    made = registry.load(OBJECTIVES, kind, "objectives", f"{where}.kind")
    objective: Objective = made(**registry.fit_arguments(made, given, where))
    return objective
