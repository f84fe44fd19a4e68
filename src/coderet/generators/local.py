"""Any causal model of transformers as a generator, in this process.

Many prompts are written at once, in slots (`slots`), and what only repeats is written several tokens at a time
(`guessing`). Greedy completions depend on companions only through rounding: in fp32 next to never, in bf16 where two
tokens are nearly equally likely. Sampled ones draw from random numbers of their
own prompt, so that a run that goes on gives what one that was not stopped would have.

Of models with a sliding window only that much is used, for there the window sees all. Left out: models whose attention
is not the usual one (ALiBi, soft caps, states of recurrent layers), encoder-decoders, and checkpoints that bring code
of their own. Serve these with vLLM and take the kind `openai`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.utils import logging as transformers_logging

from coderet.corpora import sources
from coderet.generators import attention, drawing, model_folder, slots, stretching
from coderet.generators.base import Completion, Layout, Prompt, parted
from coderet.generators.wording import Worded, Wording
from coderet.precision import computing_type
from coderet.records import DataError
from coderet.registry import check_range
from coderet.sampling import Sampling

BATCH = {"cpu": 64, "cuda": 128}
CACHE_GIGABYTES = {"cpu": 4.0, "cuda": 16.0}
GIGABYTE = 2**30
REVISION = (
    2  # of how attention is computed: another one rounds otherwise, and now and then another token is the likeliest
)
SLACK = 8  # tokens that may have no letter of their own
ELSEWHERE = "serve it with vLLM and name the server in a generator of kind openai"


class Local(Worded):
    """kind `local`, from a model folder.

    layout: `chat` by the model's template or `base` for plain continuation; None is chat where there is a template.
    window: tokens of prompt and completion together, None for what the model has. precision: fp32, bf16, or auto, which
    is bf16 where the processor computes in it and fp32 elsewhere. batch: prompts that are written at once, None for 64
    on a processor and 128 on a graphics processor; fewer where their keys and values would need more than
    cache_gigabytes. rope: how rotary positions are stretched, as transformers has it, such as
    `{rope_type: yarn, factor: 4.0}`; the window is then that of the model times factor.
    """

    def __init__(
        self,
        folder: Path,
        *,
        layout: Layout | None = None,
        window: int | None = None,
        precision: Literal["auto", "fp32", "bf16"] = "auto",
        batch: int | None = None,
        cache_gigabytes: float | None = None,
        rope: Mapping[str, Any] | None = None,
    ) -> None:
        self._folder = folder
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._dtype = computing_type(precision, self._device)
        self._wording = Wording(folder, layout)
        self._rope = stretching.checked(rope)
        self._model = _open(folder, self._dtype, self._rope).to(self._device)
        self.layout = self._wording.layout
        self.window = _window(self._model.config, window)
        self._batch = BATCH[self._device] if batch is None else batch
        check_range("batch", self._batch, 1)
        self._room = CACHE_GIGABYTES[self._device] if cache_gigabytes is None else cache_gigabytes
        check_range("cache_gigabytes", self._room, 0.001)
        said = getattr(self._model, "generation_config", None)
        self._ends = self._wording.ends(self._model.config.eos_token_id, getattr(said, "eos_token_id", None))

    @classmethod
    def prepare(
        cls, work: Path, target: Path, *, source: str, folder: str = ".", file: str | None = None
    ) -> dict[str, Any]:
        """Put the model of a pinned source (a spec of `corpora.sources`) into target; folder: where in it.

        file: a GGUF file in folder, which is made into a plain model folder in bf16.
        """
        model_folder.prepare(source, folder, file, work, target)
        return {"source": source, "folder": folder, "file": file}

    @classmethod
    def load(cls, folder: Path, fit: Mapping[str, Any], **settings: Any) -> "Local":
        """The generator that `prepare` made; DataError if a file is missing or cut short."""
        return cls(folder / model_folder.MODEL, **settings)

    @cached_property
    def identity(self) -> str:
        """Of the model's files, the layout, and the precision and kind of device that compute."""
        facts: list[Any] = [
            "local",
            REVISION,
            sources.digest(self._folder),
            self.layout,
            str(self._dtype),
            self._device,
        ]
        facts += [self._rope] if self._rope else []
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    @property
    def parameters(self) -> int:
        """Numbers in the model."""
        return sum(weights.numel() for weights in self._model.parameters())

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Completion]:
        wanted = [slots.Wanted(*self.fitting(place, prompt, sampling)) for place, prompt in enumerate(prompts)]
        stops = [tuple(dict.fromkeys((*prompt.stop, *sampling.stop))) for prompt in prompts]
        numbers: dict[int, np.ndarray] = {}  # of the prompts that are written, one for each token

        def choose(logits: Tensor, asked: list[tuple[int, int]]) -> Tensor:
            if sampling.greedy:
                return drawing.likeliest(logits)
            for place in {place for place, _ in asked} - numbers.keys():
                own = np.random.Generator(np.random.Philox(key=prompts[place].seed(sampling)))
                numbers[place] = own.random(wanted[place].limit)
            return drawing.drawn(logits, sampling, np.array([numbers[place][at] for place, at in asked]))

        def ends(place: int, ids: list[int]) -> bool:
            return ids[-1] in self._ends or self._stopped(ids, stops[place])

        try:
            for done in slots.write(self._model, wanted, self._slots(wanted), choose, ends):
                numbers.pop(done.place, None)
                before = wanted[done.place].ids
                ids = done.ids[:-1] if done.ids[-1] in self._ends else done.ids
                said = self._wording.said(before, ids)
                text, stop = parted(said, stops[done.place])
                finish = "length" if done.full and not stop else "stop"
                yield Completion(done.place, text, finish, len(before), len(done.ids), stop=stop)
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise DataError(self._too_much(wanted)) from error
        except RuntimeError as error:  # of a processor's memory torch says so in words only
            if "allocate memory" not in str(error):
                raise
            raise DataError(self._too_much(wanted)) from error

    def _stopped(self, ids: list[int], stops: Sequence[str]) -> bool:
        """Whether a stop string has just been completed: only the last tokens are read, each of which has a letter."""
        if not stops:
            return False
        longest = max(len(each.encode()) for each in stops) + SLACK
        return any(each in self._wording.said([], ids[-longest:]) for each in stops)

    def _slots(self, wanted: Sequence[slots.Wanted]) -> int:
        """As many as there is room for, one at least."""
        config = self._model.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        token = 2 * config.num_hidden_layers * heads * size * self._dtype.itemsize
        longest = max((len(each.ids) + each.limit for each in wanted), default=1)
        return max(1, min(self._batch, int(self._room * GIGABYTE / (token * longest))))

    def _too_much(self, wanted: Sequence[slots.Wanted]) -> str:
        longest = max(len(each.ids) + each.limit for each in wanted)
        return (
            f"memory is used up by {self._slots(wanted)} prompts at once, of up to {longest:,} tokens each, answers "
            "included. Lower batch or cache_gigabytes of the generator, max_new_tokens of sampling or the context's "
            "budget; what was answered before is kept"
        )


