"""Attention of prompts and slots, against torch's own, a row at a time."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

from coderet.generators import attention

HEADS, FEWER, SIZE = 6, 2, 8
MODULE = SimpleNamespace()
CPU = torch.device("cpu")


def random(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def expected(query, key, value, visible=None):
    key, value = (each.repeat_interleave(HEADS // FEWER, dim=1) for each in (key, value))
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=visible, is_causal=visible is None)


@pytest.mark.parametrize("length", [1, 5, attention.BLOCK, attention.BLOCK + 1, 3 * attention.BLOCK - 7])
def test_a_prompt_sees_itself_up_to_each_place(length):
    query, key, value = random(1, HEADS, length, SIZE), *(random(1, FEWER, length, SIZE) for _ in range(2))
    found, _ = attention.attend(MODULE, query, key, value, scaling=SIZE**-0.5)
    torch.testing.assert_close(found.transpose(1, 2), expected(query, key, value), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("write", [attention._write, attention._write_by_torch])
def test_each_token_of_a_step_sees_its_own_slot_up_to_its_place(write, monkeypatch):
    monkeypatch.setattr(attention, "_write", write)
    lengths, counts = [9, 30, 1, 7, 12, 3, 3, 20, 5, 2, 11], [1, 3, 2, 1, 1, 5, 1, 1, 4, 1, 1]  # two groups
    keys, values = (random(len(counts), FEWER, 40, SIZE) for _ in range(2))
    query = random(1, HEADS, sum(counts), SIZE)
    step = attention.step(lengths, counts, CPU, torch.float32)
    assert [(group.start, group.stop) for group in step.groups] == [(0, 8), (8, 11)]
    found, _ = attention.attend(MODULE, query, keys, values, step=step)
    for token, (slot, place) in enumerate(zip(step.slots.tolist(), step.places.tolist(), strict=True)):
        own = (each[slot : slot + 1, :, : place + 1] for each in (keys, values))
        wanted = expected(query[:, :, token : token + 1], *own, visible=torch.ones(1, place + 1, dtype=torch.bool))
        torch.testing.assert_close(found[0, token], wanted[0, :, 0], rtol=1e-4, atol=1e-5)


def test_a_step_says_where_each_token_goes():
    step = attention.step([4, 2], [1, 3], CPU, torch.float32)
    assert step.slots.tolist() == [0, 1, 1, 1] and step.places.tolist() == [4, 2, 3, 4]


def test_what_is_not_computed_is_refused():
    query = random(1, HEADS, 2, SIZE)
    with pytest.raises(NotImplementedError, match="softcap"):
        attention.attend(MODULE, query, query, query, softcap=30.0)
