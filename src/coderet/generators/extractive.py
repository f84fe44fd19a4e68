"""A generator without a model: it answers with the best document of the context, word for word.

What a retriever alone solves: the least that a language model has to be better than. A prompt without documents is
answered with nothing. Tokens are the words of code and the signs between them.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coderet.generators.base import Completion, Layout, Prompt, parted
from coderet.registry import check_range
from coderet.sampling import Sampling

FENCE = "```"
_TOKEN = re.compile(r"\w+|[^\w\s]|\s+")


class Extractive:
    """kind `extractive`. layout: how prompts are put; window: its tokens of prompt and completion."""

    def __init__(self, *, layout: Layout = "chat", window: int = 1_000_000) -> None:
        check_range("window", window, 1)
        self.layout, self.window, self.template_tokens = layout, window, 0
        self.identity = hashlib.sha256(f"extractive 1 {layout}".encode()).hexdigest()

    @classmethod
    def prepare(cls, work: Path, folder: Path) -> dict[str, Any]:
        """Nothing is fetched."""
        return {}

    @classmethod
    def load(cls, folder: Path, fit: Mapping[str, Any], **settings: Any) -> "Extractive":
        return cls(**settings)

    def count_tokens(self, text: str) -> int:
        return sum(1 for _ in _TOKEN.finditer(text))

    def cut(self, text: str, tokens: int) -> str:
        for count, match in enumerate(_TOKEN.finditer(text)):
            if count == tokens:
                return text[: match.start()]
        return text

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Completion]:
        """The limit of new tokens does not cut a document: half of one is no document."""
        for place, prompt in enumerate(prompts):
            text = _continued(prompt.documents[0], prompt.start) if prompt.documents else ""
            text, stop = parted(text, sampling.stop)
            asked = self.count_tokens(prompt.system + prompt.user + prompt.start)
            yield Completion(place, text, "stop", asked, self.count_tokens(text), stop=stop)


def _continued(document: str, start: str) -> str:
    """document as what comes after start: within an open fence, and without a beginning that start has already.

    A prompt's own stop strings are not heeded: they are for models that run on.
    """
    fenced = start.rpartition(FENCE)[2] if start.count(FENCE) % 2 else ""
    head = (fenced.partition("\n")[2] if fenced else start).strip()
    if head and head in document:
        document = document.partition(head)[2]
    if fenced or start.endswith(FENCE):
        return f"{document}\n{FENCE}"
    return document if start else f"{FENCE}\n{document}\n{FENCE}"
