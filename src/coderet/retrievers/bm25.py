"""What both ways to BM25 share: its settings.

k1 bounds what a token earns by standing in a document often, b is how far long documents are marked down (Robertson and
Zaragoza, 2009); 1.2 and 0.75 are Lucene's and the papers'.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from coderet.records import Corpus, DataError
from coderet.retrievers import analysis


@dataclass(frozen=True, kw_only=True)
class Bm25:
    """A retriever that learns nothing. analyzer: one of `analysis.ANALYZERS`; text_fields: what is read, in order."""

    SEARCH: ClassVar[tuple[str, ...]] = ()
    parameters: ClassVar[int] = 0  # none is learned

    analyzer: str = "whitespace"
    text_fields: tuple[str, ...] = ("text",)
    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        analysis.check_analyzer(self.analyzer)
        analysis.check_fields(self.text_fields)
        check_number("k1", self.k1)
        check_number("b", self.b, 1.0)

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        analyzer: str = "whitespace",
        text_fields: Iterable[str] = ("text",),
        k1: float = 1.2,
        b: float = 0.75,
    ) -> Self:
        """The retriever with these settings; folder holds nothing more."""
        return cls(analyzer=analyzer, text_fields=analysis.check_fields(text_fields), k1=k1, b=b)

    def save(self, folder: Path) -> None:
        """Nothing is learned, so nothing is kept."""

    def truncation(self, corpus: Corpus) -> Mapping[str, int]:
        """Nothing: documents are read whole."""
        return {}

    @property
    def description(self) -> dict[str, Any]:
        """Nothing beyond its settings."""
        return {}

    @property
    def settings(self) -> dict[str, Any]:
        """All that an index of this retriever depends on."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
            if name not in self.SEARCH
        }


def check_number(name: str, value: object, top: float = math.inf) -> None:
    """Raise DataError unless value, the setting of that name, is a finite number from 0 to top."""
    right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= top and value != math.inf
    if not right:
        raise DataError(f"{name} is {value!r}; wanted a number from 0 {'on' if top == math.inf else f'to {top:g}'}")
