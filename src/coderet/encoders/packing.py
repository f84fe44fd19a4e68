"""Texts of many lengths through a transformer in one row of tokens: nothing is padded to the longest of a batch.

All that works on tokens one by one (by far the most) sees one long text. Attention is computed by groups of texts of
one width, a multiple of STEP, so that no text is padded by more than STEP - 1 tokens. transformers calls it as an
attention of its own, PACKED, and passes on which tokens belong together.

On processors this is also faster than the attentions that transformers offers, in bf16: its eager one adds a mask in
float32, and PyTorch's fused one goes backward 3.6 times as slowly (bench/finetuning.py).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout as drop
from transformers import AttentionInterface

PACKED = "packed"
STEP = 8
# Models whose every token sees every other, at places that can be given.
KINDS = ("bert", "roberta", "xlm-roberta", "camembert")


@dataclass(frozen=True, eq=False)
class Layout:
    """Where B texts lie in one row of P tokens.

    tokens: (P,) places in the flattened (B, T) batch. positions: (P,) places in the texts, from 0 on. groups: the
    number of texts and the width of each group, in order. masks: for each group what is added to its scores,
    (texts, 1, 1, width), or None where no text of it is padded.
    """

    tokens: Tensor
    positions: Tensor
    groups: tuple[tuple[int, int], ...]
    masks: tuple[Tensor | None, ...]


def layout(mask: Tensor) -> Layout:
    """The layout of texts under a bool mask (B, T) that is true on the first tokens of each row and false behind."""
    lengths = mask.sum(1)
    widths = (lengths.clamp_min(1) + STEP - 1) // STEP * STEP
    tokens, positions, groups, masks = [], [], [], []
    for width in widths.unique().tolist():
        rows = (widths == width).nonzero()
        places = torch.arange(width, device=mask.device)
        # A width beyond the batch's own is padded with whatever is last in the row: the mask hides it.
        tokens.append((rows * mask.shape[1] + places.clamp_max(mask.shape[1] - 1)).flatten())
        positions.append(places.repeat(len(rows)))
        groups.append((len(rows), width))
        hidden = places >= lengths[rows]
        added = torch.zeros(hidden.shape, device=mask.device).masked_fill(hidden, torch.finfo(torch.bfloat16).min)
        masks.append(added[:, None, None] if hidden.any() else None)
    return Layout(torch.cat(tokens), torch.cat(positions), tuple(groups), tuple(masks))


def states(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """What model makes of token ids (B, T) under a bool mask (B, T), (B, T, D); zero where nothing is.

    model: one of KINDS, opened with the attention PACKED.
    """
    held = layout(mask)
    # RoBERTa's places begin behind that of padding.
    first = getattr(model.get_input_embeddings(), "padding_idx", None)
    places = held.positions + (0 if model.config.model_type == "bert" else int(first or 0) + 1)
    made = model(input_ids=ids.flatten()[held.tokens][None], position_ids=places[None], packed=held).last_hidden_state[
        0
    ]
    real = mask.flatten()[held.tokens] & (held.tokens % mask.shape[1] == held.positions)
    whole = made.new_zeros(mask.numel(), made.shape[-1])
    return whole.index_put((held.tokens[real],), made[real]).unflatten(0, tuple(mask.shape))


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    packed: Layout | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Softmax attention inside each group; query, key, value are (1, H, P, D), the answer is (1, P, H, D)."""
    assert packed is not None
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    sizes = [texts * width for texts, width in packed.groups]
    sides = [side[0].transpose(0, 1).split(sizes) for side in (query * scaling, key, value)]
    parts = []
    for (texts, width), mask, *group in zip(packed.groups, packed.masks, *sides, strict=True):
        q, k, v = (each.unflatten(0, (texts, width)).transpose(1, 2) for each in group)  # (texts, H, width, D)
        scores = q @ k.transpose(2, 3)
        if mask is not None:
            scores = scores + mask.to(scores.dtype)
        weights = drop(scores.softmax(-1), dropout, module.training)
        parts.append((weights @ v).transpose(1, 2).flatten(0, 1))
    return torch.cat(parts)[None], None


AttentionInterface.register(PACKED, attention)  # type: ignore[no-untyped-call]
