"""Speed of the two ways to BM25 on one synthetic corpus, side by side.

Prints documents/s of indexing, queries/s of searching all at once, and milliseconds of single queries. The corpus has
35,000 documents of identifiers drawn by Zipf's law; a query is a dozen words of one of them.

    python bench/bm25.py [documents] [queries]
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from coderet.records import Corpus, documents_batch
from coderet.retrievers import java
from coderet.retrievers.bm25s import Bm25s
from coderet.retrievers.lucene import Lucene

VOCABULARY = 60_000
WORDS_A_DOCUMENT = 120
WORDS_A_QUERY = 12
SINGLE_QUERIES = 200


def corpus_and_queries(documents: int, queries: int) -> tuple[Corpus, pa.ChunkedArray]:
    random = np.random.default_rng(0)
    words = np.array([f"name{i % 977}_part{i}" for i in range(VOCABULARY)])
    drawn = np.minimum(random.zipf(1.2, (documents, WORDS_A_DOCUMENT)), VOCABULARY) - 1
    lengths = random.integers(10, WORDS_A_DOCUMENT, documents)
    texts = [" ".join(words[row[:length]]) for row, length in zip(drawn, lengths, strict=True)]
    ids = sorted((f"d{i}" for i in range(documents)), reverse=True)
    asked = [
        " ".join(words[random.permutation(row)[:WORDS_A_QUERY]])
        for row in drawn[random.integers(0, documents, queries)]
    ]
    table = pa.Table.from_batches([documents_batch(ids, [""] * documents, texts)])
    return Corpus("synthetic", table), pa.chunked_array([pa.array(asked, pa.large_string())])


def main(documents: int = 35_000, queries: int = 2_000) -> None:
    start = time.perf_counter()
    java.classes()
    print(f"Java starts in {time.perf_counter() - start:.2f} s")
    corpus, asked = corpus_and_queries(documents, queries)
    print(f"{documents} documents, {queries} queries")
    head = ("documents/s", "queries/s k=10", "k=100", "k=1000", "ms, one, k=100", "MB")
    print(f"{'':8}{'analyzer':12}" + "".join(f"{each:>16}" for each in head))
    for analyzer in ("whitespace", "code-words"):
        for name, kind in (("lucene", Lucene), ("bm25s", Bm25s)):
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                retriever = kind(analyzer=analyzer)
                start = time.perf_counter()
                retriever.index(corpus, folder)
                indexing = documents / (time.perf_counter() - start)
                searcher = retriever.open(corpus, folder)
                searcher.search(asked.slice(0, 100), 10)  # warm-up
                rates = []
                for k in (10, 100, 1000):
                    start = time.perf_counter()
                    searcher.search(asked, k)
                    rates.append(queries / (time.perf_counter() - start))
                start = time.perf_counter()
                for place_of_query in range(SINGLE_QUERIES):
                    searcher.search(asked.slice(place_of_query % queries, 1), 100)
                single = (time.perf_counter() - start) / SINGLE_QUERIES * 1000
                size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
            figures = f"{indexing:16,.0f}" + "".join(f"{rate:16,.0f}" for rate in rates) + f"{single:16.2f}{size:16.1f}"
            print(f"{name:8}{analyzer:12}{figures}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
