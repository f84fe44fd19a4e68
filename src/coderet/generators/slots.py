"""Completions of many prompts at once, each in a slot of one cache: a slot that is done takes the next prompt.

A prompt is read alone, whatever waits beside it, and its keys and values are laid into its slot from the first place
on. Then all slots write, each a token a step and as many more as it guessed right (`guessing`). Tokens of a step stand
in one row without padding, and a slot sees only its own, so that what a prompt gets hardly depends on its companions:
only the order of additions inside the processor's matrix products does, by the number of tokens. When no prompt waits,
finished slots are closed and the others move together.

Reading is what costs most where contexts are long, and a processor is busy with one; so that prompts are read one by
one costs little and wastes no padding.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from coderet.generators import attention
from coderet.generators.guessing import Echo


class Wanted(NamedTuple):
    """ids: a prompt, of one token at least. limit: tokens that may be written after it, at least one."""

    ids: Sequence[int]
    limit: int


class Written(NamedTuple):
    """What was written after the prompt at place, the token that ended it included; full: the limit ended it."""

    place: int
    ids: list[int]
    full: bool


Choose = Callable[[Tensor, list[tuple[int, int]]], Tensor]
"""Tokens (N,) of logits (N, V), of each the prompt's place and how many tokens the completion has before it."""
Ends = Callable[[int, list[int]], bool]
"""Whether what the prompt at a place has got so far, is all."""


class Cache:
    """Keys and values of slots, (slots, heads, places, size) a layer, made when the first are laid in.

    Models of transformers ask it by these names. `reading`: the slot whose prompt is read now; `step`: what is written
    while none is.
    """

    def __init__(self, slots: int, places: int) -> None:
        self.slots, self.places = slots, places
        self.reading: int | None = None
        self.step: attention.Step | None = None
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

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
        assert self.step is not None
        for all_of_it, new in zip(own, (keys, values), strict=True):
            all_of_it[self.step.slots, :, self.step.places] = new[0].transpose(0, 1)
        return own

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
        self._echo = Echo(wanted.ids)
        self.guess: list[int] = []

    @property
    def next(self) -> list[int]:
        """The tokens that are read next: the last one that stands, and what is guessed to come after it."""
        return [self.ids[-1], *self.guess]

    def take(self, chosen: Sequence[int], ends: Ends) -> Written | None:
        """Keep what was chosen after each of `next`, up to the first that was guessed wrong; all there is, if done."""
        right = 0
        for token, guessed in zip(chosen, [*self.guess, None], strict=True):
            self.ids.append(token)
            self._echo.add(token)
            self.length += 1
            ended = ends(self.place, self.ids)
            if ended or len(self.ids) >= self.limit:
                return Written(self.place, self.ids, not ended)
            if token != guessed:
                break
            right += 1
        self._echo.checked(len(self.guess), right)
        self.guess = self._echo.guess(self.limit - len(self.ids) - 1)
        return None


@torch.inference_mode()
def write(model: Any, wanted: Sequence[Wanted], slots: int, choose: Choose, ends: Ends) -> Iterator[Written]:
    """What model writes after each prompt, as they are done. The longest are begun first.

    model: a causal one of transformers whose attention is that of `attention`. slots: prompts at once.
    """
    if not wanted:
        return
    device = next(model.parameters()).device
    order = sorted(range(len(wanted)), key=lambda place: -len(wanted[place].ids) - wanted[place].limit)
    cache = Cache(min(slots, len(wanted)), max(len(each.ids) + each.limit for each in wanted))
    rows: list[_Row] = []
    while order or rows:
        while order and len(rows) < cache.slots:
            row = _Row(order[0], wanted[order[0]])
            first = _read(model, cache, len(rows), wanted[row.place].ids, row.place, choose, device)
            del order[0]
            row.length -= 1  # its last token was read with the prompt
            if (done := row.take([first], ends)) is not None:
                yield done
            else:
                rows.append(row)
        if not rows:
            break
        chosen = _written(model, cache, rows, choose, device)
        finished = [row.take(own, ends) for row, own in zip(rows, chosen, strict=True)]
        for slot in reversed(range(len(rows))):
            if (done := finished[slot]) is None:
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
    return int(choose(logits, [(place, 0)])[0])


def _written(model: Any, cache: Cache, rows: Sequence[_Row], choose: Choose, device: Any) -> list[list[int]]:
    """What every row has after each of its next tokens."""
    read = [row.next for row in rows]
    dtype = next(model.parameters()).dtype
    step = attention.step([row.length for row in rows], [len(each) for each in read], device, dtype)
    cache.reading, cache.step = None, step
    ids = torch.tensor([[token for own in read for token in own]], device=device)
    logits = model(input_ids=ids, position_ids=step.places[None], cache=cache, use_cache=True, step=step).logits[0]
    asked = [(row.place, len(row.ids) + at) for row, own in zip(rows, read, strict=True) for at in range(len(own))]
    chosen = iter(choose(logits, asked).tolist())
    return [[next(chosen) for _ in own] for own in read]
