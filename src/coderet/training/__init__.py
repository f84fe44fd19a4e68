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


def fit(pairs: Path, tokenizers: Path, settings: Mapping[str, Any], work: Path, seed: int, logger: Any = None) -> Any:
    """`fitting.fit`: the encoder with the best validation MRR, and the facts of its training."""
    from coderet.training import fitting

    return fitting.fit(pairs, tokenizers, settings, work, seed, logger)


def train_vocabulary(pairs: Path, folder: Path, **settings: Any) -> dict[str, int | str]:
    """`vocabulary.train_vocabulary`: the tokenizer of the encoders that are trained here."""
    from coderet.training import vocabulary

    return vocabulary.train_vocabulary(pairs, folder, **settings)
