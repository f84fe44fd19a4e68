"""Fit a dual encoder to mined pairs: tokenise, train, keep the best, and go on where a killed run stopped.

>>> encoder, facts = fit(
...     Path("data/pairs"), Path("models/tokenizers"),
...     {"encoder": {"kind": "nbow", "dim": 512}, "training": {"batch": 1024, "epochs": 4}},
...     Path(".work/fit"), seed=13,
... )
>>> encoder.save(Path("models/retrievers/nbow/encoder"))

Everything on the way lies in a folder of work_folder that is named for what it was made from: pairs, tokenizer,
settings, seed. On a processor the weights are the same byte for byte however often the run was killed.
"""

import contextlib
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.loggers import Logger

from coderet import registry
from coderet.encoders.base import DualEncoder
from coderet.records import DataError
from coderet.training import vocabulary
from coderet.training.module import SCORE, ContrastiveModule, Curve
from coderet.training.pairs import PairsModule, TokenPairs, tokenised

FORMAT = 1
LAST = "last.ckpt"


def fit(
    pairs_folder: Path,
    tokenizers_folder: Path,
    settings: Mapping[str, Any],
    work_folder: Path,
    seed: int,
    logger: Logger | None = None,
) -> tuple[DualEncoder, dict[str, Any]]:
    """The encoder with the best validation MRR, and the facts of its training for the results file.

    settings: two maps, `encoder` (see `DualEncoder.build`) and `training` (see `train`). Raises UnknownName for a
    setting that is not known and DataError for pairs, tokenizers or checkpoints that cannot be used.
    """
    given = {"encoder": {}, "training": {}} | dict(settings)
    for name in given:
        if name not in ("encoder", "training"):
            raise registry.UnknownName(
                f"fit.{name} is not a setting; known settings: encoder, training."
                f"{registry.nearest(name, ('encoder', 'training'))}"
            )
    training = registry.fit_arguments(train, given["training"], "fit.training")
    torch.manual_seed(seed)
    encoder = DualEncoder.build(vocabulary.load_vocabulary(tokenizers_folder), given["encoder"])
    work = work_folder / _key(pairs_folder, tokenizers_folder, given, seed)
    facts = train(encoder, pairs_folder, work, seed, logger, **training)
    return encoder, facts | {"settings": {name: dict(given[name]) for name in ("encoder", "training")}}


def train(
    encoder: DualEncoder,
    pairs_folder: Path,
    work: Path,
    seed: int,
    logger: Logger | None,
    *,
    batch: int = 1024,
    epochs: int = 4,
    patience: int = 2,
    learning_rate: float = 0.01,
    warmup: int = 50,
    temperature: float = 0.05,
    learn_temperature: bool = False,
    both_directions: bool = True,
    mask_duplicates: bool = True,
    distinct_batches: bool = False,
    start_from_rarity: bool = True,
    valid_block: int = 1000,
    valid_blocks: int = 5,
    checkpoint_steps: int = 0,
    workers: int = 0,
) -> dict[str, Any]:
    """Train encoder in place; its weights are then those of the epoch with the best validation MRR.

    epochs: at most; patience: stop after so many without a better MRR. mask_duplicates: pairs that share a text are no
    negatives of each other; distinct_batches: no batch holds such pairs. start_from_rarity: tokens begin with weights by
    inverse document frequency. checkpoint_steps: save every so many steps beside each epoch's end, 0 for never.
    """
    pairs = {name: _tokenised(name, pairs_folder, encoder, work) for name in ("train", "valid")}
    if start_from_rarity:
        weights = vocabulary.rarity(pairs["train"].tokens.values(), len(encoder.tokenizer))
        for tower in dict.fromkeys((encoder.query_tower, encoder.document_tower)):
            tower.start_from(weights)
    data = PairsModule(
        pairs["train"],
        pairs["valid"],
        seed=seed,
        batch=batch,
        distinct=distinct_batches,
        block=valid_block,
        blocks=valid_blocks,
        workers=workers,
    )
    module = ContrastiveModule(
        encoder,
        seed=seed,
        steps=epochs * len(data.batches),
        learning_rate=learning_rate,
        warmup=warmup,
        temperature=temperature,
        learn_temperature=learn_temperature,
        both_directions=both_directions,
        mask_duplicates=mask_duplicates,
    )
    curve, best = Curve(), Best(work)
    stopping = EarlyStopping(SCORE, mode="max", patience=patience, check_finite=True)
    _run(module, data, [curve, best, stopping, _Resume(work, checkpoint_steps, stopping)], epochs, work, logger)
    encoder.load_state_dict(best.weights())
    encoder.eval()
    seen = curve.rows[-1]["step"] * batch
    tokens = pairs["train"].tokens
    return {
        "seconds": curve.seconds_at_end,
        "pairs": len(pairs["train"]),
        "validation_pairs": int(data.blocks.size),
        "pairs_left_over": data.batches.left_over,
        "pairs_per_second": seen / curve.seconds_at_end,
        "epochs": len(curve.rows),
        "steps": int(curve.rows[-1]["step"]),
        "best_epoch": best.epoch,
        "best_validation_mrr": best.score,
        "parameters": encoder.parameters_count,
        "queries_cut": tokens["query"].cut,
        "query_tokens_lost": tokens["query"].lost,
        "documents_cut": tokens["document"].cut,
        "document_tokens_lost": tokens["document"].lost,
        "curve": curve.rows,
    }


