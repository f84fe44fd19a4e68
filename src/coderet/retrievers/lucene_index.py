"""A Lucene index of a corpus, and the searcher over it: what the retrievers by Lucene share.

An index holds token frequencies and lengths only, of one or several fields. It is written by one thread into one
segment, so that Lucene's document numbers are the rows of the corpus and equal scores come lowest row first, at the
cutoff too. Anserini's own searcher is left out: it keeps documents by id and rounds scores.

Hits come out of Java as text, a query at a time (one call for all hits instead of one a hit), floats in the shortest
form that reads back the same.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json

from coderet.metrics import efficiency
from coderet.records import NO_HIT, Corpus, DataError
from coderet.retrievers import analysis, anserini, java

_BUFFER_MEGABYTES = 128.0  # of postings before Lucene flushes; well under the heap
_DOCUMENTS_A_CHUNK = 8_192
_QUERIES_A_CHUNK = 1_024
_TEXT = "(Ljava/lang/String;Ljava/lang/CharSequence;Lorg/apache/lucene/index/IndexableFieldType;)V"
_ANSWER = pa.schema(
    [("scoreDocs", pa.list_(pa.struct([("score", pa.float32()), ("doc", pa.int32())])))],
)


class Field(NamedTuple):
    """A field of an index: its name, what of a document it holds, the analyzer, and the factor of its score."""

    name: str
    text_fields: tuple[str, ...]
    analyzer: str
    boost: float = 1.0


def write(corpus: Corpus, fields: Sequence[Field], folder: Path) -> list[tuple[int, int]]:
    """Index corpus into folder, which is new; of each field its tokens, and how many documents hold any.

    java.JavaError if there is no Java or it fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with java.speaking_of(f"indexing corpus {corpus.name} with Lucene"):
        return _write(corpus, fields, folder)


class LuceneSearcher:
    """An open Lucene index of so many documents; several queries are answered by several threads.

    A document scores as in its best field, plus tie_breaker times its scores in the others. anserini: equal scores
    are in the order of Anserini, and scores are those of its SimpleSearcher.
    """

    def __init__(
        self,
        folder: Path,
        documents: int,
        fields: Sequence[Field],
        *,
        k1: float,
        b: float,
        tie_breaker: float = 0.0,
        anserini: bool = False,
    ) -> None:
        self._documents, self._fields, self._tie_breaker = documents, fields, tie_breaker
        with java.speaking_of(f"opening {folder} with Lucene"):
            self._searcher = _searcher(folder, documents, k1, b)
            self._analyzers = [_lucene_analyzer(field.analyzer) for field in fields]
            find = java.classes()
            self._generator = find("io.anserini.search.query.BagOfWordsQueryGenerator")()
            self._writer = find("com.fasterxml.jackson.databind.ObjectMapper")()
            self._highest_row_first = _best_and_highest_row_first() if anserini else None
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
                part = queries.slice(start, _QUERIES_A_CHUNK)
                texts = list(zip(*(analysis.prepared(part, field.analyzer) for field in self._fields), strict=True))
                run = map if len(texts) == 1 else self._threads.map
                answers = list(run(lambda text: self._answer(text, depth), texts))
                places = slice(start, start + len(texts))
                _place(answers, rows[places], scores[places])
        return rows, scores if self._highest_row_first is None else anserini.lowered(scores)

    def _answer(self, texts: tuple[str, ...], k: int) -> str:
        """Lucene's hits as JSON, by the field names of its TopDocs; texts are the query as each field gets it."""
        query = self._query(texts)
        if self._highest_row_first is None:
            hits = self._searcher.search(query, k)
        else:
            hits = self._searcher.search(query, k, self._highest_row_first, True)
        answer: str = self._writer.writeValueAsString(hits)
        return answer

    def _query(self, texts: tuple[str, ...]) -> Any:
        queries = [
            self._generator.buildQuery(field.name, analyzer, text)
            for field, analyzer, text in zip(self._fields, self._analyzers, texts, strict=True)
        ]
        if len(queries) == 1:
            return queries[0]
        find = java.classes()
        boosted = find("org.apache.lucene.search.BoostQuery")
        all_fields = find("java.util.ArrayList")()
        for field, query in zip(self._fields, queries, strict=True):
            all_fields.add(boosted(query, field.boost))
        return find("org.apache.lucene.search.DisjunctionMaxQuery")(all_fields, self._tie_breaker)


