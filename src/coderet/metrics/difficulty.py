"""How hard a dataset is, before any system has seen it: what BM25 finds, and what a random order would.

BM25 (Robertson and Zaragoza, 2009) over the words of code with Lucene's formula, by bm25s, title and text together. It
is told when a benchmark is built, so that a set of questions which words alone answer is seen at once. Left out:
everything that a person may set; the retriever of kind `bm25s` has that.
"""

from collections.abc import Sequence

import numpy as np

from coderet.metrics import scorecards
from coderet.records import NO_HIT, Dataset, Run
from coderet.words import code_words

K1, B = 1.2, 0.75  # Lucene's


def difficulty(dataset: Dataset, metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """Means of the metrics by `bm25` and `random`; nothing where no metric is asked for."""
    if not metrics:
        return {}
    card = scorecards.score(dataset, _bm25(dataset), metrics)
    return {
        "bm25": {name: float(np.mean(card.values[name])) for name in metrics},
        "random": {name: card.random[name] for name in metrics},
    }


def _bm25(dataset: Dataset) -> Run:
    """The run of all documents that share a word with the query."""
    import bm25s  # compiles and loads much, and is wanted by few benchmarks

    corpus, queries = dataset.corpus, dataset.queries
    scorer = bm25s.BM25(method="lucene", k1=K1, b=B)
    scorer.index([code_words(text) for text in corpus.texts(("title", "text")).to_pylist()], show_progress=False)
    scores = np.zeros((len(queries), len(corpus)), np.float32)
    for place, text in enumerate(queries.texts.to_pylist()):
        known = scorer.get_tokens_ids(code_words(text))
        if known:
            scores[place] = scorer.get_scores_from_ids(known)
    rows = np.where(scores > 0, np.arange(len(corpus)), NO_HIT)
    return Run.of(corpus, queries.ids, rows, scores).without(queries.table["excluded"])