class Best(Callback):
    """Keeps the encoder's weights of the epoch with the best score, the first of equals, in work/best-<epoch>.pt."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self.epoch, self.score = -1, -1.0

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        score = float(trainer.callback_metrics[SCORE])
        if score > self.score:
            before = self._path(self.epoch)
            self.epoch, self.score = trainer.current_epoch, score
            weights = {name: each.cpu() for name, each in pl_module.encoder.state_dict().items()}
            _save_whole(lambda path: torch.save(weights, path), self._path(self.epoch))
            self._outdated = before

    def weights(self) -> dict[str, torch.Tensor]:
        """The weights kept; DataError if their file is gone or cut short."""
        path = self._path(self.epoch)
        try:
            kept: dict[str, torch.Tensor] = torch.load(path, weights_only=True)
            return kept
        except Exception as error:  # torch.load raises whatever the broken part makes of itself
            raise DataError(f"{path} is not a whole checkpoint; delete {self._work} and train again") from error

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "score": self.score}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.score = state["epoch"], state["score"]

    def _path(self, epoch: int) -> Path:
        return self._work / f"best-{epoch}.pt"


class _Resume(Callback):
    """Saves work/last.ckpt at each epoch's end and, if asked, every so many steps, never half written.

    Not after an epoch's last step: what follows (validation, early stopping) belongs to that epoch and would be skipped.
    A run that was already to be stopped early stops again at once.
    """

    def __init__(self, work: Path, every: int, stopping: EarlyStopping) -> None:
        self._path, self._every, self._stopping = work / LAST, every, stopping

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._stopping.wait_count >= self._stopping.patience:
            trainer.should_stop = True

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        done = batch_idx + 1
        if self._every and done % self._every == 0 and done < trainer.num_training_batches:
            _save_whole(trainer.save_checkpoint, self._path)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        _save_whole(trainer.save_checkpoint, self._path)


def _run(
    module: ContrastiveModule,
    data: PairsModule,
    callbacks: list[Callback],
    epochs: int,
    work: Path,
    logger: Logger | None,
) -> None:
    last = work / LAST
    with _quiet():
        trainer = Trainer(
            accelerator="auto",
            devices=1,
            max_epochs=epochs,
            callbacks=callbacks,
            logger=logger or False,
            log_every_n_steps=10,
            num_sanity_val_steps=0,
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=sys.stderr.isatty(),
            default_root_dir=work,
        )
        resumed = last.exists()
        if resumed:
            _check_checkpoint(last)
        trainer.fit(module, datamodule=data, ckpt_path=last if resumed else None, weights_only=False)


def _check_checkpoint(path: Path) -> None:
    try:
        torch.load(path, weights_only=False, mmap=True)
    except Exception as error:  # torch.load raises whatever the broken part makes of itself
        raise DataError(f"{path} is not a whole checkpoint; delete it to train from the start") from error


def _tokenised(name: str, pairs_folder: Path, encoder: DualEncoder, work: Path) -> TokenPairs:
    return tokenised(pairs_folder / f"{name}.parquet", encoder, work / f"tokens-{name}")


def _save_whole(save: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.part")
    save(temporary)
    os.replace(temporary, path)


def _key(pairs_folder: Path, tokenizers_folder: Path, settings: Mapping[str, Any], seed: int) -> str:
    digest = hashlib.sha256(f"{FORMAT} {seed} {json.dumps(settings, sort_keys=True, default=dict)}".encode())
    for path in (pairs_folder / "train.parquet", pairs_folder / "valid.parquet", tokenizers_folder / vocabulary.FILE):
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error}); run: dvc repro mine vocabulary") from error
    return digest.hexdigest()[:32]


@contextlib.contextmanager
def _quiet() -> Any:
    """Lightning's advice (more workers, other logging) is not for the users of this suite."""
    import logging

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        log = logging.getLogger("lightning.pytorch")
        level = log.level
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)