def _write(corpus: Corpus, fields: Sequence[Field], folder: Path) -> list[tuple[int, int]]:
    find = java.classes()
    config = find("org.apache.lucene.index.IndexWriterConfig")(_analyzer_of(fields))
    config.setRAMBufferSizeMB(_BUFFER_MEGABYTES)
    config.setMergePolicy(find("org.apache.lucene.index.LogDocMergePolicy")())  # only neighbours: rows stay in order
    config.setMergeScheduler(find("org.apache.lucene.index.SerialMergeScheduler")())
    config.setUseCompoundFile(False)
    kind = find("org.apache.lucene.document.FieldType")()
    kind.setIndexOptions(find("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS)
    kind.setTokenized(True)
    kind.freeze()
    holders = [find("org.apache.lucene.document.Field")(field.name, "", kind, signature=_TEXT) for field in fields]
    document = find("org.apache.lucene.document.Document")()
    for holder in holders:
        document.add(holder)
    directory = _directory(folder)
    writer = find("org.apache.lucene.index.IndexWriter")(directory, config)
    try:
        for start in range(0, len(corpus), _DOCUMENTS_A_CHUNK):
            rows = slice(start, min(start + _DOCUMENTS_A_CHUNK, len(corpus)))
            columns = [analysis.prepared(corpus.texts(each.text_fields, rows), each.analyzer) for each in fields]
            for texts in zip(*columns, strict=True):
                for holder, text in zip(holders, texts, strict=True):
                    holder.setStringValue(text)
                writer.addDocument(document)
        writer.forceMerge(1)
        writer.commit()
    finally:
        writer.close()
    reader = find("org.apache.lucene.index.DirectoryReader").open(directory)
    facts = [(reader.getSumTotalTermFreq(field.name), reader.getDocCount(field.name)) for field in fields]
    reader.close()
    return facts


def _searcher(folder: Path, documents: int, k1: float, b: float) -> Any:
    find = java.classes()
    reader = find("org.apache.lucene.index.DirectoryReader").open(_directory(folder))
    if reader.maxDoc() != documents or reader.leaves().size() > 1:
        raise DataError(
            f"{folder} has {reader.maxDoc()} documents in {reader.leaves().size()} segments, "
            f"wanted {documents} in one; index again"
        )
    searcher = find("org.apache.lucene.search.IndexSearcher")
    searcher.setMaxClauseCount(2**31 - 1)  # a query may be a whole file
    made = searcher(reader, signature="(Lorg/apache/lucene/index/IndexReader;)V")
    made.setSimilarity(
        find("org.apache.lucene.search.similarities.BM25Similarity")(float(k1), float(b), signature="(FF)V")
    )
    return made


def _best_and_highest_row_first() -> Any:
    """The order of Anserini, which is by ascending document id where scores are equal."""
    find = java.classes()
    key, kind = find("org.apache.lucene.search.SortField"), find("org.apache.lucene.search.SortField$Type")
    return find("org.apache.lucene.search.Sort")(key.FIELD_SCORE, key(None, kind.DOC, True))


def _directory(folder: Path) -> Any:
    find = java.classes()
    place = find("java.io.File")(str(folder.absolute()))  # Java stays in the folder that it was started in
    return find("org.apache.lucene.store.FSDirectory").open(place.toPath())


def _analyzer_of(fields: Sequence[Field]) -> Any:
    """The one analyzer that a writer takes, which knows that of every field."""
    find = java.classes()
    analyzers = find("java.util.HashMap")()
    for field in fields:
        analyzers.put(field.name, _lucene_analyzer(field.analyzer))
    wrapper = find("org.apache.lucene.analysis.miscellaneous.PerFieldAnalyzerWrapper")
    return wrapper(_lucene_analyzer(fields[0].analyzer), analyzers)


def _lucene_analyzer(analyzer: str) -> Any:
    find = java.classes()
    if analyzer == "english":
        return find("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    if analyzer == "standard":
        return find("org.apache.lucene.analysis.standard.StandardAnalyzer")()
    return find("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()


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
