"""Fit a dual encoder to mined pairs: tokenise, train, keep the best, and go on where a killed run stopped.

>>> encoder, facts = fit(
...     Path("data/pairs"), Path("models/tokenizers"),
...     {"encoder": {"kind": "nbow", "dim": 512}, "batches": {"size": 2048}, "training": {"epochs": 4}},
...     Path(".work/fit"), seed=13,
... )
>>> encoder.save(Path("models/retrievers/nbow/encoder"))

Everything on the way lies in a folder of work_folder that is named for what it was made from: pairs, tokenizer,
settings, seed. On a processor the weights are the same byte for byte however often the run was killed.
"""

import contextlib
import hashlib
import json
import logging
import math
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.loggers import Logger

from coderet import registry
from coderet.encoders.base import DualEncoder
from coderet.records import DataError
from coderet.training import objectives, vocabulary
from coderet.training.batches import batches_of
from coderet.training.checkpoints import Checkpoints
from coderet.training.module import SCORE, ContrastiveModule, Curve
from coderet.training.objectives import Objective
from coderet.training.pairs import PairsModule, TokenPairs, tokenised

FORMAT = 3
SECTIONS = ("encoder", "objective", "batches", "training")
LOG_STEPS = 10  # steps between two points of a logged curve


def fit(
    pairs_folder: Path,
    tokenizers_folder: Path,
    settings: Mapping[str, Any],
    work_folder: Path,
    seed: int,
    logger: Logger | None = None,
) -> tuple[DualEncoder, dict[str, Any]]:
    """The encoder with the best validation MRR, and the facts of its training for the results file.

    settings: maps named as SECTIONS, `encoder` (see `DualEncoder.build`), `objective` (see `objectives.build`),
    `batches` (see `PairsModule`) and `training` (see `train`). Raises UnknownName for a setting that is not known and
    DataError for pairs, tokenizers or checkpoints that cannot be used.
    """
    given: dict[str, Any] = {name: {} for name in SECTIONS} | dict(settings)
    for name in given:
        if name not in SECTIONS:
            raise registry.UnknownName(
                f"fit.{name} is not a setting; known settings: {', '.join(SECTIONS)}.{registry.nearest(name, SECTIONS)}"
            )
    for name, section in given.items():
        if not isinstance(section, Mapping):
            raise registry.BadValue(f"fit.{name} is {section!r}; wanted a mapping of settings")
    training = registry.fit_arguments(train, given["training"], "fit.training")
    batches = registry.fit_arguments(batches_of, given["batches"], "fit.batches")
    torch.manual_seed(seed)
    objective = objectives.build(given["objective"])
    encoder = DualEncoder.build(vocabulary.load_vocabulary(tokenizers_folder), given["encoder"])
    work = work_folder / _key(pairs_folder, tokenizers_folder, given, seed)
    facts = train(encoder, objective, batches, pairs_folder, work, seed, logger, **training)
    return encoder, facts | {"settings": {name: dict(given[name]) for name in SECTIONS}}


def train(
    encoder: DualEncoder,
    objective: Objective,
    batches: Mapping[str, Any],
    pairs_folder: Path,
    work: Path,
    seed: int,
    logger: Logger | None,
    *,
    epochs: int = 4,
    patience: int = 2,
    learning_rate: float = 0.006,
    warmup: int = 50,
    start_from_rarity: bool = True,
    valid_block: int = 1000,
    valid_blocks: int = 5,
    checkpoint_steps: int = 0,
    workers: int = 0,
) -> dict[str, Any]:
    """Train encoder in place; its weights are then those of the epoch with the best validation MRR.

    batches: arguments of `batches.batches_of`. epochs: at most; patience: stop after so many without a better MRR.
    start_from_rarity: tokens begin with weights
    by inverse document frequency. checkpoint_steps: save every so many steps beside each epoch's end, 0 for never.
    """
    for name, value, low, high in (
        ("epochs", epochs, 1, math.inf),
        ("patience", patience, 0, math.inf),
        ("learning_rate", learning_rate, 1e-12, math.inf),
        ("warmup", warmup, 0, math.inf),
        ("valid_block", valid_block, 2, math.inf),
        ("valid_blocks", valid_blocks, 1, math.inf),
        ("checkpoint_steps", checkpoint_steps, 0, math.inf),
        ("workers", workers, 0, math.inf),
    ):
        registry.check_range(f"fit.training.{name}", value, low, high)
    pairs = {name: _tokenised(name, pairs_folder, encoder, work) for name in ("train", "valid")}
    if start_from_rarity:
        weights = vocabulary.rarity(pairs["train"].tokens.values(), len(encoder.tokenizer))
        for tower in dict.fromkeys((encoder.query_tower, encoder.document_tower)):
            tower.start_from(weights)
    data = PairsModule(
        pairs["train"],
        pairs["valid"],
        seed=seed,
        batches=batches_of(pairs["train"].traits, seed, **batches),
        block=valid_block,
        blocks=valid_blocks,
        workers=workers,
    )
    module = ContrastiveModule(
        encoder,
        objective,
        seed=seed,
        steps=epochs * len(data.batches),
        learning_rate=learning_rate,
        warmup=warmup,
    )
    # After validation, not at the epoch's end: the checkpoint that is written there must hold what it decided.
    curve, stopping = Curve(), EarlyStopping(SCORE, mode="max", patience=patience, check_on_train_epoch_end=False)
    checkpoints = Checkpoints(work, SCORE, checkpoint_steps, stopping)
    _run(module, data, [curve, stopping, checkpoints], epochs, checkpoints.last(), logger)
    encoder.load_state_dict(checkpoints.best_weights())
    encoder.eval()
    steps, seconds = curve.rows[-1]["step"], curve.rows[-1]["seconds"]
    tokens = pairs["train"].tokens
    return {
        "seconds": seconds,
        "pairs": len(pairs["train"]),
        "validation_pairs": int(data.blocks.size),
        "pairs_left_over": data.batches.left_over,
        "pairs_per_second": steps * data.batches.batch / seconds,
        "epochs": len(curve.rows),
        "steps": steps,
        "best_epoch": checkpoints.best_epoch + 1,  # counted from 1, as `epochs` is
        "best_validation_mrr": checkpoints.best_score,
        "parameters": encoder.parameters_count,
        "queries_cut": tokens["query"].cut,
        "query_tokens_lost": tokens["query"].lost,
        "documents_cut": tokens["document"].cut,
        "document_tokens_lost": tokens["document"].lost,
        "curve": curve.rows,
    }


def _run(
    module: ContrastiveModule,
    data: PairsModule,
    callbacks: list[Callback],
    epochs: int,
    checkpoint: Path | None,
    logger: Logger | None,
) -> None:
    with _quiet():
        trainer = Trainer(
            accelerator="auto",
            devices=1,
            max_epochs=epochs,
            callbacks=callbacks,
            logger=logger or False,
            log_every_n_steps=LOG_STEPS,
            num_sanity_val_steps=0,
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=sys.stderr.isatty(),
        )
        trainer.fit(module, datamodule=data, ckpt_path=checkpoint, weights_only=False)


def _tokenised(name: str, pairs_folder: Path, encoder: DualEncoder, work: Path) -> TokenPairs:
    return tokenised(pairs_folder / f"{name}.parquet", encoder, work / f"tokens-{name}")


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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        log = logging.getLogger("lightning.pytorch")
        level = log.level
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)
