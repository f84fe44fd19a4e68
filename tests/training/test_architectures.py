"""Every architecture that is trained here learns, and the same seed gives the same bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coderet import encoders
from coderet.training.fitting import fit

ATTENTION = {"kind": "attention", "dim": 16, "layers": 1, "heads": 2, "inner": 32}
ENCODERS: dict[str, dict[str, Any]] = {
    "convolution": {"kind": "convolution", "dim": 16, "width": 3, "layers": 2},
    "lstm": {"kind": "recurrent", "dim": 16, "cell": "lstm", "layers": 1},
    "gru": {"kind": "recurrent", "dim": 16, "cell": "gru", "tied": False},
    "attention": ATTENTION,
    "mixed": {"kind": "mixed", "query": ATTENTION, "document": {"kind": "nbow", "dim": 16}},
}


@pytest.mark.parametrize("name", ENCODERS)
def test_an_architecture_learns_and_the_same_seed_gives_the_same_weights(
    name: str, write_pairs: Callable[..., Path], tokenizers_folder: Path, tmp_path: Path
):
    settings = {
        "encoder": ENCODERS[name],
        "objective": {"temperature": 0.1},
        "batches": {"size": 12},
        "training": {"epochs": 8, "patience": 9, "learning_rate": 0.01, "warmup": 2, "valid_block": 20},
    }
    made, facts = fit(write_pairs(), tokenizers_folder, settings, tmp_path / "once", 5)
    assert facts["curve"][-1]["loss"] < 0.7 * facts["curve"][0]["loss"]
    assert facts["best_validation_mrr"] > 0.4  # by chance: 0.18
    again, _ = fit(write_pairs(), tokenizers_folder, settings, tmp_path / "twice", 5)
    assert again.fingerprint == made.fingerprint
    made.save(tmp_path / "encoder")
    assert encoders.load(tmp_path / "encoder").fingerprint == made.fingerprint
