"""What is noted down while an encoder trains: a row a validation for the results file, and points for a logger."""

import time
from typing import Any

import psutil
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from coderet.training import devices

IN_BATCH_QUERIES = 256  # a batch of thousands would cost as much as its objective


def batch_mrr(queries: Tensor, documents: Tensor) -> Tensor:
    """Mean reciprocal rank of the batch's first IN_BATCH_QUERIES queries among all its documents."""
    own = min(len(queries), IN_BATCH_QUERIES)
    scores = queries[:own] @ documents.T
    return (1.0 / (scores >= scores.diagonal()[:, None]).sum(1)).mean()


class Curve(Callback):
    """A row a validation: step, epoch, seconds spent in training so far, the mean loss since the last, the score.

    score: the name of the logged number. pairs: those that were trained on so far, an epoch's again every epoch.
    """

    def __init__(self, score: str) -> None:
        self.rows: list[dict[str, float]] = []
        self.pairs = 0
        self._score = score
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
        self.pairs += outputs["pairs"]

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        laps: Any = pl_module.laps
        self.rows.append(
            {
                "step": trainer.global_step,
                "epoch": laps.epoch(trainer.current_epoch, len(laps) - 1),
                "seconds": self.seconds,
                "loss": self._losses / max(1, self._steps),
                "validation_mrr": float(trainer.callback_metrics[self._score]),
            }
        )
        self._losses, self._steps = 0.0, 0

    def state_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "losses": self._losses,
            "steps": self._steps,
            "seconds": self.seconds,
            "pairs": self.pairs,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows, self._before, self.pairs = list(state["rows"]), state["seconds"], state["pairs"]
        self._losses, self._steps = state["losses"], state["steps"]


class Points(Callback):
    """Every so many steps, to the trainer's logger: loss, learning rate, gradient, pairs/s, and what the machine does.

    Of several devices the first one writes; loss and pairs are those of all, processor and memory its own.
    """

    def __init__(self) -> None:
        self._pairs, self._since = 0, time.perf_counter()
        self._process = psutil.Process()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._pairs, self._since = 0, time.perf_counter()
        self._process.cpu_percent()  # percentages are since the call before

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        self._noted, self._step = pl_module.logs_next(), trainer.global_step  # type: ignore[operator]

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, *_: Any) -> None:
        self._pairs += outputs["pairs"]
        ended = trainer.global_step > self._step
        if not (ended and self._noted and trainer.loggers and devices.rank() == 0):
            return
        now = time.perf_counter()
        figures = {name: float(outputs[name]) for name in ("loss", "batch_mrr") if name in outputs}
        figures["pairs_per_second"] = self._pairs / (now - self._since)
        figures["learning_rate"] = trainer.optimizers[0].param_groups[0]["lr"]
        if pl_module.gradient_norm is not None:
            figures["gradient_norm"] = float(pl_module.gradient_norm)  # type: ignore[arg-type]
        figures["system/cpu_percent"] = self._process.cpu_percent()
        figures["system/memory_bytes"] = self._process.memory_info().rss
        if pl_module.device.type == "cuda":
            figures["system/gpu_memory_bytes"] = torch.cuda.max_memory_allocated(pl_module.device)
        for each in trainer.loggers:
            each.log_metrics(figures, step=trainer.global_step)
        self._pairs, self._since = 0, now
