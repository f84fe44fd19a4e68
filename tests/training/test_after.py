"""What happens between training and saving."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tiny_checkpoints import checkpoint, tokenizer

from coderet.encoders.base import DualEncoder
from coderet.encoders.tokenizer import train
from coderet.encoders.tuning import Tunable
from coderet.registry import BadValue
from coderet.training import after


def test_nothing_is_averaged_unless_asked_for(tmp_path: Path):
    tokenizer(checkpoint(tmp_path / "m", "Bert", max_position_embeddings=64))
    encoder = Tunable(tmp_path / "m", precision="fp32")
    weights = encoder.model.embeddings.word_embeddings.weight
    base = weights.detach().clone()
    weights.data += 1.0
    assert after.finish(encoder) == {"average_with_base": 0.0}
    assert float((weights - base).mean()) == pytest.approx(1.0)
    assert after.finish(encoder, average_with_base=0.25) == {"average_with_base": 0.25}
    assert float((weights - base).mean()) == pytest.approx(0.75)


def test_an_encoder_from_scratch_has_no_base_to_average_with():
    words = train([pa.array(["sort a list", "sort a list"])])
    settings: dict[str, Any] = {"kind": "nbow", "dim": 4}
    encoder = DualEncoder.build(words, settings)
    assert after.finish(encoder) == {"average_with_base": 0.0}
    with pytest.raises(BadValue, match=r"average_with_base is 0\.3, but an encoder of kind nbow starts from no base"):
        after.finish(encoder, average_with_base=0.3)
