"""What a training run keeps on disk: the best weights so far, and all it takes to go on exactly where it was killed.

work/best-<lap>.pt holds the encoder's weights of the lap with the best score, the first of equals; work/last.ckpt is
Lightning's checkpoint of everything, this callback's memory of the best included. Both are moved into place whole, so
that a full disk or a kill costs what came after the last one and no more. Of several devices the first one writes.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn

from coderet.records import DataError
from coderet.training import devices

ENCODER = "encoder."  # what the names of the encoder's weights begin with in the module that trains it


class Checkpoints(Callback):
    """score: the logged number that is to be largest. every: batches between two saves inside a lap, 0 for none."""

    def __init__(self, work: Path, score: str, every: int, stopping: EarlyStopping) -> None:
        self._work, self._score, self._every, self._stopping = work, score, every, stopping
        self._last = work / "last.ckpt"
        self.best_lap, self.best_score = -1, -1.0

    def last(self, module: nn.Module) -> Path | None:
        """The checkpoint to go on from, None if there is none; DataError if it is cut short or not module's."""
        if not self._last.exists():
            return None
        found = _read(self._last, mmap=True, weights_only=False)
        _check_fits(module, found.get("state_dict") if isinstance(found, dict) else None, self._last)
        return self._last

    def best_weights(self, encoder: nn.Module) -> dict[str, torch.Tensor]:
        """The encoder's weights that were kept; DataError if their file is gone, cut short or of another encoder."""
        weights: dict[str, torch.Tensor] = _read(self._best(), weights_only=True)
        _check_fits(encoder, weights, self._best())
        return weights

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._stopping.wait_count >= self._stopping.patience:  # it was to stop when it was killed
            trainer.should_stop = True

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        # Not after a lap's last step: the validation that follows belongs to the lap and would be skipped.
        done = batch_idx + 1
        if self._every and done % self._every == 0 and done < trainer.num_training_batches:
            self._save_all(trainer, pl_module)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        score = float(trainer.callback_metrics[self._score])
        if score > self.best_score:
            self.best_lap, self.best_score = trainer.current_epoch, score
            every = trainer.strategy.lightning_module_state_dict()  # by all devices: each may hold a part
            weights = {
                name.removeprefix(ENCODER): each.cpu() for name, each in every.items() if name.startswith(ENCODER)
            }
            with _whole(self._best()) as path:
                if devices.rank() == 0:
                    torch.save(weights, path)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._save_all(trainer, pl_module)
        if devices.rank() == 0:
            for outdated in set(self._work.glob("best-*.pt")) - {self._best()}:
                outdated.unlink()

    def state_dict(self) -> dict[str, Any]:
        return {"best_lap": self.best_lap, "best_score": self.best_score}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best_lap, self.best_score = state["best_lap"], state["best_score"]

    def _save_all(self, trainer: Trainer, pl_module: LightningModule) -> None:
        broken = [name for name, weights in pl_module.named_parameters() if not torch.isfinite(weights).all()]
        if broken:
            raise DataError(
                f"{len(broken)} weights are not numbers after step {trainer.global_step}, {broken[0]} among them; the "
                "checkpoint before is kept; lower training.learning_rate or set training.clip_norm"
            )
        with _whole(self._last) as path:
            trainer.save_checkpoint(path)

    def _best(self) -> Path:
        return self._work / f"best-{self.best_lap}.pt"


def _read(path: Path, **options: Any) -> Any:
    try:
        return torch.load(path, map_location="cpu", **options)
    except Exception as error:  # torch.load raises whatever the broken part makes of itself
        raise DataError(
            f"{path} is not a whole checkpoint ({type(error).__name__}); delete {path.parent} to train from the start"
        ) from error


def _check_fits(module: nn.Module, found: Any, path: Path) -> None:
    """DataError unless found are weights of the names and shapes that module has."""
    wanted = module.state_dict()
    if not isinstance(found, dict) or not all(torch.is_tensor(each) for each in found.values()):
        raise DataError(f"{path} is no checkpoint of a training here; delete {path.parent} to train from the start")
    others = [name for name in wanted if name not in found or found[name].shape != wanted[name].shape]
    others += [name for name in found if name not in wanted]
    if others:
        raise DataError(
            f"{path} is of another architecture than fit.encoder asks for: {len(others)} weights have other names or "
            f"shapes, {others[0]} among them; delete {path.parent} to train from the start"
        )


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Where to write what is moved to path once it is whole; of several devices the first writes and moves."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.part")
    try:
        yield temporary
        if devices.rank() == 0:
            os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # torch writes some files itself and then raises the latter
        temporary.unlink(missing_ok=True)
        raise DataError(
            f"{path} could not be written ({error}); make room and run it again: it goes on from the checkpoint before"
        ) from error
