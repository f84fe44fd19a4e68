"""BM25 by Lucene, as the papers' baselines have it.

The query is Anserini's bag of words: every distinct token a clause, weighted by how often it stands in the query. k1
and b are the searcher's, so changing them indexes nothing again. Scores are Lucene's own float32 numbers; with
`scores: anserini` they are those of a paper that searched with Pyserini (`anserini.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from coderet.records import Corpus, DataError
from coderet.retrievers import analysis, java, lucene_index, manifest
from coderet.retrievers.bm25 import Bm25
from coderet.retrievers.lucene_index import Field, LuceneSearcher

SCORES = ("exact", "anserini")


@dataclass(frozen=True, kw_only=True)
class Lucene(Bm25):
    """kind `lucene`. analyzer and text_fields shape the index; k1, b and scores only the search."""

    SEARCH = ("k1", "b", "scores")

    scores: Literal["exact", "anserini"] = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scores not in SCORES:
            raise DataError(f"scores is {self.scores!r}; wanted one of {', '.join(SCORES)}")

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        analyzer: str = "whitespace",
        text_fields: Iterable[str] = ("text",),
        k1: float = 1.2,
        b: float = 0.75,
        scores: Literal["exact", "anserini"] = "exact",
    ) -> Self:
        """As for every BM25; Java starts here, so that no index is timed with its start. JavaError if it cannot."""
        java.classes()
        return cls(analyzer=analyzer, text_fields=analysis.check_fields(text_fields), k1=k1, b=b, scores=scores)

    def index(self, corpus: Corpus, folder: Path) -> Mapping[str, float | str]:
        """Facts: tokens, and documents that hold any. java.JavaError if there is no Java or it fails."""
        [(tokens, documents)] = lucene_index.write(corpus, [self._field], folder)
        manifest.write(folder, corpus, self.settings)
        return {"tokens": tokens, "documents_with_tokens": documents}

    def open(self, corpus: Corpus, folder: Path) -> LuceneSearcher:
        manifest.check(folder, corpus, self.settings)
        return LuceneSearcher(
            folder, len(corpus), [self._field], k1=self.k1, b=self.b, anserini=self.scores == "anserini"
        )

    @property
    def _field(self) -> Field:
        return Field("text", self.text_fields, self.analyzer)
