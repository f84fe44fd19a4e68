"""Pairs to encoders. Reading this page imports no torch: what it names is imported when called."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

OBJECTIVES = {
    "info-nce": "coderet.training.objectives:InfoNce",
    "softmax-2019": "coderet.training.objectives:Softmax2019",
    "cosine-2019": "coderet.training.objectives:Cosine2019",
    "max-margin-2019": "coderet.training.objectives:MaxMargin2019",
    "triplet-2019": "coderet.training.objectives:Triplet2019",
    "kl": "coderet.training.objectives:Kl",
    "margin-mse": "coderet.training.objectives:MarginMse",
    "keep": "coderet.training.objectives:Keep",
}
OPTIMISERS = {"adam": "torch.optim:Adam", "adamw": "torch.optim:AdamW"}


def fit(pairs: Path, tokenizers: Path, settings: Mapping[str, Any], work: Path, seed: int, logger: Any = None) -> Any:
    """`fitting.fit`: the encoder with the best validation MRR, and the facts of its training."""
    from coderet.encoders import memory
    from coderet.training import fitting

    memory.keep_freed()  # every step makes gradients as large as the tables of tokens, and frees them
    return fitting.fit(pairs, tokenizers, settings, work, seed, logger)


def mini_batches(pairs: Path, tokenizers: Path, settings: Mapping[str, Any], work: Path, seed: int) -> Any:
    """`trying.trials`: larger and larger mini-batches of a retriever's longest pairs, with their speed and memory."""
    from coderet.training import trying

    return trying.trials(pairs, tokenizers, settings, work, seed)


def told(trials: Any) -> str:
    """`trying.told`: a table of trials, and which is the best."""
    from coderet.training import trying

    return trying.told(trials)


def distil(teacher: Any, pairs: Path, cache: Path | None, seed: int, **settings: Any) -> Any:
    """`distillation.distil`: a static encoder in the place of teacher, and the facts of its making."""
    from coderet import registry
    from coderet.training import distillation

    made = distillation.distil
    return made(teacher, pairs, cache, seed, **registry.fit_arguments(made, settings, "fit"))


def train_vocabulary(pairs: Path, folder: Path, **settings: Any) -> dict[str, int | str]:
    """`vocabulary.train_vocabulary`: the tokenizer of the encoders that are trained here."""
    from coderet.training import vocabulary

    return vocabulary.train_vocabulary(pairs, folder, **settings)
