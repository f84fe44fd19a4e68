from collections.abc import Callable

import pyarrow as pa
import pytest

from coderet.records import Corpus, Run, documents_batch


@pytest.fixture
def corpus_of() -> Callable[..., Corpus]:
    """A corpus from texts by id (and titles by id), put into the order that corpora have."""

    def make(texts: dict[str, str], titles: dict[str, str] | None = None) -> Corpus:
        ids = sorted(texts, key=str.encode, reverse=True)
        batch = documents_batch(ids, [(titles or {}).get(each, "") for each in ids], [texts[each] for each in ids])
        return Corpus("corpus", pa.Table.from_batches([batch]))

    return make


@pytest.fixture
def answer(tmp_path_factory) -> Callable[..., list[list[tuple[str, float]]]]:
    """Index a corpus, open the index and search: the (id, score) hits of every query."""

    def hits(retriever, corpus: Corpus, queries: list[str], k: int = 10) -> list[list[tuple[str, float]]]:
        folder = tmp_path_factory.mktemp("index")
        retriever.index(corpus, folder)
        texts = pa.chunked_array([pa.array(queries, pa.large_string())])
        run = Run.of(corpus, texts, *retriever.open(corpus, folder).search(texts, k))
        ids = corpus.ids.to_pylist()
        return [
            [(ids[row], score) for row, score in zip(rows, scores, strict=True) if row >= 0]
            for rows, scores in zip(run.rows.tolist(), run.scores.tolist(), strict=True)
        ]

    return hits
