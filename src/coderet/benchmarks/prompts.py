"""A problem and its context put into a generator's window, by one rule for all generators.

The question is always whole: of a prompt's parts only documents are cut. They are kept in the order of the run; the
first that does not fit is cut to its first whole lines, and all behind it are dropped. What became of each is part of
the outcome. A question that alone is too long is an error, never a prompt cut somewhere.

Tokens are counted part by part and a text once only, however many prompts it stands in; tokens that form across the
edges of parts are covered by a reserve, and what a chat template adds the generator says.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

from coderet.benchmarks.answering import Answering, Document, Layout, Parts, Problem
from coderet.records import DataError

Order = Literal["rank", "reversed", "file"]
RESERVE = 8
"""Tokens kept free for what forms across the edges of parts."""


class Tokenizer(Protocol):
    """Of a generator: how many tokens a text has, its longest beginning of at most so many, and what its template adds
    to a prompt."""

    @property
    def template_tokens(self) -> int: ...

    def count_tokens(self, text: str) -> int: ...

    def cut(self, text: str, tokens: int) -> str: ...


@dataclass
class Counter:
    """Counts each text once."""

    tokenizer: Tokenizer
    known: dict[str, int] = field(default_factory=dict)

    @cached_property
    def around(self) -> int:
        """Tokens of a prompt that are in none of its parts."""
        return RESERVE + self.tokenizer.template_tokens

    def __call__(self, text: str) -> int:
        if not text:
            return 0
        if text not in self.known:
            self.known[text] = self.tokenizer.count_tokens(text)
        return self.known[text]


class Shown(NamedTuple):
    """A document in a prompt: its id, its tokens, and how many of them are shown; none where it was dropped."""

    id: str
    tokens: int
    kept: int


class Packed(NamedTuple):
    """A prompt that fits. user: everything between system and start; context: the part of it that documents make.

    texts: the documents as they are shown; tokens: as counted here, the reserve included.
    """

    system: str
    user: str
    context: str
    texts: tuple[str, ...]
    start: str
    stop: tuple[str, ...]
    shown: tuple[Shown, ...]
    tokens: int

    @property
    def truncated(self) -> bool:
        """Whether some of the context is missing."""
        return any(each.kept < each.tokens for each in self.shown)


def pack(
    answering: Answering,
    name: str,
    problem: Problem,
    documents: Sequence[Document],
    layout: Layout,
    counter: Counter,
    *,
    window: int,
    budget: int | None = None,
    order: Order = "rank",
) -> Packed:
    """The prompt of a problem with as much of its documents as fit.

    window: tokens that question and context may have together; budget: tokens that the documents may have, None for
    as many as fit. order: in which those that fit stand. DataError, with the name of the problem, if the question
    alone is longer than the window.
    """
    for number in (len(documents), 0):
        parts = answering.prompt(problem, documents[:number], layout)
        room = window - _question(parts, counter)
        if room < 0 and number:
            continue
        if room < 0:
            raise DataError(
                f"{name}: the question alone has {window - room} tokens and the window leaves it {window}; take a "
                "generator with a longer window, or lower answering.sampling.max_new_tokens"
            )
        texts, kept = _fitting(parts, room if budget is None else min(room, budget), counter)
        if texts or not number:  # a prompt without documents reads otherwise
            break
    tokens = [counter(each) for each in parts.documents] or [counter(each.text) for each in documents]
    kept += [0] * (len(documents) - len(kept))
    shown = tuple(Shown(each.id, *both) for each, *both in zip(documents, tokens, kept, strict=True))
    texts = [texts[place] for place in arranged([each.id for each in documents[: len(texts)]], order)]
    context = parts.joiner.join(texts)
    joiners = counter(parts.joiner) * max(0, len(texts) - 1)
    length = _question(parts, counter) + sum(kept) + joiners
    user = f"{parts.before}{context}{parts.after}"
    return Packed(parts.system, user, context, tuple(texts), parts.start, parts.stop, shown, length)


def arranged(ids: Sequence[str], order: Order) -> list[int]:
    """The places of documents, given best first, as they are to stand: `file` goes by id, numbers in it as numbers."""
    places = list(range(len(ids)))
    if order == "reversed":
        return places[::-1]
    if order == "file":
        return sorted(places, key=lambda place: _natural(ids[place]))
    return places


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(each), "") if each.isdecimal() else (-1, each) for each in _PARTS.findall(name)]


_PARTS = re.compile(r"\d+|\D+")


def _question(parts: Parts, counter: Counter) -> int:
    return counter.around + sum(map(counter, (parts.system, parts.before, parts.after, parts.start)))


def _fitting(parts: Parts, room: int, counter: Counter) -> tuple[list[str], list[int]]:
    """The documents that fit into room, the last of them perhaps cut, and the tokens of each with its joiner's."""
    joiner = counter(parts.joiner)
    texts: list[str] = []
    kept: list[int] = []
    for text in parts.documents:
        between = joiner if texts else 0
        tokens = counter(text)
        if between + tokens > room:
            text = whole_lines(text, room - between, counter)
            tokens = counter(text)
            if not text.strip():
                break
        texts.append(text)
        kept.append(tokens)
        room -= between + tokens
        if text != parts.documents[len(texts) - 1]:
            break
    return texts, kept


def whole_lines(text: str, tokens: int, counter: Counter) -> str:
    """The first whole lines of text with at most so many tokens; of a first line that is longer, its beginning."""
    if tokens <= 0:
        return ""
    head = counter.tokenizer.cut(text, tokens)
    if len(head) >= len(text):
        return text
    if text[len(head)] == "\n":
        return head
    lines = head.rfind("\n")
    return head[:lines] if lines > 0 and head[:lines].strip() else head
