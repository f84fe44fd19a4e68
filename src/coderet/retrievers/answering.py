"""All queries of a dataset to a run, batch by batch, and a few of them alone; both timed."""

import time

import numpy as np
from tqdm import tqdm

from coderet.metrics import efficiency
from coderet.records import NO_HIT, Dataset, Run, Searcher


def answer(searcher: Searcher, dataset: Dataset, depth: int, batch: int) -> tuple[Run, np.ndarray]:
    """The run of a dataset and the seconds each batch took.

    Up to depth hits a query are kept; the search goes deeper by the largest exclusion, so that a query whose excluded
    documents were among its hits still gets depth of them. batch is how many queries are searched at once.
    """
    texts, corpus = dataset.queries.texts, dataset.corpus
    deeper = _deeper(dataset, depth)
    rows = np.full((len(texts), deeper), NO_HIT, np.int64)
    scores = np.full((len(texts), deeper), -np.inf, np.float32)
    seconds = []
    with tqdm(total=len(texts), desc=f"search {dataset.name}", unit="query", disable=None) as progress:
        for start in range(0, len(texts) if deeper else 0, batch):
            questions = texts.slice(start, batch)
            begun = time.perf_counter()
            found, their_scores = searcher.search(questions, deeper)
            seconds.append(time.perf_counter() - begun)
            rows[start : start + batch, : found.shape[1]] = found
            scores[start : start + batch, : found.shape[1]] = their_scores
            progress.update(len(questions))
    run = Run.of(corpus, dataset.queries.ids, rows, scores)
    return run.without(dataset.queries.table["excluded"]).top(depth), np.array(seconds)


def lone_queries(searcher: Searcher, dataset: Dataset, depth: int, queries: int, warm_up: int) -> np.ndarray:
    """Seconds of answering single queries: the dataset's first ones, less warm_up that are answered but not timed.

    A dataset of fewer queries gives fewer numbers; one of none gives none.
    """
    texts = dataset.queries.texts
    lone = [texts.slice(place, 1) for place in range(min(queries + warm_up, len(texts)))]
    if not lone:
        return np.empty(0)
    deeper = _deeper(dataset, depth)
    return efficiency.latencies(lambda text: searcher.search(text, deeper), lone, min(warm_up, len(lone) - 1))


def _deeper(dataset: Dataset, depth: int) -> int:
    """How deep is searched: by the largest exclusion beyond depth, but no deeper than there are documents."""
    return min(depth + dataset.queries.largest_exclusion, len(dataset.corpus))
