"""Attention of prompts that are read alone and of slots that write side by side, as a function that transformers calls.

On a graphics processor it is torch's own. On others torch's own computes as many products for the lower triangle of a
prompt as for the whole, is slow for the few queries of a step, and looks at places that only the longest slot has
filled. There, a prompt's queries are taken in blocks that see no more than they may, keys stand left in the products of
a step, and slots are taken in groups of about one length. Scores are rounded to the model's precision, as in
transformers' `eager`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface

NAME = "slots"
BLOCK = 128  # queries of a prompt at once
GROUP = 8  # slots at once, on a processor
UNKNOWN = ("softcap", "position_bias", "s_aux")  # of attention that is not the usual one


class Group(NamedTuple):
    """Slots from start to stop. tokens: (R, K) places of their tokens in the step, the last repeated where a slot has
    fewer; hidden: (R, 1, K, T), 0 for those of the first T places that each of them sees and -inf for the others."""

    start: int
    stop: int
    tokens: Tensor
    hidden: Tensor


class Step(NamedTuple):
    """Tokens that slots write: the slot (N,) and the place in it (N,) of each; those of a slot side by side."""

    slots: Tensor
    places: Tensor
    groups: Sequence[Group]


def step(lengths: Sequence[int], counts: Sequence[int], device: torch.device, dtype: torch.dtype) -> Step:
    """Of slots that have filled lengths places, each writing counts tokens, one at least, of a model that computes in
    dtype."""
    firsts = [0]
    for count in counts:
        firsts.append(firsts[-1] + count)
    slots = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    places = torch.tensor([length + at for length, count in zip(lengths, counts, strict=True) for at in range(count)])
    size = GROUP if device.type == "cpu" else len(counts)
    groups = []
    for start in range(0, len(counts), size):
        stop = min(start + size, len(counts))
        wide = max(counts[start:stop])
        rows = [[firsts[row] + min(at, counts[row] - 1) for at in range(wide)] for row in range(start, stop)]
        tokens = torch.tensor(rows)
        seen = max(lengths[row] + counts[row] for row in range(start, stop))
        later = (torch.arange(seen) > places[tokens][..., None])[:, None]
        hidden = torch.zeros(later.shape, dtype=dtype).masked_fill_(later, float("-inf"))
        groups.append(Group(start, stop, tokens.to(device), hidden.to(device)))
    return Step(slots.to(device), places.to(device), groups)


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    scaling: float | None = None,
    step: Step | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """query: (1, heads, N, size). A prompt that is read has keys and values of N places, (1, fewer heads, N, size), and
    no step; those of a step are the slots' own, (slots, fewer heads, places, size). Returns (1, N, heads, size).
    """
    if known := [name for name in UNKNOWN if others.get(name) is not None]:
        raise NotImplementedError(f"{type(module).__name__} wants {known[0]}, which is not computed here")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if step is None:
        assert key.shape[2] == query.shape[2], "a step whose model did not hand it on"
        read = _read if query.device.type == "cpu" else _read_by_torch
        return read(query, key, value, scale), None
    write = _write if query.device.type == "cpu" else _write_by_torch
    heads, size = query.shape[1], query.shape[3]
    queries = query[0].transpose(0, 1).unflatten(1, (key.shape[1], -1))  # (N, fewer heads, heads each, size)
    attended = torch.empty_like(queries)
    for group in step.groups:
        asked = queries[group.tokens].permute(0, 2, 3, 1, 4).flatten(2, 3)  # (R, fewer heads, heads each x K, size)
        rows, seen = slice(group.start, group.stop), group.hidden.shape[-1]
        hidden = group.hidden.repeat(1, 1, queries.shape[2], 1)  # (R, 1, heads each x K, T)
        found = write(asked, key[rows, :, :seen], value[rows, :, :seen], hidden, scale)
        wide = group.tokens.shape[1]
        attended[group.tokens] = found.unflatten(2, (-1, wide)).permute(0, 3, 1, 2, 4)
    return attended.reshape(1, -1, heads, size), None


def _read(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Every query sees the places up to its own."""
    fewer, length = key.shape[1:3]
    queries = (query[0] * scale).unflatten(0, (fewer, -1))  # (fewer heads, heads each, N, size)
    keys, values = key[0].transpose(1, 2), value[0]
    later = torch.full((BLOCK, BLOCK), float("-inf"), dtype=query.dtype, device=query.device).triu(1)
    blocks = []
    for start in range(0, length, BLOCK):
        stop = min(start + BLOCK, length)
        own = queries[:, :, start:stop]
        scores = torch.bmm(own.flatten(1, 2), keys[:, :, :stop]).unflatten(1, own.shape[1:3])
        scores[..., start:] += later[: stop - start, : stop - start]
        weights = torch.softmax(scores, -1)
        blocks.append(torch.bmm(weights.flatten(1, 2), values[:, :stop]).unflatten(1, own.shape[1:3]))
    return torch.cat(blocks, dim=2).flatten(0, 1).transpose(0, 1)[None]


def _read_by_torch(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    found = functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=True)
    return found.transpose(1, 2)


def _write(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor, scale: float) -> Tensor:
    """As `_write_by_torch`; keys stand left, for a product with few columns is faster than one with few rows."""
    both = query.shape[:2]
    scores = torch.bmm(key.flatten(0, 1), (query * scale).flatten(0, 1).transpose(1, 2))
    scores = scores.transpose(1, 2).contiguous().unflatten(0, both).add_(hidden)
    return torch.bmm(torch.softmax(scores, -1).flatten(0, 1), value.flatten(0, 1)).unflatten(0, both)


def _write_by_torch(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor, scale: float) -> Tensor:
    """query: (R, heads, Q, size), key and value: (R, heads, T, size), hidden: (R, 1, Q, T)."""
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=hidden, scale=scale)


AttentionInterface.register(NAME, attend)
