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

import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.loggers import Logger

from coderet import encoders, registry
from coderet.corpora import store
from coderet.encoders.base import DualEncoder
from coderet.records import DataError
from coderet.training import after, devices, objectives, vocabulary
from coderet.training.batches import batches_of
from coderet.training.checkpoints import Checkpoints
from coderet.training.curves import Curve, Points
from coderet.training.gradient_cache import GradientCache
from coderet.training.laps import Laps
from coderet.training.module import SCORE, ContrastiveModule
from coderet.training.objectives import Objective
from coderet.training.pairs import PairsModule, TokenPairs, inputs, tokenised
from coderet.training.running import Running

FORMAT = 4
SECTIONS = ("encoder", "pairs", "objective", "batches", "training", "trainer", "after")
SETTINGS = "settings.json"  # what a work folder's name is a hash of, for people
A_PART = 65_536  # tokens that are looked at together; the first ones settle it but for texts that nobody meant
DONE = "done"  # an empty file in the folder of a training that came to its end


def fit(
    pairs_folder: Path,
    tokenizers_folder: Path,
    settings: Mapping[str, Any],
    work_folder: Path,
    seed: int,
    logger: Logger | None = None,
) -> tuple[Any, dict[str, Any]]:
    """The encoder with the best validation MRR, and the facts of its training for the results file.

    settings: maps named as SECTIONS, `encoder` (see `encoders.trainable`), `pairs` (see `pairs.tokenised`), `objective`
    (see `objectives.build`), `batches` (see `batches.batches_of` and `GradientCache`), `training` (see `train`),
    `trainer` (see `Running`) and `after` (see `after.finish`). Raises UnknownName for a setting that is not known and
    DataError for pairs, tokenizers or checkpoints that cannot be used. On several devices only the first process comes
    back from here; the others end, their work done.
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
    pairs = registry.fit_arguments(tokenised, given["pairs"], "fit.pairs")
    batches = registry.fit_arguments(batches_of, given["batches"], "fit.batches", GradientCache)
    running = Running(**registry.fit_arguments(Running, given["trainer"], "fit.trainer"))
    finishing = registry.fit_arguments(after.finish, given["after"], "fit.after")
    torch.manual_seed(seed)
    objective = objectives.build(given["objective"])
    own = given["encoder"].get("kind") != "pretrained"  # which brings its tokenizer
    data = _digests(pairs_folder, tokenizers_folder if own else None, inputs(**pairs))
    learning = {name: section for name, section in given.items() if name != "after"}
    work = work_folder / _key(data, learning, seed)
    with devices.alone(work):
        encoder = encoders.trainable(given["encoder"], tokenizers_folder, work)
        _say_what_is_new(work, {"seed": seed, "data": data, **learning})
    after.check(encoder, **finishing)
    resolved = given | {
        "pairs": _defaults(tokenised) | pairs,
        "batches": _defaults(batches_of) | _defaults(GradientCache) | batches,
        "training": _defaults(train) | training,
        "trainer": _defaults(Running) | given["trainer"],
        "after": _defaults(after.finish) | finishing,
    }
    if logger:
        logger.log_hyperparams({**resolved, "seed": seed, "data": data})
    with devices.no_other_training(work):
        facts = train(encoder, objective, pairs, batches, running, pairs_folder, work, seed, logger, **training)
    devices.only_the_first_goes_on()
    (work / DONE).touch()
    facts |= after.finish(encoder, **finishing)
    return encoder, facts | {"data": data, "settings": {name: dict(resolved[name]) for name in SECTIONS}}


def train(
    encoder: Any,
    objective: Objective,
    of_pairs: Mapping[str, Any],
    batches: Mapping[str, Any],
    running: Running,
    pairs_folder: Path,
    work: Path,
    seed: int,
    logger: Logger | None,
    *,
    epochs: int = 4,
    max_steps: int = 0,
    patience: int = 2,
    optimiser: str = "adam",
    learning_rate: float = 0.006,
    weight_decay: float = 0.0,
    layer_decay: float = 1.0,
    schedule: Literal["linear", "cosine", "constant"] = "linear",
    warmup: float = 50,
    clip_norm: float = 0.0,
    accumulate: int = 1,
    teacher: Literal["base"] | None = None,
    start_from_rarity: bool = True,
    valid_every: int = 0,
    valid_block: int = 1000,
    valid_blocks: int = 5,
    checkpoint_steps: int = 0,
    workers: int = 0,
) -> dict[str, Any]:
    """Train encoder in place; its weights are then those of the validation with the best MRR.

    of_pairs: arguments of `pairs.tokenised`. batches: those of `batches.batches_of` and `GradientCache`. epochs,
    max_steps: at most, 0 steps for no bound. patience: stop after so many validations without a better MRR. optimiser,
    weight_decay, layer_decay, schedule: see `optimising`. warmup: steps up to the full learning rate, or their share of
    all if below 1. clip_norm: the longest a gradient may be, 0 for any. accumulate: batches a step. teacher: base lets
    an objective see the vectors of the encoder as it was before. start_from_rarity: tokens begin with weights by
    inverse document frequency. valid_every: steps between validations, 0 for an epoch. checkpoint_steps: save every so
    many steps beside each validation, 0 for never.
    """
    for name, value, low, high in (
        ("epochs", epochs, 1, math.inf),
        ("max_steps", max_steps, 0, math.inf),
        ("patience", patience, 0, math.inf),
        ("learning_rate", learning_rate, 1e-12, math.inf),
        ("weight_decay", weight_decay, 0, math.inf),
        ("layer_decay", layer_decay, 1e-6, 1),
        ("warmup", warmup, 0, math.inf),
        ("clip_norm", clip_norm, 0, math.inf),
        ("accumulate", accumulate, 1, math.inf),
        ("valid_every", valid_every, 0, math.inf),
        ("valid_block", valid_block, 2, math.inf),
        ("valid_blocks", valid_blocks, 1, math.inf),
        ("checkpoint_steps", checkpoint_steps, 0, math.inf),
        ("workers", workers, 0, math.inf),
    ):
        registry.check_range(f"fit.training.{name}", value, low, high)
    pairs = {
        "train": _tokenised("train", pairs_folder, encoder, work, seed, **of_pairs),
        "valid": _tokenised("valid", pairs_folder, encoder, work, seed),
    }
    if len(pairs["valid"]) < 2:
        raise DataError(f"{pairs_folder}/valid.parquet has 1 pair; wanted two at least, for one is always found first")
    for name, each in pairs.items():
        _check_known(each, encoder, pairs_folder / f"{name}.parquet")
    if start_from_rarity and isinstance(encoder, DualEncoder):
        weights = vocabulary.rarity(pairs["train"].tokens.values(), len(encoder.tokenizer))
        for tower in dict.fromkeys((encoder.query_tower, encoder.document_tower)):
            tower.start_from(weights)
    cache = GradientCache(**_taken(GradientCache, batches))
    laps = Laps(
        batches_of(pairs["train"].traits, seed, **_taken(batches_of, batches)),
        epochs=epochs,
        max_steps=max_steps,
        valid_every=valid_every,
        accumulate=accumulate,
    )
    data = PairsModule(
        pairs["train"], pairs["valid"], seed=seed, batches=laps, block=valid_block, blocks=valid_blocks, workers=workers
    )
    module = ContrastiveModule(
        encoder,
        objective,
        seed=seed,
        laps=laps,
        cache=cache,
        optimiser={
            "kind": optimiser,
            "learning_rate": learning_rate,
            "weight_decay": weight_decay,
            "layer_decay": layer_decay,
        },
        schedule=schedule,
        warmup=warmup,
        clip_norm=clip_norm,
        with_base=teacher == "base",
    )
    # After validation, not at the lap's end: the checkpoint that is written there must hold what it decided.
    curve = Curve(SCORE)
    stopping = EarlyStopping(SCORE, mode="max", patience=patience, check_on_train_epoch_end=False)
    checkpoints = Checkpoints(work, SCORE, checkpoint_steps * accumulate, stopping)
    running.fit(
        module,
        data,
        [curve, Points(), stopping, checkpoints],
        epochs=laps.laps,
        work=work,
        checkpoint=checkpoints.last(module),
        logger=logger,
    )
    encoder.load_state_dict(checkpoints.best_weights(encoder))
    encoder.eval()
    last, best = curve.rows[-1], curve.rows[checkpoints.best_lap]
    tokens = pairs["train"].tokens
    return {
        "seconds": last["seconds"],
        "pairs": len(pairs["train"]),
        **pairs["train"].facts,
        "validation_pairs": int(data.blocks.size),
        "pairs_left_over": laps.left_over,
        "pairs_per_second": curve.pairs / last["seconds"],
        "devices": running.devices * running.nodes,
        "epochs": last["epoch"] + 1,
        "steps": last["step"],
        "best_epoch": best["epoch"] + 1,  # counted from 1, as `epochs` is
        "best_step": best["step"],
        "best_validation_mrr": checkpoints.best_score,
        "parameters": encoder.parameters_count,
        "queries_cut": tokens["query"].cut,
        "query_tokens_lost": tokens["query"].lost,
        "documents_cut": tokens["document"].cut,
        "document_tokens_lost": tokens["document"].lost,
        "curve": curve.rows,
    }


def _tokenised(name: str, pairs_folder: Path, encoder: Any, work: Path, seed: int, **settings: Any) -> TokenPairs:
    with devices.alone(work):  # one process tokenises, the others find it done
        return tokenised(pairs_folder / f"{name}.parquet", encoder, work / f"tokens-{name}", seed, **settings)


def _check_known(pairs: TokenPairs, encoder: Any, path: Path) -> None:
    """DataError if all texts of a side are the same to encoder, for its tokenizer knows none of their tokens."""
    for role, tokens in pairs.tokens.items():
        parts = (tokens.ids[start : start + A_PART] for start in range(0, len(tokens.ids), A_PART))
        if all(np.isin(part, encoder.marks).all() for part in parts):
            raise DataError(
                f"{path}: the tokenizer knows no token of any {'query' if role == 'query' else 'code'}; make one of "
                "these pairs (dvc repro vocabulary), or start from a base that knows their language"
            )


def _digests(pairs_folder: Path, tokenizers_folder: Path | None, others: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of what is learned from; of a tokenizer only where the encoder reads with it."""
    found = {}
    files = {name: pairs_folder / f"{name}.parquet" for name in ("train", "valid")}
    if tokenizers_folder is not None:
        files["tokenizer"] = tokenizers_folder / vocabulary.FILE
    for name, path in (*files.items(), *((path.name, path) for path in others)):
        try:
            with path.open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            how = (
                "run: dvc repro mine vocabulary" if name in files else "fit.pairs names it: mend that, or make the file"
            )
            raise DataError(f"{path} cannot be read ({error.strerror}); {how}") from error
    return found


