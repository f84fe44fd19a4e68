"""BM25 by Lucene, as the papers' baselines have it, with its raw float32 scores.

The query is Anserini's bag of words: every distinct token a clause, weighted by how often it stands in the query. An
index holds token frequencies and lengths only; k1 and b are the searcher's, so changing them indexes nothing again. It
is written by one thread into one segment, so that Lucene's document numbers are the rows of the corpus and equal scores
come lowest row first, at the cutoff too. Anserini's own searcher is left out: it rounds scores and lowers ties.

Hits come out of Java as text, a query at a time (one call for all hits instead of one a hit), floats in the shortest
form that reads back the same.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.json

from coderet.metrics import efficiency
from coderet.records import NO_HIT, Corpus, DataError
from coderet.retrievers import analysis, java, manifest
from coderet.retrievers.bm25 import Bm25

_FIELD = "text"
_BUFFER_MEGABYTES = 128.0  # of postings before Lucene flushes; well under the heap
_DOCUMENTS_A_CHUNK = 8_192
_QUERIES_A_CHUNK = 1_024
_TEXT = "(Ljava/lang/String;Ljava/lang/CharSequence;Lorg/apache/lucene/index/IndexableFieldType;)V"
_ANSWER = pa.schema(
    [("scoreDocs", pa.list_(pa.struct([("score", pa.float32()), ("doc", pa.int32())])))],
)


class Lucene(Bm25):
    """kind `lucene`. analyzer and text_fields shape the index; k1 and b only the search."""

    SEARCH = ("k1", "b")

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
        """As for every BM25; Java starts here, so that no index is timed with its start. JavaError if it cannot."""
        java.classes()
        return super().load(folder, analyzer=analyzer, text_fields=text_fields, k1=k1, b=b)

    def index(self, corpus: Corpus, folder: Path) -> Mapping[str, float | str]:
        """Facts: tokens, and documents that hold any. java.JavaError if there is no Java or it fails."""
        folder.mkdir(parents=True, exist_ok=True)
        with java.speaking_of(f"indexing corpus {corpus.name} with Lucene"):
            tokens, documents = _write_index(corpus, self.analyzer, self.text_fields, folder)
        manifest.write(folder, corpus, self.settings)
        return {"tokens": tokens, "documents_with_tokens": documents}

    def open(self, corpus: Corpus, folder: Path) -> "LuceneSearcher":
        manifest.check(folder, corpus, self.settings)
        with java.speaking_of(f"opening {folder} with Lucene"):
            return LuceneSearcher(folder, len(corpus), self.analyzer, self.k1, self.b)


class LuceneSearcher:
    """An open Lucene index of so many documents; several queries are answered by several threads."""

    def __init__(self, folder: Path, documents: int, analyzer: str, k1: float, b: float) -> None:
        find = java.classes()
        reader = find("org.apache.lucene.index.DirectoryReader").open(_directory(folder))
        if reader.maxDoc() != documents or reader.leaves().size() > 1:
            raise DataError(
                f"{folder} has {reader.maxDoc()} documents in {reader.leaves().size()} segments, "
                f"wanted {documents} in one; index again"
            )
        searcher = find("org.apache.lucene.search.IndexSearcher")
        searcher.setMaxClauseCount(2**31 - 1)  # a query may be a whole file
        self._searcher = searcher(reader, signature="(Lorg/apache/lucene/index/IndexReader;)V")
        self._searcher.setSimilarity(_similarity(k1, b))
        self._analyzer = _lucene_analyzer(analyzer)
        self._generator = find("io.anserini.search.query.BagOfWordsQueryGenerator")()
        self._writer = find("com.fasterxml.jackson.databind.ObjectMapper")()
        self._documents, self._words = documents, analyzer
        self._threads = ThreadPoolExecutor(efficiency.threads(), thread_name_prefix="lucene")

    def search(self, queries: pa.ChunkedArray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(Q, k) rows and scores; a query without tokens, or whose tokens no document holds, has no hits."""
        rows = np.full((len(queries), k), NO_HIT, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        depth = min(k, self._documents)
        if not depth:
            return rows, scores
        with java.speaking_of("searching with Lucene"):
            for start in range(0, len(queries), _QUERIES_A_CHUNK):
                texts = analysis.prepared(queries.slice(start, _QUERIES_A_CHUNK), self._words)
                run = map if len(texts) == 1 else self._threads.map
                answers = list(run(lambda text: self._answer(text, depth), texts))
                part = slice(start, start + len(texts))
                _place(answers, rows[part], scores[part])
        return rows, scores

    def _answer(self, text: str, k: int) -> str:
        """Lucene's hits as JSON, by the field names of its TopDocs."""
        query = self._generator.buildQuery(_FIELD, self._analyzer, text)
        answer: str = self._writer.writeValueAsString(self._searcher.search(query, k))
        return answer


def _write_index(corpus: Corpus, analyzer: str, fields: tuple[str, ...], folder: Path) -> tuple[int, int]:
    """Index the assembled texts; (tokens, documents that hold any)."""
    find = java.classes()
    config = find("org.apache.lucene.index.IndexWriterConfig")(_lucene_analyzer(analyzer))
    config.setRAMBufferSizeMB(_BUFFER_MEGABYTES)
    config.setMergePolicy(find("org.apache.lucene.index.LogDocMergePolicy")())  # only neighbours: rows stay in order
    config.setMergeScheduler(find("org.apache.lucene.index.SerialMergeScheduler")())
    config.setUseCompoundFile(False)
    kind = find("org.apache.lucene.document.FieldType")()
    kind.setIndexOptions(find("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS)
    kind.setTokenized(True)
    kind.freeze()
    field = find("org.apache.lucene.document.Field")(_FIELD, "", kind, signature=_TEXT)
    document = find("org.apache.lucene.document.Document")()
    document.add(field)
    directory = _directory(folder)
    writer = find("org.apache.lucene.index.IndexWriter")(directory, config)
    try:
        for start in range(0, len(corpus), _DOCUMENTS_A_CHUNK):
            rows = slice(start, min(start + _DOCUMENTS_A_CHUNK, len(corpus)))
            for text in analysis.prepared(corpus.texts(fields, rows), analyzer):
                field.setStringValue(text)
                writer.addDocument(document)
        writer.forceMerge(1)
        writer.commit()
    finally:
        writer.close()
    reader = find("org.apache.lucene.index.DirectoryReader").open(directory)
    facts = reader.getSumTotalTermFreq(_FIELD), reader.getDocCount(_FIELD)
    reader.close()
    return facts


def _directory(folder: Path) -> Any:
    find = java.classes()
    return find("org.apache.lucene.store.FSDirectory").open(find("java.io.File")(str(folder)).toPath())


def _lucene_analyzer(analyzer: str) -> Any:
    find = java.classes()
    if analyzer == "english":
        return find("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    return find("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()


def _similarity(k1: float, b: float) -> Any:
    return java.classes()("org.apache.lucene.search.similarities.BM25Similarity")(k1, b, signature="(FF)V")


def _place(answers: list[str], rows: np.ndarray, scores: np.ndarray) -> None:
    """Write the hits of each answer into its row of rows and scores (both (Q, k))."""
    lines = "\n".join(answers).encode()
    table = pyarrow.json.read_json(
        BytesIO(lines),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pyarrow.json.ParseOptions(explicit_schema=_ANSWER, unexpected_field_behavior="ignore"),
    )
    hits = table["scoreDocs"].combine_chunks()
    lengths = np.diff(hits.offsets.to_numpy())
    owners = np.repeat(np.arange(len(answers)), lengths)
    places = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    columns = hits.values.flatten()  # score, doc
    scores[owners, places] = columns[0].to_numpy(zero_copy_only=False)
    rows[owners, places] = columns[1].to_numpy(zero_copy_only=False)
