"""What params.yaml and the presets say of encoders that are trained here can be built."""

from pathlib import Path

import pytest

from coderet import params
from coderet.encoders import TRAINED
from coderet.encoders.base import DualEncoder
from coderet.encoders.tokenizer import WordTokenizer

ROOT = Path(__file__).parents[2]
ENTRIES = [
    pytest.param(path, name, id=f"{path.parent.name}-{name}")
    for path in [ROOT / "params.yaml", *sorted((ROOT / "presets").glob("*/params.yaml"))]
    for name, each in params.read(path).retrievers.items()
    if each.fit.get("encoder", {}).get("kind") in TRAINED
]


@pytest.mark.parametrize(("path", "name"), ENTRIES)
def test_an_encoder_that_is_to_be_trained_can_be_built(path: Path, name: str):
    settings = params.read(path).retrievers[name].fit["encoder"]
    made = DualEncoder.build(WordTokenizer(["sort", "list"]), settings)
    assert made.dim == settings.get("dim", made.dim)
