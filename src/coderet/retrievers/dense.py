"""Retrieval by vectors: an encoder and an index of what it makes of a corpus.

Which encoder is the business of training; which kind of index, of the table `coderet.indexes.INDEXES`.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from coderet import encoders, paths, registry
from coderet.indexes import INDEXES
from coderet.records import Corpus, DataError, Encoder
from coderet.retrievers import analysis, manifest

_ENCODER = "encoder"
_KIND = "flat"
_DOCUMENTS_A_CHUNK = 16_384


class SavedEncoder(Encoder, Protocol):
    """An encoder that `coderet.encoders.load` reads from the folder it was saved in."""

    parameters_count: int | None
    settings: Mapping[str, Any]

    def tokens(self, texts: pa.ChunkedArray, role: Literal["query", "document"]) -> Any: ...

    def save(self, folder: Path) -> None: ...


class Dense:
    """kind `dense`. kind, similarity and text_fields shape the index; batch, queries compared at a time, the search.

    of_kind: settings that the kind of index has besides, those of its `build` and those of its `load`, which only move
    the search.
    """

    SEARCH = ("batch",)

    def __init__(
        self,
        encoder: SavedEncoder,
        *,
        kind: str = _KIND,
        similarity: str = "cosine",
        text_fields: Iterable[str] = ("text",),
        batch: int = 256,
        **of_kind: Any,
    ) -> None:
        self.encoder, self.kind, self.similarity = encoder, kind, similarity
        self.text_fields, self.batch = analysis.check_fields(text_fields), batch
        self._index = registry.load(INDEXES, kind, "indexes", "index.kind")
        self._cut: dict[str, np.ndarray] = {}  # documents cut and tokens lost, by the digest of the corpus
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise DataError(f"batch is {batch!r}; wanted a number of queries from 1 on")
        registry.fit_arguments(self._index.build, of_kind, "index", self._index.load)
        self._build, self._search = (
            {name: of_kind.get(name, each.default) for name, each in registry.named_arguments(function).items()}
            for function in (self._index.build, self._index.load)
        )
        self._build["similarity"] = similarity

    @staticmethod
    def parts(index: Mapping[str, Any], where: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """What has settings besides `load`: `build` and `load` of the kind that index names, which stands at where."""
        made = registry.load(INDEXES, index.get("kind", _KIND), "indexes", f"{where}.kind")
        return made.build, made.load

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        kind: str = _KIND,
        similarity: str = "cosine",
        text_fields: Iterable[str] = ("text",),
        batch: int = 256,
        **of_kind: Any,
    ) -> "Dense":
        encoder = encoders.load(folder / _ENCODER, cache=paths.WORK / "vectors")
        return cls(encoder, kind=kind, similarity=similarity, text_fields=text_fields, batch=batch, **of_kind)

    def save(self, folder: Path) -> None:
        """The encoder, in a folder of its own."""
        self.encoder.save(folder / _ENCODER)

    @property
    def parameters(self) -> int | None:
        """Numbers that were learned; None where nobody says."""
        return self.encoder.parameters_count

    @property
    def description(self) -> dict[str, Any]:
        """Its encoder's settings, those included that the encoder's own folder gave.

        Of an index that is approximate also all of its settings, those included that params.yaml leaves out.
        """
        encoder = {"encoder": dict(self.encoder.settings)}
        if not self._index.approximate:
            return encoder
        shape = {"kind": self.kind, **self._build, "text_fields": list(self.text_fields)}
        return {"index": shape, **self._search, **encoder}

    @property
    def spending(self) -> Mapping[str, float]:
        """What an encoder that costs money has spent in this process, by name; empty for others."""
        return getattr(self.encoder, "spending", {})

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self._build,
            "text_fields": list(self.text_fields),
            "encoder": self.encoder.fingerprint,
            "dim": self.encoder.dim,
        }

    def index(self, corpus: Corpus, folder: Path) -> Mapping[str, float | str]:
        """Facts: dim, how many documents got a vector of zeros, which says nothing of them, and how many were encoded;
        and what the index settled itself.

        An encoder that keeps its vectors encodes only documents that it has not seen: costs are told of those.
        """
        before, spent = getattr(self.encoder, "encoded", 0), self.spending
        folder.mkdir(parents=True, exist_ok=True)
        index = self._index.build(self._vectors(corpus), len(corpus), self.encoder.dim, folder, **self._build)
        manifest.write(folder, corpus, self.settings)
        encoded = getattr(self.encoder, "encoded", before + len(corpus)) - before
        facts = {"dim": self.encoder.dim, "zero_vectors": index.zero_vectors, **index.facts, "encoded": encoded}
        costs = {name: now - spent[name] for name, now in self.spending.items()}
        return facts | costs | getattr(self.encoder, "spending_in_all", {})

    def truncation(self, corpus: Corpus) -> Mapping[str, int]:
        """documents_cut: those longer than the encoder reads; tokens_lost: how many of theirs it does not see."""
        if corpus.digest not in self._cut:
            counted = np.zeros(2, np.int64)
            for _, texts in self._texts(corpus):
                read = self.encoder.tokens(texts, "document")
                counted += (read.cut, read.lost)
            self._cut[corpus.digest] = counted
        documents, tokens = self._cut[corpus.digest].tolist()
        return {"documents_cut": documents, "tokens_lost": tokens}

    def open(self, corpus: Corpus, folder: Path) -> "DenseSearcher":
        manifest.check(folder, corpus, self.settings, holds="vectors")
        index = self._index.load(folder, **self._search)
        return DenseSearcher(self.encoder, index, self.batch, lambda: self._vectors(corpus))

    def _vectors(self, corpus: Corpus) -> Iterator[tuple[pa.ChunkedArray, np.ndarray]]:
        """Ids and vectors, some at a time; what an encoder cuts is counted on the way if it can be given tokens."""
        encode = getattr(self.encoder, "encode_tokens", None)
        if encode is None:
            for ids, texts in self._texts(corpus):
                yield ids, self.encoder.encode_documents(texts)
            return
        counted = np.zeros(2, np.int64)
        for ids, texts in self._texts(corpus):
            read = self.encoder.tokens(texts, "document")
            counted += (read.cut, read.lost)
            yield ids, encode(read, "document")
        self._cut[corpus.digest] = counted

    def _texts(self, corpus: Corpus) -> Iterator[tuple[pa.ChunkedArray, pa.ChunkedArray]]:
        """Ids and assembled texts, some at a time."""
        for start in range(0, len(corpus), _DOCUMENTS_A_CHUNK):
            rows = slice(start, min(start + _DOCUMENTS_A_CHUNK, len(corpus)))
            texts = corpus.texts(self.text_fields, rows)
            yield corpus.ids.slice(start, len(texts)), texts


class DenseSearcher:
    """An encoder for queries and an open index of documents. vectors gives theirs once more, a part at a time."""

    def __init__(self, encoder: Encoder, index: Any, batch: int, vectors: Callable[[], Iterator[Any]]) -> None:
        self._encoder, self._index, self._batch, self._vectors = encoder, index, batch, vectors

    @property
    def approximate(self) -> bool:
        """Whether documents can be missed."""
        return bool(self._index.approximate)

    def search(self, queries: pa.ChunkedArray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(Q, k) rows and scores; NO_HIT only where the corpus has fewer than k documents."""
        vectors = self._encoder.encode_queries(queries) if len(queries) else np.empty((0, self._encoder.dim))
        found: tuple[np.ndarray, np.ndarray] = self._index.search(np.asarray(vectors, np.float32), k, self._batch)
        return found

    @contextmanager
    def exactly(self) -> Iterator["DenseSearcher"]:
        """A searcher over the same vectors that misses none.

        Where the index has not kept the vectors, the documents are encoded again (an encoder that keeps its vectors
        looks them up) into a flat index that is gone afterwards.
        """
        index = self._index
        if index.flat is not None:
            yield DenseSearcher(self._encoder, index.flat, self._batch, self._vectors)
            return
        paths.WORK.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=paths.WORK, prefix="flat-") as place:
            build = registry.load(INDEXES, _KIND, "indexes").build
            flat = build(self._vectors(), len(index), index.dim, Path(place), similarity=index.similarity)
            yield DenseSearcher(self._encoder, flat, self._batch, self._vectors)
