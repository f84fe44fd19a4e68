"""Texts without padding through real models: the states and gradients are those of padded ones."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_checkpoints import WORDS, checkpoint
from torch import Tensor
from transformers import AutoModel

from coderet.encoders import packing
from coderet.encoders.tuning import Tunable
from coderet.records import DataError

LENGTHS = [3, 21, 0, 8, 21, 1, 16, 9]
SIZES: dict[str, dict[str, Any]] = {
    "Bert": {"max_position_embeddings": 64},
    "Roberta": {"max_position_embeddings": 64, "type_vocab_size": 1},
    "XLMRoberta": {"max_position_embeddings": 64, "type_vocab_size": 1},
    "Camembert": {"max_position_embeddings": 64, "type_vocab_size": 1},
}


def batch(lengths: list[int]) -> tuple[Tensor, Tensor]:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    random = torch.Generator().manual_seed(1)
    return torch.randint(4, len(WORDS), mask.shape, generator=random).masked_fill(~mask, 1), mask


def test_a_layout_groups_texts_of_one_width_and_hides_what_is_beyond_their_ends():
    held = packing.layout(batch([3, 17, 8, 11])[1])
    assert held.groups == ((2, 8), (1, 16), (1, 24))
    assert held.tokens[:16].tolist() == [*range(0, 8), *range(34, 42)]  # the rows are 17 wide
    assert held.positions.tolist() == [*range(8), *range(8), *range(16), *range(24)]
    assert [(mask == 0).sum(-1).flatten().tolist() for mask in held.masks if mask is not None] == [[3, 8], [11], [17]]
    assert packing.layout(batch([8, 8])[1]).masks == (None,)


@pytest.mark.parametrize("architecture", SIZES)
def test_states_and_gradients_are_those_of_padded_texts(tmp_path: Path, architecture: str):
    folder = checkpoint(tmp_path / "m", architecture, **SIZES[architecture])
    ids, mask = batch(LENGTHS)
    gradients, states = [], []
    for attention in ("eager", packing.PACKED):
        model = AutoModel.from_pretrained(folder, attn_implementation=attention, add_pooling_layer=False).eval()
        if attention == packing.PACKED:
            made = packing.states(model, ids, mask)
        else:
            made = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state * mask.unsqueeze(-1)
        weights = torch.linspace(-1, 1, made.shape[-1])  # a plain sum would be constant behind the last norm
        (made * weights).square().sum().backward()
        states.append(made)
        gradients.append({name: each.grad for name, each in model.named_parameters()})
    assert torch.allclose(*states, atol=1e-5)
    largest = max(float(each.abs().max()) for each in gradients[0].values() if each is not None)
    for name, each in gradients[0].items():
        assert each is not None and torch.allclose(each, gradients[1][name], atol=1e-5 * largest), name


def test_a_text_is_not_moved_by_the_texts_beside_it(tmp_path: Path):
    folder = checkpoint(tmp_path / "m", "Bert", **SIZES["Bert"])
    model = AutoModel.from_pretrained(folder, attn_implementation=packing.PACKED).eval()
    ids, mask = batch(LENGTHS)
    together = packing.states(model, ids, mask)
    for row, length in enumerate(LENGTHS):
        if length:
            alone = packing.states(model, ids[row : row + 1, :length], mask[row : row + 1, :length])[0]
            assert torch.allclose(together[row, :length], alone, atol=1e-5)
        assert not together[row, length:].any()


def test_only_models_whose_tokens_all_see_each_other_are_packed(tmp_path: Path):
    from tiny_checkpoints import tokenizer

    folder = checkpoint(tmp_path / "m", "Mistral", max_position_embeddings=64, num_key_value_heads=2)
    tokenizer(folder)
    with pytest.raises(DataError, match=r"attention is packed, but m is a mistral; it can be for bert, roberta"):
        Tunable(folder, attention=packing.PACKED)
    decoder = checkpoint(tmp_path / "d", "Bert", max_position_embeddings=64, is_decoder=True)
    tokenizer(decoder)
    with pytest.raises(DataError, match="attention is packed, but d is a bert"):
        Tunable(decoder, attention=packing.PACKED)
