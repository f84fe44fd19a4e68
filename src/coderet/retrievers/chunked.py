"""Any retriever over chunks instead of documents: what `index.chunking` in params.yaml makes of it.

The corpus is cut into chunks, the retriever indexes those, and its hits are folded to documents by best chunk. A search
goes on until k documents are sure: a document that is not seen yet could only tie with the k-th if its best chunk
scored as much as the last chunk that was seen. The chunks lie in the index's folder: whoever opens it sees what was
indexed.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from coderet.corpora import chunking, folding, store
from coderet.corpora.chunking import Chunker
from coderet.records import NO_HIT, Corpus, Retriever
from coderet.retrievers import manifest

_CHUNKS, _INDEX = "chunks.arrow", "index"
_DEEPER = 4  # times as deep is the next try
_HITS_AT_A_TIME = 2**24  # of chunks, 12 bytes each


class Configured(Retriever, Protocol):
    """A retriever that says all that its index depends on."""

    @property
    def settings(self) -> Mapping[str, Any]: ...


class Chunked:
    """The retriever `of` over the chunks that chunker cuts."""

    def __init__(self, of: Configured, chunker: Chunker) -> None:
        self.of, self.chunker = of, chunker

    @property
    def parameters(self) -> int | None:
        return self.of.parameters

    @property
    def description(self) -> Mapping[str, Any]:
        """The retriever's; where that tells of an index, it tells of its chunks too."""
        told = self.of.description
        return {**told, "index": {"chunking": self.chunker.settings, **told["index"]}} if "index" in told else told

    @property
    def spending(self) -> Mapping[str, float]:
        return getattr(self.of, "spending", {})

    @property
    def settings(self) -> dict[str, Any]:
        return {"chunking": self.chunker.settings, **self.of.settings}

    def save(self, folder: Path) -> None:
        """What the retriever saves: how documents are cut is a setting of the index."""
        self.of.save(folder)

    def index(self, corpus: Corpus, folder: Path) -> Mapping[str, float | str]:
        """The retriever's facts, and how many chunks; `encoded` counts documents, a chunk as its share of one."""
        folder.mkdir(parents=True, exist_ok=True)
        chunks, _ = chunking.chunk_corpus(corpus, self.chunker, folder / _CHUNKS)
        facts = dict(self.of.index(chunks, folder / _INDEX))
        if "encoded" in facts and len(chunks):
            facts["encoded"] = round(float(facts["encoded"]) * len(corpus) / len(chunks))
        manifest.write(folder, corpus, self.settings)
        return {**facts, "chunks": len(chunks)}

    def truncation(self, corpus: Corpus) -> Mapping[str, int]:
        """What the retriever loses of the chunks: chunks_cut and tokens_lost."""
        with tempfile.TemporaryDirectory() as scratch:
            chunks, _ = chunking.chunk_corpus(corpus, self.chunker, Path(scratch, _CHUNKS))
            found = self.of.truncation(chunks)
        return {{"documents_cut": "chunks_cut"}.get(name, name): count for name, count in found.items()}

    def open(self, corpus: Corpus, folder: Path) -> "ChunkedSearcher":
        manifest.check(folder, corpus, self.settings)
        chunks = Corpus(corpus.name, store.read_table(folder / _CHUNKS))
        return ChunkedSearcher(self.of.open(chunks, folder / _INDEX), chunking.owners(chunks, corpus), len(corpus))


class ChunkedSearcher:
    """A searcher over chunks, the rows of the documents that they belong to, and how many documents there are."""

    def __init__(self, chunks: Any, owners: np.ndarray, documents: int) -> None:
        self._chunks, self._owners, self._documents = chunks, owners, documents

    @property
    def approximate(self) -> bool:
        """Whether documents can be missed."""
        return bool(getattr(self._chunks, "approximate", False))

    @contextmanager
    def exactly(self) -> Iterator["ChunkedSearcher"]:
        """A searcher over the same chunks that misses none; only where this one is approximate."""
        with self._chunks.exactly() as chunks:
            yield ChunkedSearcher(chunks, self._owners, self._documents)

    def search(self, queries: pa.ChunkedArray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(Q, k) rows and scores of documents; fewer than k hits only where the retriever finds no more chunks."""
        rows = np.full((len(queries), k), NO_HIT, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        wanted = min(k, self._documents)
        waiting = np.arange(len(queries) if wanted and len(self._owners) else 0)
        depth = min(wanted * -(-len(self._owners) // max(1, self._documents)), len(self._owners))
        while len(waiting):
            unsure = []
            at_a_time = max(1, _HITS_AT_A_TIME // depth)
            for start in range(0, len(waiting), at_a_time):
                part = waiting[start : start + at_a_time]
                found, theirs = self._chunks.search(queries.take(pa.array(part)), depth)
                unsure.append(part[self._unsure(found, theirs, wanted, rows, scores, part)])
            waiting, depth = np.concatenate(unsure), min(_DEEPER * depth, len(self._owners))
        return rows, scores

    def _unsure(
        self,
        found: np.ndarray,
        theirs: np.ndarray,
        wanted: int,
        rows: np.ndarray,
        scores: np.ndarray,
        part: np.ndarray,
    ) -> np.ndarray:
        """Write the documents of some queries' chunks into their rows; (Q,) bool, for which of them more are needed."""
        documents, best = folding.best_chunks(found, theirs, self._owners)
        width = min(wanted, documents.shape[1])
        rows[part, :width], scores[part, :width] = documents[:, :width], best[:, :width]
        ended = (found[:, -1] == NO_HIT) | (found.shape[1] >= len(self._owners))
        # Chunks of documents already seen cannot bring another one in, so only the last score matters.
        sure = (rows[part, wanted - 1] != NO_HIT) & (scores[part, wanted - 1] > theirs[:, -1])
        return ~(ended | sure)
