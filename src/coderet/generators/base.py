"""What a generator is: prompts in, completions out, in whatever order they come.

A prompt is in parts, so that each generator puts them together as its model was taught: a chat template for those that
follow instructions, plain text for those that continue one. `documents` is read by no model: it is what a generator
without one answers from.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from coderet.sampling import Sampling

Layout = Literal["chat", "base"]


class Prompt(NamedTuple):
    """user: all of the prompt between system and start. start: what the answer is made to begin with; a completion is
    what comes after it. stop: strings at which a completion ends, before them; sampling may have more. documents: the
    texts of the context, best first. sample: which of several answers to the same prompt is wanted, from 0.
    """

    user: str
    system: str = ""
    start: str = ""
    stop: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    sample: int = 0

    def key(self, sampling: Sampling) -> str:
        """A hash of all that decides the completion but the generator; the same for whoever asks, whenever."""
        asked = [self.system, self.user, self.start, list(self.documents), [*self.stop, *sampling.stop], self.sample]
        return hashlib.sha256(json.dumps([asked, sampling.drawn]).encode()).hexdigest()[:32]

    def seed(self, sampling: Sampling) -> int:
        """What random numbers start from, in [0, 2**63): by the prompt's content, so that each prompt's are its own and
        none depends on the prompts beside it."""
        return int(self.key(sampling), 16) % 2**63


class Completion(NamedTuple):
    """What became of the prompt at a place.

    finish: `stop` if the model or a stop string ended it, `length` if the limit of tokens did, `refused` if a server
    would not say it, `failed` if there is no completion, for which error says why. completion_tokens: as sampled, end
    marks included. stop: the stop string that ended it, which is no part of text; empty if none did.
    """

    place: int
    text: str
    finish: str
    prompt_tokens: int
    completion_tokens: int
    error: str = ""
    stop: str = ""


class Generator(Protocol):
    """window: tokens that prompt and completion may have together. identity: a hash of all that a completion depends on
    but prompt and sampling."""

    @property
    def layout(self) -> Layout: ...

    @property
    def window(self) -> int: ...

    @property
    def identity(self) -> str: ...

    @property
    def template_tokens(self) -> int:
        """Tokens that stand around a prompt's own parts."""
        ...

    def count_tokens(self, text: str) -> int:
        """Of a text that stands inside a prompt."""
        ...

    def cut(self, text: str, tokens: int) -> str:
        """The longest beginning of text that has at most so many tokens, never a part of a letter."""
        ...

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Completion]:
        """A completion of each prompt, in the order in which they are done.

        DataError, with its place, for a prompt that leaves no room in the window. An error after some completions loses
        none of them: they were given before it is raised.
        """
        ...


def parted(text: str, stops: Iterable[str]) -> tuple[str, str]:
    """text up to the first place where one of stops begins, and that one; all of text and nothing if none does."""
    found = [(place, -len(each), each) for each in stops if each and (place := text.find(each)) >= 0]
    if not found:
        return text, ""
    place, _, stop = min(found)
    return text[:place], stop


def whole(text: str) -> str:
    """text with halves of surrogate pairs joined, and replaced where they stand alone: any UTF-8 file can hold it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
