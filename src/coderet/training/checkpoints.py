"""What a training run keeps on disk: the best weights so far, and all it takes to go on exactly where it was killed.

work/best-<epoch>.pt holds the encoder's weights of the epoch with the best score, the first of equals; work/last.ckpt
is Lightning's checkpoint of everything, this callback's memory of the best included. Both are moved into place whole.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping

from coderet.records import DataError


class Checkpoints(Callback):
    """score: the logged number that is to be largest. every: steps between two saves inside an epoch, 0 for none."""

    def __init__(self, work: Path, score: str, every: int, stopping: EarlyStopping) -> None:
        self._work, self._score, self._every, self._stopping = work, score, every, stopping
        self._last = work / "last.ckpt"
        self.best_epoch, self.best_score = -1, -1.0

    def last(self) -> Path | None:
        """The checkpoint to go on from, None if there is none; DataError if it is cut short."""
        if not self._last.exists():
            return None
        _read(self._last, mmap=True, weights_only=False)
        return self._last

    def best_weights(self) -> dict[str, torch.Tensor]:
        """The encoder's weights that were kept; DataError if their file is gone or cut short."""
        weights: dict[str, torch.Tensor] = _read(self._best(), weights_only=True)
        return weights

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._stopping.wait_count >= self._stopping.patience:  # it was to stop when it was killed
            trainer.should_stop = True

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        # Not after an epoch's last step: the validation that follows belongs to the epoch and would be skipped.
        done = batch_idx + 1
        if self._every and done % self._every == 0 and done < trainer.num_training_batches:
            _move_in(trainer.save_checkpoint, self._last)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        score = float(trainer.callback_metrics[self._score])
        if score > self.best_score:
            self.best_epoch, self.best_score = trainer.current_epoch, score
            weights = {name: each.cpu() for name, each in pl_module.encoder.state_dict().items()}  # type: ignore[union-attr,operator]
            _move_in(lambda path: torch.save(weights, path), self._best())

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        _move_in(trainer.save_checkpoint, self._last)
        for outdated in set(self._work.glob("best-*.pt")) - {self._best()}:
            outdated.unlink()

    def state_dict(self) -> dict[str, Any]:
        return {"best_epoch": self.best_epoch, "best_score": self.best_score}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best_epoch, self.best_score = state["best_epoch"], state["best_score"]

    def _best(self) -> Path:
        return self._work / f"best-{self.best_epoch}.pt"


def _read(path: Path, **options: Any) -> Any:
    try:
        return torch.load(path, map_location="cpu", **options)
    except Exception as error:  # torch.load raises whatever the broken part makes of itself
        raise DataError(
            f"{path} is not a whole checkpoint ({type(error).__name__}); delete {path.parent} to train from the start"
        ) from error


def _move_in(save: Callable[[Path], Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.part")
    save(temporary)
    os.replace(temporary, path)