def _open(folder: Path, dtype: torch.dtype, rope: Mapping[str, Any] = {}) -> Any:
    """The model in folder; DataError unless it is whole and of a kind that is written with here."""
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if not folder.is_dir():
        raise DataError(f"there is no model folder {folder}; prepare the generator again")
    try:
        settings = {"config": stretching.stretched(folder, rope)} if rope else {}
        opened: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, local_files_only=True, attn_implementation="sdpa", output_loading_info=True, **settings
        )
    except Exception as error:  # transformers raises whatever a broken file makes of itself
        raise DataError(
            f"{folder} does not hold a whole causal model that transformers reads with usual attention: {error}. If it "
            f"is whole, {ELSEWHERE}"
        ) from error
    model, loaded = opened
    if missing := sorted(loaded["missing_keys"]):
        raise DataError(
            f"{folder} lacks {len(missing)} weights of a {type(model).__name__}, such as {missing[0]}: it is not "
            "whole, or its config.json names another architecture than its weights are of"
        )
    kinds = {*(getattr(model.config.get_text_config(), "layer_types", None) or ())}
    if not getattr(model, "_supports_attention_backend", False) or kinds - {"full_attention", "sliding_attention"}:
        raise DataError(f"{folder} is a {type(model).__name__}, whose attention is not the usual one; {ELSEWHERE}")
    model.set_attn_implementation(attention.NAME)
    return model.eval()


def _window(config: Any, asked: int | None) -> int:
    """Tokens that the model sees all at once."""
    text = config.get_text_config()
    sliding = getattr(text, "sliding_window", None) if getattr(text, "use_sliding_window", True) else None
    known = [places for places in (getattr(text, "max_position_embeddings", None), sliding) if places]
    if not known and asked is None:
        raise DataError("the model's config.json names no limit of tokens; set window")
    if asked is None:
        return int(min(known))
    check_range("window", asked, 2, *([min(known)] if known else []))
    return asked