def _key(data: Mapping[str, str], settings: Mapping[str, Any], seed: int) -> str:
    said = json.dumps([FORMAT, seed, data, settings], sort_keys=True, default=dict)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _say_what_is_new(work: Path, settings: Mapping[str, Any]) -> None:
    """Tell that other settings start anew, where a training of such an encoder was left unfinished."""
    said: dict[str, Any] = json.loads(json.dumps(settings, default=dict))
    if (work / SETTINGS).exists():
        return
    left = [each for each in work.parent.glob("*/last.ckpt") if not each.with_name(DONE).exists()]
    others = {each.parent: store.read_json(each.with_name(SETTINGS)) for each in left}
    kin = [each for each, its in others.items() if its["encoder"].get("kind") == said["encoder"].get("kind")]
    if kin:
        newest = max(kin, key=lambda each: (each / "last.ckpt").stat().st_mtime)
        old, new = (dict(_leaves(each)) for each in (others[newest], said))
        changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        print(
            f"fit: trains from the start in {work}, for these are others than in {newest}, where a training waits to "
            f"go on: {', '.join(changed)}",
            file=sys.stderr,
        )
    store.write_json(work / SETTINGS, said)


def _leaves(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    return [
        leaf
        for name, value in settings.items()
        for leaf in (_leaves(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(f"{prefix}{name}", value)])
    ]


def _taken(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What of given function takes by name."""
    return {name: value for name, value in given.items() if name in registry.named_arguments(function)}


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: each.default for name, each in registry.named_arguments(function).items()}
