"""Prompts as a model reads them, and what it wrote as text: by the tokenizer and the chat template in its folder.

Text that stands in a prompt is read as it is: where a document holds a mark of the template, the model reads the mark.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coderet.generators.base import Layout, Prompt
from coderet.records import DataError
from coderet.sampling import Sampling
from coderet.serving import counting

TAIL = 4  # tokens before a completion that decide whether its first word begins with a blank


class Wording:
    """layout: None is `chat` where the folder has a chat template, else `base`."""

    def __init__(self, folder: Path, layout: Layout | None = None) -> None:
        from transformers import AutoTokenizer

        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # transformers raises whatever a broken file makes of itself
            raise DataError(f"{folder} does not hold a whole tokenizer that transformers reads: {error}") from error
        if not self.tokenizer.is_fast:
            raise DataError(f"{folder} has a tokenizer without a fast version, which is not supported")
        self._folder = folder
        templated = bool(getattr(self.tokenizer, "chat_template", None))
        self.layout: Layout = layout or ("chat" if templated else "base")
        if self.layout == "chat" and not templated:
            raise DataError(f"{folder} has no chat template; set layout to base, or take a model that has one")
        self._system = self.layout == "base" or self._takes_system()

    def text(self, prompt: Prompt) -> str:
        """The whole prompt, up to where the completion begins."""
        if self.layout == "base":
            return prompt.system + prompt.user + prompt.start
        user = prompt.user if self._system or not prompt.system else f"{prompt.system}\n\n{prompt.user}"
        messages = [{"role": "user", "content": user}]
        if prompt.system and self._system:
            messages.insert(0, {"role": "system", "content": prompt.system})
        return self._templated(messages) + prompt.start

    def ids(self, prompt: Prompt) -> list[int]:
        """The tokens of the prompt; a chat template puts its marks itself, before plain text the tokenizer does."""
        found: list[int] = self.tokenizer(
            self.text(prompt), add_special_tokens=self.layout == "base", return_attention_mask=False, verbose=False
        )["input_ids"]
        if self.layout == "base" and found and found[-1] == self.tokenizer.eos_token_id:
            del found[-1]  # a mark that the text has ended
        return found

    def said(self, before: Sequence[int], ids: Sequence[int]) -> str:
        """The text of ids that were written after before, special tokens left out."""
        tail = list(before[-TAIL:])
        known, both = self._decoded(tail), self._decoded([*tail, *ids])
        return both[len(known) :] if both.startswith(known) else self._decoded(ids)

    @property
    def template_tokens(self) -> int:
        """What the template, its own system message included, puts around a prompt without one."""
        return len(self.ids(Prompt("")))

    def count_tokens(self, text: str) -> int:
        return len(self._encoded(text).ids)

    def cut(self, text: str, tokens: int) -> str:
        encoded = self._encoded(text)
        return text if len(encoded.ids) <= tokens else counting.first(text, encoded, tokens)

    def ends(self, *said: Any) -> frozenset[int]:
        """The ids that end a completion: the tokenizer's own, and what a model's config says, a number or several."""
        named = [self.tokenizer.eos_token_id, *said]
        every = [each for one in named for each in (one if isinstance(one, list | tuple) else [one])]
        return frozenset(int(each) for each in every if each is not None)

    def _encoded(self, text: str) -> Any:
        return self.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)

    def _decoded(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def _templated(self, messages: list[dict[str, str]]) -> str:
        text: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return text

    def _takes_system(self) -> bool:
        """Whether the template has a place for a system message; some raise, others leave it out."""
        mark = "<what the system says>"
        try:
            return mark in self._templated([{"role": "system", "content": mark}, {"role": "user", "content": "a"}])
        except Exception:  # of the template
            return False


class Worded:
    """A generator whose prompts a `Wording` makes: what both kinds that hold a model themselves have of it."""

    _wording: Wording
    window: int

    @property
    def template_tokens(self) -> int:
        return self._wording.template_tokens

    def count_tokens(self, text: str) -> int:
        return self._wording.count_tokens(text)

    def cut(self, text: str, tokens: int) -> str:
        return self._wording.cut(text, tokens)

    def fitting(self, place: int, prompt: Prompt, sampling: Sampling) -> tuple[list[int], int]:
        """The tokens of the prompt at place, and how many its completion may have; DataError if none are left."""
        ids = self._wording.ids(prompt)
        left = self.window - len(ids)
        if not ids or left < 1:
            raise DataError(
                f"prompt {place} has {len(ids)} tokens, wanted from 1 to {self.window - 1}, for the window is "
                f"{self.window} and a completion needs room; pack it with a smaller budget"
            )
        return ids, min(left, sampling.max_new_tokens)
