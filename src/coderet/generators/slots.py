"""Completions of many prompts at once, each in a slot of one cache: a slot that is done takes the next prompt.

A prompt is read alone, whatever waits beside it, and its keys and values are laid into its slot from the first place
on. Then all slots write a token a step. No row is padded on the left and a row never sees beyond its own tokens, so
that what a prompt gets hardly depends on its companions: only the order of additions inside the processor's matrix
products does, by the number of rows. When no prompt waits, finished slots are closed and the others move together.

Reading is what costs most where contexts are long, and a processor is busy with one; so that prompts are read one by
one costs little and wastes no padding.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

STEP = 64  # places that the view of the cache grows by


class Wanted(NamedTuple):
    """ids: a prompt, of one token at least. limit: tokens that may be written after it, at least one."""

    ids: Sequence[int]
    limit: int


class Written(NamedTuple):
    """What was written after the prompt at place, the token that ended it included; full: the limit ended it."""

    place: int
    ids: list[int]
    full: bool


Choose = Callable[[Tensor, list[int]], Tensor]
"""Tokens (B,) of logits (B, V) and the prompts' places."""
Ends = Callable[[int, list[int]], bool]
"""Whether what the prompt at a place has got so far, is all."""


class Cache:
    """Keys and values of slots, (slots, heads, places, size) a layer, made when the first are laid in.

    Models of transformers ask it by these names. `lengths`: places that each open slot has filled; `reading`: the slot
    whose prompt is read now, None while all write.
    """

    def __init__(self, slots: int, places: int) -> None:
        self.slots, self.places = slots, places
        self.reading: int | None = None
        self.lengths: Tensor = torch.zeros(0, dtype=torch.long)
        self._rows: Tensor = self.lengths
        self._seen = 0
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    def write_at(self, lengths: Tensor) -> Tensor:
        """The next token of every open slot comes to the end of its own; returns what each sees, (B, 1, 1, T) bool."""
        self.reading, self.lengths = None, lengths
        self._rows = torch.arange(len(lengths), device=lengths.device)
        self._seen = min(self.places, -(-(int(lengths.max()) + 1) // STEP) * STEP)
        return (torch.arange(self._seen, device=lengths.device) <= lengths[:, None])[:, None, None]

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        if layer_idx not in self._layers:
            # Zeros, for a place that nobody filled is multiplied by nothing, which does not help against a NaN.
            self._layers[layer_idx] = tuple(  # type: ignore[assignment]
                each.new_zeros((self.slots, each.shape[1], self.places, each.shape[3])) for each in (keys, values)
            )
        own = self._layers[layer_idx]
        if self.reading is not None:
            for all_of_it, new in zip(own, (keys, values), strict=True):
                all_of_it[self.reading, :, : new.shape[2]] = new[0]
            return keys, values
        for all_of_it, new in zip(own, (keys, values), strict=True):
            all_of_it[self._rows, :, self.lengths] = new[:, :, 0]
        open_slots = len(self._rows)
        return own[0][:open_slots, :, : self._seen], own[1][:open_slots, :, : self._seen]

    def move(self, source: int, target: int) -> None:
        for keys, values in self._layers.values():
            keys[target], values[target] = keys[source], values[source]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0

    def get_query_offset(self, layer_idx: int = 0) -> int:
        return 0

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0) -> tuple[int, int]:
        return query_length, 0


class _Row:
    """An open slot: the prompt at place, what it has got, and how many tokens stand in the cache."""

    def __init__(self, place: int, wanted: Wanted) -> None:
        self.place, self.limit, self.length = place, wanted.limit, len(wanted.ids)
        self.ids: list[int] = []


@torch.inference_mode()
def write(model: Any, wanted: Sequence[Wanted], slots: int, choose: Choose, ends: Ends) -> Iterator[Written]:
    """What model writes after each prompt, as they are done. The longest are begun first.

    model: a causal one of transformers whose attention is the full one of `sdpa`. slots: prompts at once.
    """
    if not wanted:
        return
    device = next(model.parameters()).device
    order = sorted(range(len(wanted)), key=lambda place: -len(wanted[place].ids) - wanted[place].limit)
    most = max(len(each.ids) + each.limit for each in wanted)
    cache = Cache(min(slots, len(wanted)), -(-most // STEP) * STEP)
    rows: list[_Row] = []
    while order or rows:
        while order and len(rows) < cache.slots:
            row = _Row(order[0], wanted[order[0]])
            row.ids.append(_read(model, cache, len(rows), wanted[row.place].ids, row.place, choose, device))
            del order[0]
            if (done := _done(row, ends)) is not None:
                yield done
            else:
                rows.append(row)
        if not rows:
            break
        for row, token in zip(rows, _written(model, cache, rows, choose, device), strict=True):
            row.ids.append(token)
            row.length += 1
        for slot in reversed(range(len(rows))):
            if (done := _done(rows[slot], ends)) is None:
                continue
            last = len(rows) - 1
            if slot != last:
                cache.move(last, slot)
                rows[slot] = rows[last]
            del rows[last]
            yield done


def _read(model: Any, cache: Cache, slot: int, ids: Sequence[int], place: int, choose: Choose, device: Any) -> int:
    """The first token after a prompt, whose keys and values are laid into the slot."""
    cache.reading = slot
    read = torch.tensor([list(ids)], device=device)
    logits = model(
        input_ids=read,
        position_ids=torch.arange(read.shape[1], device=device)[None],
        cache=cache,
        use_cache=True,
        logits_to_keep=1,
    ).logits[:, -1]
    return int(choose(logits, [place])[0])


def _written(model: Any, cache: Cache, rows: Sequence[_Row], choose: Choose, device: Any) -> list[int]:
    """The next token of every row."""
    lengths = torch.tensor([row.length for row in rows], device=device)
    seen = cache.write_at(lengths)
    last = torch.from_numpy(np.array([[row.ids[-1]] for row in rows])).to(device)
    logits = model(
        input_ids=last, attention_mask=seen, position_ids=lengths[:, None], cache=cache, use_cache=True
    ).logits[:, -1]
    chosen: list[int] = choose(logits, [row.place for row in rows]).tolist()
    return chosen


def _done(row: _Row, ends: Ends) -> Written | None:
    ended = ends(row.place, row.ids)
    full = len(row.ids) >= row.limit
    return Written(row.place, row.ids, not ended) if ended or full else None
