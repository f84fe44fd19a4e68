"""The documents that a generator is shown with a problem: the first hits of its query in a run.

A run chooses, so a context is a run and what is taken of it: how many documents, whether the query's own canonical
answer may be among them, and which part of a long one. Without hits there is no context; a run of the judgements is
the oracle's; documents by lot, none of them relevant, tell what a context does that has nothing to say (`none`,
`oracle` and `random`, which are runs like any other).

Documents can be cut after the search. `first` keeps whole lines up to so many tokens from the beginning; the paper's
rule loses a line that overflows and gives an empty chunk where the first line is too long, here neither is so. `best`
keeps the chunk that shares most with the query, rare words weighing more: the paper's reranked chunk with a lexical
reranker. Chunks before the search are a corpus of their own (`open_retrieval`), or the index's (`index.chunking`).
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import pyarrow.compute as pc

from coderet.benchmarks.answering import Document
from coderet.benchmarks.prompts import Order
from coderet.corpora import chunking
from coderet.corpora.chunking import Chunker
from coderet.params import REFERENCES
from coderet.records import NO_HIT, Corpus, DataError, Dataset, Problems, Qrels, Queries, Run
from coderet.words import code_words

NONE, ORACLE, RANDOM = REFERENCES
DRAWN = 100  # documents by lot a query


@dataclass(frozen=True)
class Taken:
    """What of a run becomes a context. chunk: which chunk of a document, where chunker cuts it. window: instead of
    documents, so many tokens around the answer where it stands, of problems that have a place (`Answering.window`).
    order: how those that fit stand in the prompt, best first (`rank`), best last (`reversed`), or as in their files.
    comments: whether a window's are `kept`, `removed` or `padded`. distractors: instead of the first documents the
    relevant ones and so many hits that are not. shows: a document's `text`, or its place and name alone (`names`).
    """

    documents: int
    withheld: Literal["out", "kept"] = "out"
    chunker: Chunker | None = None
    chunk: Literal["first", "best"] = "first"
    window: int = 0
    order: Order = "rank"
    comments: str = "kept"
    distractors: int = 0
    shows: Literal["text", "names"] = "text"


def taken(
    documents: int,
    withheld: str,
    chunks: Mapping[str, Any],
    chunk: str,
    where: str = "contexts",
    window: int = 0,
    order: str = "rank",
    comments: str = "kept",
    distractors: int = 0,
    shows: str = "text",
) -> Taken:
    """From an entry under contexts in params.yaml, its chunking checked."""
    cut = chunking.chunker(chunks, f"{where}.chunking") if chunks else None
    return Taken(
        documents,
        cast(Any, withheld),
        cut,
        cast(Any, chunk),
        window,
        cast(Any, order),
        comments,
        distractors,
        cast(Any, shows),
    )


def without_hits(dataset: Dataset) -> Run:
    """The run that finds nothing: what a generator knows by itself."""
    rows = np.full((len(dataset.queries), 1), NO_HIT)
    return Run.of(dataset.corpus, dataset.queries.ids, rows, np.zeros(rows.shape))


def of_judgements(dataset: Dataset) -> Run:
    """The run of the relevant documents, by grade: the canonical context. A query without any has no hits."""
    rows_by_query = _rows_by_query(dataset.corpus, dataset.queries, dataset.qrels)
    depth = max(map(len, rows_by_query), default=0) or 1
    rows = np.full((len(rows_by_query), depth), NO_HIT)
    scores = np.zeros(rows.shape, np.float32)
    for place, found in enumerate(rows_by_query):
        for column, (row, grade) in enumerate(found):
            rows[place, column], scores[place, column] = row, grade
    return Run.of(dataset.corpus, dataset.queries.ids, rows, scores)


def by_lot(dataset: Dataset, seed: int) -> Run:
    """The run of up to DRAWN documents a query, drawn by seed and query, none of them relevant to it."""
    relevant = _rows_by_query(dataset.corpus, dataset.queries, dataset.qrels)
    rows = np.full((len(relevant), min(DRAWN, max(1, len(dataset.corpus)))), NO_HIT)
    for place, (query, own) in enumerate(zip(dataset.queries.ids.to_pylist(), relevant, strict=True)):
        digest = hashlib.sha256(f"{seed}:{dataset.name}:{query}".encode()).digest()
        order = np.random.default_rng(int.from_bytes(digest[:8], "big")).permutation(len(dataset.corpus))
        drawn = order[~np.isin(order, [row for row, _ in own])][: rows.shape[1]]
        rows[place, : len(drawn)] = drawn
    scores = np.where(rows == NO_HIT, 0, -np.arange(rows.shape[1]))
    return Run.of(dataset.corpus, dataset.queries.ids, rows, scores)


def _rows_by_query(corpus: Corpus, queries: Queries, qrels: Qrels) -> list[list[tuple[int, float]]]:
    places = pc.index_in(qrels.table["query_id"], value_set=queries.ids.combine_chunks()).to_pylist()
    rows, grades = corpus.rows_of(qrels.table["document_id"]), qrels.table["grade"].to_pylist()
    found: list[list[tuple[int, float]]] = [[] for _ in range(len(queries))]
    for place, row, grade in zip(places, rows.tolist(), grades, strict=True):
        if place is not None and row != NO_HIT and grade > 0:
            found[place].append((row, grade))
    return found


def contexts(
    dataset: Dataset, run: Run, problems: Problems, taken: Taken, relevant: Run | None = None
) -> list[list[Document]]:
    """The documents of each problem, best first. DataError if the run does not answer a problem's query.

    relevant: the judgements as a run, for contexts with distractors; what is relevant comes first there.
    """
    asked = problems.table["query_id"].to_pylist()
    if taken.distractors:
        if relevant is None:
            raise DataError(f"distractors: {taken.distractors} wants the run {ORACLE!r} beside that of the context")
        known = _hits(dataset, relevant, problems, asked)
        others = _hits(dataset, run, problems, asked)
        hits = [
            [*own, *[row for row in rows if row not in own][: taken.distractors]]
            for own, rows in zip(known, others, strict=True)
        ]
    else:
        if taken.withheld == "out":
            searched = pc.index_in(run.query_ids, value_set=dataset.queries.ids.combine_chunks())
            run = run.without(dataset.queries.table["withheld"].take(searched))
        hits = _hits(dataset, run, problems, asked, taken.documents)
    texts = dict(zip(dataset.queries.ids.to_pylist(), dataset.queries.texts, strict=True))
    documents = _documents(dataset.corpus, hits)
    found = []
    for query, rows in zip(asked, hits, strict=True):
        context = [documents[row] for row in rows]
        found.append(context if taken.chunker is None else _cut(context, texts[query].as_py(), taken))
    return found


def _hits(
    dataset: Dataset, run: Run, problems: Problems, asked: Sequence[str], documents: int | None = None
) -> list[list[int]]:
    """The rows of the first so many hits of every query that is asked."""
    places = {query: place for place, query in enumerate(run.query_ids.to_pylist())}
    if missing := [query for query in asked if query not in places]:
        raise DataError(
            f"the run on {dataset.name} lacks {len(missing)} queries of {problems.name}, {missing[0]!r} among them; "
            "search again"
        )
    found = run.rows[[places[query] for query in asked], :documents].tolist()
    return [[row for row in rows if row != NO_HIT] for rows in found]


def _documents(corpus: Corpus, hits: Sequence[Sequence[int]]) -> dict[int, Document]:
    wanted = sorted({row for rows in hits for row in rows})
    columns = corpus.table.take(wanted).to_pydict() if wanted else {"id": [], "title": [], "text": []}
    fields = zip(wanted, columns["id"], columns["title"], columns["text"], strict=True)
    return {row: Document(own, title or "", text) for row, own, title, text in fields}


def _cut(context: Sequence[Document], query: str, taken: Taken) -> list[Document]:
    assert taken.chunker is not None
    pieces = [_chunks(each, taken.chunker) for each in context]
    if taken.chunk == "first":
        return [each[0] for each in pieces]
    weights = _weights([piece.text for each in pieces for piece in each])
    asked = set(code_words(query))
    return [max(each, key=lambda piece: _shared(piece.text, asked, weights)) for each in pieces]


def _chunks(document: Document, chunker: Chunker) -> list[Document]:
    bounds = chunking.line_bounds(document.text)
    return [
        Document(chunking.chunk_id(document.id, span, bounds), document.title, document.text[slice(*span)])
        for span in chunker.spans(document.text, document.title or document.id)
    ]


def _weights(texts: Sequence[str]) -> dict[str, float]:
    """What a word that several texts hold tells of one of them."""
    held = Counter(word for text in texts for word in set(code_words(text)))
    return {word: math.log(1 + len(texts) / number) for word, number in held.items()}


def _shared(text: str, asked: set[str], weights: Mapping[str, float]) -> float:
    return sum(weights.get(word, 0.0) for word in asked & set(code_words(text)))
