"""BM25 by bm25s, Lucene's formula without Java: scores of every (token, document) are computed when indexing.

The same hits as kind `lucene` with the same settings. The scores are those of exact document lengths; Lucene keeps a
length in one byte, which is exact up to 40 tokens and then up to an eighth too short, so there the two differ a
little. As in Lucene, documents without a token count neither in the number of documents nor in the mean length.

Only documents that hold a token of the query are hits. k1 and b are part of the index here. Analyzers `english` and
`standard` are left out: nothing but Lucene cuts and stems exactly as Lucene.
"""

from collections.abc import Mapping
from pathlib import Path

import bm25s
import numpy as np
import pyarrow as pa

from coderet.indexes import ties
from coderet.metrics import efficiency
from coderet.records import NO_HIT, Corpus, DataError
from coderet.retrievers import analysis, manifest
from coderet.retrievers.bm25 import Bm25
from coderet.retrievers.impacts import Counts

_ROWS = "rows.npy"
_DOCUMENTS_A_CHUNK = 8_192
# Queries times documents of a searcher in all: compiling costs some 5 s of processor time, then saves 12 ns for each.
_COMPILED_FROM = 400_000_000


class Bm25s(Bm25):
    """kind `bm25s`. All settings shape the index."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.analyzer in analysis.BY_LUCENE_ONLY:
            raise DataError(f"analyzer is {self.analyzer!r}, which kind bm25s does not have; use kind lucene")

    def index(self, corpus: Corpus, folder: Path) -> Mapping[str, float | str]:
        """Facts: tokens, and documents that hold any."""
        counts = Counts()
        rows = []
        for start in range(0, len(corpus), _DOCUMENTS_A_CHUNK):
            part = slice(start, min(start + _DOCUMENTS_A_CHUNK, len(corpus)))
            texts = corpus.texts(self.text_fields, part).to_pylist()
            documents = [analysis.tokens(text, self.analyzer) for text in texts]
            rows.append(start + np.flatnonzero([bool(words) for words in documents]))
            counts.add([words for words in documents if words])
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / _ROWS, np.concatenate(rows or [np.empty(0, np.int64)]))
        if len(counts):
            scorer = bm25s.BM25(method="lucene", k1=self.k1, b=self.b)
            scorer.vocab_dict, scorer.nonoccurrence_array = dict(counts.vocabulary), None
            data, indices, indptr, documents_with_tokens = counts.impacts(self.k1, self.b)
            scorer.scores = {"data": data, "indices": indices, "indptr": indptr, "num_docs": documents_with_tokens}
            scorer.save(folder, show_progress=False)
        manifest.write(folder, corpus, self.settings)
        return {"tokens": counts.tokens, "documents_with_tokens": len(counts)}

    def open(self, corpus: Corpus, folder: Path) -> "Bm25sSearcher":
        manifest.check(folder, corpus, self.settings)
        try:
            rows = np.load(folder / _ROWS)
            scorer = bm25s.BM25.load(folder, mmap=True, show_progress=False) if len(rows) else None
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{folder} does not hold a whole bm25s index ({error}); index again") from None
        return Bm25sSearcher(scorer, rows, self.analyzer)


class Bm25sSearcher:
    """A bm25s index over the documents that hold a token; rows (n,) are their rows in the corpus, ascending."""

    def __init__(self, scorer: bm25s.BM25 | None, rows: np.ndarray, analyzer: str) -> None:
        self._scorer, self._rows, self._analyzer = scorer, rows, analyzer
        self._looked_at = 0

    def search(self, queries: pa.ChunkedArray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(Q, k) rows and scores; a query without tokens, or whose tokens no document holds, has no hits."""
        rows = np.full((len(queries), k), NO_HIT, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        if self._scorer is None or not k:
            return rows, scores
        asked = [self._scorer.get_tokens_ids(analysis.tokens(text, self._analyzer)) for text in queries.to_pylist()]
        answerable = [place for place, words in enumerate(asked) if words]
        self._looked_at += len(answerable) * len(self._rows)
        if self._looked_at >= _COMPILED_FROM and answerable:
            answerable = self._compiled([asked[place] for place in answerable], answerable, rows, scores)
        for place in answerable:
            column = self._scorer.get_scores_from_ids(asked[place])
            best = ties.first(column, k)
            best = best[column[best] > 0]
            rows[place, : len(best)] = self._rows[best]
            scores[place, : len(best)] = column[best]
        return rows, scores

    def _compiled(self, asked: list[list[int]], places: list[int], rows: np.ndarray, scores: np.ndarray) -> list[int]:
        """Fill in rows and scores by bm25s's compiled search; returns the places that have a tie at the cutoff."""
        assert self._scorer is not None
        depth = min(rows.shape[1], len(self._rows))
        self._scorer.backend = "numba"
        found, values = self._scorer.retrieve(
            asked, k=min(depth + 1, len(self._rows)), n_threads=efficiency.threads(), show_progress=False
        )
        self._scorer.backend = "numpy"
        tied = (values[:, depth - 1] == values[:, -1]) & (values[:, -1] > 0) & (values.shape[1] > depth)
        order = np.lexsort((found, -values), axis=1)[:, :depth]
        found, values = np.take_along_axis(found, order, 1), np.take_along_axis(values, order, 1)
        hit = values > 0
        sure = np.array(places)[~tied]
        rows[sure, :depth] = np.where(hit, self._rows[found], NO_HIT)[~tied]
        scores[sure, :depth] = np.where(hit, values, -np.inf)[~tied]
        return np.array(places)[tied].tolist()
