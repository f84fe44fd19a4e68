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
from coderet.records import DataError
from coderet.training.losses import info_nce, reciprocal_ranks, same_text
from coderet.training.pairs import Batch

LOSS, SCORE = "loss", "validation_mrr"
LOWEST_RATE = 0.01  # share of the learning rate that is left at the very end
STEPS_A_SEED = 10**9


class ContrastiveModule(LightningModule):
    """temperature: scores are divided by it; learned if learn_temperature. steps: of the whole training."""

    def __init__(
        self,
        encoder: DualEncoder,
        *,
        seed: int,
        steps: int,
        learning_rate: float,
        warmup: int,
        temperature: float,
        learn_temperature: bool,
        both_directions: bool,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.log_temperature = torch.nn.Parameter(torch.tensor(temperature).log(), requires_grad=learn_temperature)
        self.seed, self.steps, self.learning_rate, self.warmup = seed, steps, learning_rate, warmup
        self.both_directions = both_directions
        self._reciprocal_ranks: list[Tensor] = []

    def training_step(self, batch: Batch, number: int) -> Tensor:
        torch.manual_seed(self.seed * STEPS_A_SEED + self.global_step)
        loss = info_nce(
            self.encoder("query", batch.query_ids, batch.query_mask),
            self.encoder("document", batch.document_ids, batch.document_mask),
            self.log_temperature.exp(),
            same=same_text(batch.query_keys, batch.document_keys),
            both_directions=self.both_directions,
        )
        if not torch.isfinite(loss):
            raise DataError(
                f"the loss is {loss.item()} at step {self.global_step}; lower training.learning_rate "
                "or raise training.temperature"
            )
        self.log(LOSS, loss.detach(), on_step=True, on_epoch=False, prog_bar=True)
        return loss

    def validation_step(self, batch: Batch, number: int) -> None:
        queries = self.encoder("query", batch.query_ids, batch.query_mask)
        documents = self.encoder("document", batch.document_ids, batch.document_mask)
        self._reciprocal_ranks.append(reciprocal_ranks(queries, documents))

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
