"""A dual encoder in training: what a step and a validation are, and what is noted down on the way.

A step's random numbers (dropout) follow from seed and step alone, so that a resumed run draws the same ones. The rate
of learning rises for `warmup` steps and then falls linearly towards zero over all epochs.
"""

import time
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from coderet.encoders.base import DualEncoder
from coderet.encoders.encoding import Role
from coderet.records import DataError
from coderet.training.losses import reciprocal_ranks
from coderet.training.objectives import Marks, Objective
from coderet.training.pairs import Batch, Side

LOSS, SCORE = "loss", "validation_mrr"
LOWEST_RATE = 0.01  # share of the learning rate that is left at the very end
STEPS_A_SEED = 10**9


class ContrastiveModule(LightningModule):
    """steps: of the whole training."""

    def __init__(
        self,
        encoder: DualEncoder,
        objective: Objective,
        *,
        seed: int,
        steps: int,
        learning_rate: float,
        warmup: int,
    ) -> None:
        super().__init__()
        self.encoder, self.objective = encoder, objective
        self.seed, self.steps, self.learning_rate, self.warmup = seed, steps, learning_rate, warmup
        self._reciprocal_ranks: list[Tensor] = []

    def training_step(self, batch: Batch, number: int) -> Tensor:
        torch.manual_seed(self.seed * STEPS_A_SEED + self.global_step)
        negatives = batch.negatives and self._vectors("document", batch.negatives).unflatten(
            0, (len(batch.queries.keys), -1)
        )
        marks = Marks(
            batch.queries.keys,
            batch.documents.keys,
            batch.negatives and batch.negatives.keys.view(len(batch.queries.keys), -1),
            batch.teacher,
        )
        queries, documents = self._vectors("query", batch.queries), self._vectors("document", batch.documents)
        loss = self.objective(queries, documents, negatives, marks)
        if not torch.isfinite(loss):
            raise DataError(
                f"the loss is {loss.item()} at step {self.global_step}; lower training.learning_rate "
                "or raise objective.temperature"
            )
        self.log(LOSS, loss.detach(), on_step=True, on_epoch=False, prog_bar=True)
        return loss

    def validation_step(self, batch: Batch, number: int) -> None:
        queries, documents = self._vectors("query", batch.queries), self._vectors("document", batch.documents)
        self._reciprocal_ranks.append(reciprocal_ranks(queries, documents))

    def _vectors(self, role: Role, side: Side) -> Tensor:
        vectors: Tensor = self.encoder(role, side.ids, side.mask)
        return vectors

    def on_validation_epoch_end(self) -> None:
        self.log(SCORE, torch.cat(self._reciprocal_ranks).mean(), prog_bar=True)
        self._reciprocal_ranks.clear()

    def configure_optimizers(self) -> Any:
        learned = [weights for weights in self.parameters() if weights.requires_grad]
        optimizer = torch.optim.Adam(learned, lr=self.learning_rate, fused=True)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self._share)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _share(self, step: int) -> float:
        return min(1.0, (step + 1) / max(1, self.warmup)) * max(LOWEST_RATE, 1.0 - step / self.steps)


class Curve(Callback):
    """A row at each epoch's end: step, epoch, seconds spent in training so far, the epoch's mean loss, the score."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self._losses, self._steps, self._before = 0.0, 0, 0.0
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds in training, those before a resume included."""
        return self._before + time.perf_counter() - self._start

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._start = time.perf_counter()

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, *_: Any) -> None:
        self._losses, self._steps = self._losses + float(outputs["loss"]), self._steps + 1

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.rows.append(
            {
                "step": trainer.global_step,
                "epoch": trainer.current_epoch,
                "seconds": self.seconds,
                "loss": self._losses / max(1, self._steps),
                "validation_mrr": float(trainer.callback_metrics[SCORE]),
            }
        )
        self._losses, self._steps = 0.0, 0

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "losses": self._losses, "steps": self._steps, "seconds": self.seconds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows, self._before = list(state["rows"]), state["seconds"]
        self._losses, self._steps = state["losses"], state["steps"]
