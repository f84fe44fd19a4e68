"""A dual encoder in training: what a step and a validation are.

A step takes a batch's own rows through the encoder, whole or in mini-batches (`gradient_cache`), joins them with those
of the other devices (`devices`), and makes the objective of all of them smaller. Lightning leaves the backward passes
to us (manual optimisation), because a batch in mini-batches has many. The random numbers of a step (dropout) follow
from seed, batch and rank alone, so that a resumed run draws the same ones.
"""

import contextlib
import copy
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_, get_total_norm

from coderet.encoders.encoding import Role
from coderet.records import DataError
from coderet.training import devices, gradient_cache, optimising
from coderet.training.curves import batch_mrr
from coderet.training.gradient_cache import Encoded, GradientCache
from coderet.training.laps import Laps
from coderet.training.losses import reciprocal_ranks
from coderet.training.objectives import Marks, Objective
from coderet.training.pairs import Batch, Side

LOSS, SCORE, IN_BATCH = "loss", "validation_mrr", "batch_mrr"
LOG_STEPS = 10  # steps between two points of a logged curve
STEPS_A_SEED = 10**9
STEPS_A_RANK = 10**7
ROWS_SHOWN = 8


class ContrastiveModule(LightningModule):
    """laps: the batches of the whole training. optimising: arguments of `optimising.optimiser` but module and fused.

    clip_norm: gradients are shortened to this length, 0 for as long as they come. with_base: an objective's marks hold
    the vectors of the encoder as it is now (`teacher_queries`, `teacher_documents`), computed batch by batch.
    """

    def __init__(
        self,
        encoder: Any,
        objective: Objective,
        *,
        seed: int,
        laps: Laps,
        cache: GradientCache,
        optimiser: Mapping[str, Any],
        schedule: str = "linear",
        warmup: float = 0,
        clip_norm: float = 0.0,
        with_base: bool = False,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.encoder, self.objective = encoder, objective
        self.seed, self.laps, self.cache, self.clip_norm = seed, laps, cache, clip_norm
        self.optimiser, self.schedule, self.warmup = optimiser, schedule, warmup
        self.gradient_norm: Tensor | None = None  # of the last step it was asked for
        # In a tuple, so that it is no part of this module: neither trained, nor saved, nor sent to other devices.
        self._base = (copy.deepcopy(encoder).eval().requires_grad_(False),) if with_base else ()
        self._reciprocal_ranks: list[Tensor] = []

    def on_fit_start(self) -> None:
        for base in self._base:
            base.to(self.device)

    def training_step(self, batch: Batch, number: int) -> dict[str, Any]:
        torch.manual_seed(
            self.seed * STEPS_A_SEED + devices.rank() * STEPS_A_RANK + self.current_epoch * len(self.laps) + number
        )
        optimizer, accumulate = self.optimizers(), self.laps.accumulate
        assert not isinstance(optimizer, list)
        ends_step = (number + 1) % accumulate == 0
        is_noted = ends_step and self.logs_next()
        if number % accumulate == 0:
            optimizer.zero_grad()
        sides = self._encoded(self.encoder, batch)
        vectors = [devices.gathered(side.vectors) for side in sides]
        marks = self._marks(batch)
        loss = self._objective(vectors, marks)
        if not torch.isfinite(loss):
            raise self._lost(f"the loss is {loss.item()}", number)
        for part, is_last in gradient_cache.parts(loss / accumulate, sides, self.objective.parameters()):
            with contextlib.nullcontext() if is_last and ends_step else self._without_exchange():
                self.manual_backward(part)
        if ends_step:
            self._number = number
            optimizer.step()
            scheduler = self.lr_schedulers()
            assert scheduler is not None and not isinstance(scheduler, list)
            scheduler.step()  # type: ignore[call-arg]
        figures = {LOSS: loss.detach()}
        if is_noted:
            figures[IN_BATCH] = batch_mrr(vectors[0].detach(), vectors[1].detach())
        self.log_dict(figures, on_step=True, on_epoch=False, prog_bar=True, logger=False)
        return {**figures, "pairs": len(marks.query_keys)}

    def logs_next(self) -> bool:
        """Whether the step that comes next, or is being taken, is one whose figures are noted down."""
        return self.global_step % LOG_STEPS == 0

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        scaled = getattr(self.trainer.precision_plugin, "scaler", None) is not None  # it skips such steps itself
        if not (self.clip_norm or self.logs_next()):
            return
        of_shards = getattr(self.trainer.model, "clip_grad_norm_", None)
        if of_shards:
            self.gradient_norm = of_shards(self.clip_norm or torch.inf)
        elif self.clip_norm:
            self.gradient_norm = clip_grad_norm_(self.parameters(), self.clip_norm)
        else:
            self.gradient_norm = get_total_norm(each.grad for each in self.parameters() if each.grad is not None)
        if not torch.isfinite(self.gradient_norm) and not scaled:
            raise self._lost(f"the gradient's length is {self.gradient_norm.item()}", self._number)

    def validation_step(self, batch: Batch, number: int) -> None:
        if not len(batch.queries.keys):  # fewer blocks than devices
            return
        queries, documents = (self._side(self.encoder, *side).vectors for side in _sides(batch)[:2])
        self._reciprocal_ranks.append(reciprocal_ranks(queries, documents))

    def on_validation_epoch_end(self) -> None:
        found = torch.zeros(2, dtype=torch.float64, device=self.device)
        for ranks in self._reciprocal_ranks:
            found += torch.stack([ranks.double().sum(), found.new_tensor(len(ranks))])
        self._reciprocal_ranks.clear()
        summed, queries = devices.total(found)
        score = (summed / queries).float()
        if not torch.isfinite(score):
            raise DataError(
                f"the encoder's vectors are not numbers after step {self.global_step}; lower training.learning_rate. "
                "The checkpoint before is kept"
            )
        self.log(SCORE, score, prog_bar=True)

    def configure_optimizers(self) -> Any:
        half = self.trainer.precision == "16-mixed"  # fused optimisers would unscale gradients too late to clip them
        optimizer = optimising.optimiser(self, **self.optimiser, fused=not half)
        return [optimizer], [optimising.schedule(optimizer, self.schedule, self.warmup, self.laps.steps)]

    def _encoded(self, encoder: Any, batch: Batch) -> list[Encoded]:
        """Own rows of queries, documents and, where there are any, negatives."""
        sides = _sides(batch)
        mini = self.cache.mini_batch if self.cache.is_needed(len(side.keys) for _, side in sides) else 0
        return [self._side(encoder, role, side, mini) for role, side in sides]

    def _side(self, encoder: Any, role: Role, side: Side, mini_batch: int = 0) -> Encoded:
        return Encoded(partial(encoder, role), side.ids, side.mask, mini_batch)

    def _objective(self, vectors: list[Tensor], marks: Marks) -> Tensor:
        queries, documents = vectors[:2]
        negatives = vectors[2].unflatten(0, (len(queries), -1)) if len(vectors) > 2 else None
        loss: Tensor = self.objective(queries, documents, negatives, marks)
        return loss

    def _marks(self, batch: Batch) -> Marks:
        """What is known of the pairs of all devices."""
        pairs = len(batch.queries.keys)
        own = Marks(
            batch.queries.keys,
            batch.documents.keys,
            batch.negatives and batch.negatives.keys.view(pairs, -1),
            batch.teacher,
        )
        for base in self._base:
            with torch.no_grad():
                queries, documents, *_ = (side.vectors for side in self._encoded(base, batch))
            own = own._replace(teacher_queries=queries, teacher_documents=documents)
        return Marks._make(None if each is None else devices.gathered(each) for each in own)

    def _without_exchange(self) -> AbstractContextManager[Any]:
        """Inside, gradients pile up on this device; those of all are exchanged once a step."""
        model = self.trainer.model
        return model.no_sync() if isinstance(model, DistributedDataParallel) else contextlib.nullcontext()

    def _lost(self, found: str, number: int) -> DataError:
        lap = self.current_epoch
        rows = self.laps.whole(lap, number)
        shown = ", ".join(map(str, rows[:ROWS_SHOWN])) + (", ..." if len(rows) > ROWS_SHOWN else "")
        return DataError(
            f"{found} at step {self.global_step}, batch {lap * len(self.laps) + number} "
            f"(epoch {self.laps.epoch(lap, number)}, pairs in rows {shown} of train.parquet); the last checkpoint is "
            "as it was; lower training.learning_rate, set training.clip_norm, or raise objective.temperature"
        )


def _sides(batch: Batch) -> list[tuple[Role, Side]]:
    sides: list[tuple[Role, Side]] = [("query", batch.queries), ("document", batch.documents)]
    return [*sides, ("document", batch.negatives)] if batch.negatives is not None else sides
