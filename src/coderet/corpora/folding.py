"""Hits on chunks to hits on their documents: a document is as good as its best chunk.

Documents whose best chunks score the same stand in the one order.
"""

import numpy as np

from coderet.records import NO_HIT, Corpus, DataError, Run


def folded(run: Run, corpus: Corpus, owners: np.ndarray) -> Run:
    """A run over chunks as a run over their documents, as deep; owners are the (N,) rows in corpus of the chunks.

    It ends with the last document of the hits that run has: who wants k documents must search deep enough.
    """
    if len(owners) != len(run.corpus) or (len(owners) and not 0 <= owners.min() <= owners.max() < len(corpus)):
        raise DataError(
            f"{len(owners)} owners for {len(run.corpus)} chunks of the {len(corpus)} documents of {corpus.name}; "
            "cut the corpus again"
        )
    return Run.of(corpus, run.query_ids, *best_chunks(run.rows, run.scores, owners))


def best_chunks(rows: np.ndarray, scores: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Q, k) rows of documents and (Q, k) scores from those of chunks, best first; NO_HIT and -inf close every row."""
    if not rows.size:
        return rows.astype(np.int64), scores.astype(np.float32)
    missing = rows == NO_HIT
    documents = np.where(missing, NO_HIT, owners[rows] if len(owners) else NO_HIT)
    scores = np.where(missing, np.float32(-np.inf), scores)
    order = np.lexsort((-scores, documents), axis=1)  # by document, its best chunk first
    documents, scores = np.take_along_axis(documents, order, 1), np.take_along_axis(scores, order, 1)
    later = np.zeros(documents.shape, bool)
    later[:, 1:] = documents[:, 1:] == documents[:, :-1]
    documents = np.where(later, NO_HIT, documents)
    scores = np.where(documents == NO_HIT, np.float32(-np.inf), scores)
    order = np.lexsort((documents, -scores, documents == NO_HIT), axis=1)
    return np.take_along_axis(documents, order, 1), np.take_along_axis(scores, order, 1)
