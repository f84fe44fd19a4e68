"""BM25 over two fields by Lucene: the title (a function's name) and the text, each with its own analyzer.

This is the ElasticSearch baseline of the CodeSearchNet Challenge (Husain et al., 2019): a field of the function's name
split into words and one of the whole function. Every field has its own BM25, with its own document frequencies and
lengths; a document's score is that of its best field, plus tie_breaker times the others' (`combine: best`, as
ElasticSearch's `multi_match` does by default, with tie_breaker 0), or the sum of all (`combine: sum`). Before that a
field's score is multiplied by its boost.

ElasticSearch's default analyzer is `standard`. Left out: a k1 and b for each field, and BM25F, which mixes the fields'
frequencies before it scores.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from coderet.records import Corpus, DataError
from coderet.retrievers import analysis, bm25, java, lucene_index, manifest
from coderet.retrievers.lucene_index import Field, LuceneSearcher

COMBINATIONS = ("best", "sum")


@dataclass(frozen=True, kw_only=True)
class LuceneFields:
    """kind `lucene-fields`. The analyzers shape the index; everything else only the search."""

    SEARCH: ClassVar[tuple[str, ...]] = ("combine", "tie_breaker", "title_boost", "text_boost", "k1", "b")
    parameters: ClassVar[int] = 0  # none is learned

    title_analyzer: str = "code-words"
    text_analyzer: str = "standard"
    combine: Literal["best", "sum"] = "best"
    tie_breaker: float = 0.0
    title_boost: float = 1.0
    text_boost: float = 1.0
    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        analysis.check_analyzer(self.title_analyzer, "title_analyzer")
        analysis.check_analyzer(self.text_analyzer, "text_analyzer")
        if self.combine not in COMBINATIONS:
            raise DataError(f"combine is {self.combine!r}; wanted one of {', '.join(COMBINATIONS)}")
        bm25.check_number("tie_breaker", self.tie_breaker, 1.0)
        for name in ("title_boost", "text_boost", "k1"):
            bm25.check_number(name, getattr(self, name))
        bm25.check_number("b", self.b, 1.0)

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        title_analyzer: str = "code-words",
        text_analyzer: str = "standard",
        combine: Literal["best", "sum"] = "best",
        tie_breaker: float = 0.0,
        title_boost: float = 1.0,
        text_boost: float = 1.0,
        k1: float = 1.2,
        b: float = 0.75,
    ) -> Self:
        """The retriever with these settings; folder holds nothing more. JavaError if no Java will run here."""
        java.classes()
        return cls(
            title_analyzer=title_analyzer,
            text_analyzer=text_analyzer,
            combine=combine,
            tie_breaker=tie_breaker,
            title_boost=title_boost,
            text_boost=text_boost,
            k1=k1,
            b=b,
        )

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
        return {"title_analyzer": self.title_analyzer, "text_analyzer": self.text_analyzer}

    def index(self, corpus: Corpus, folder: Path) -> Mapping[str, float | str]:
        """Facts: tokens of both fields, and documents that hold any in each. JavaError if Java fails."""
        (title_tokens, titled), (text_tokens, texts) = lucene_index.write(corpus, self._fields, folder)
        manifest.write(folder, corpus, self.settings)
        return {
            "tokens": title_tokens + text_tokens,
            "documents_with_title_tokens": titled,
            "documents_with_text_tokens": texts,
        }

    def open(self, corpus: Corpus, folder: Path) -> LuceneSearcher:
        manifest.check(folder, corpus, self.settings)
        tie_breaker = self.tie_breaker if self.combine == "best" else 1.0  # the best and all of the others: the sum
        return LuceneSearcher(folder, len(corpus), self._fields, k1=self.k1, b=self.b, tie_breaker=tie_breaker)

    @property
    def _fields(self) -> list[Field]:
        return [
            Field("title", ("title",), self.title_analyzer, self.title_boost),
            Field("text", ("text",), self.text_analyzer, self.text_boost),
        ]
