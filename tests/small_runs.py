"""Corpora, judgements and runs of a few documents."""

import numpy as np
import pyarrow as pa

from coderet.records import Corpus, Dataset, Qrels, Queries, Run, documents_batch, qrels_table, queries_table


def corpus(*ids: str, name: str = "c") -> Corpus:
    ids = tuple(sorted(ids, reverse=True))
    return Corpus(name, pa.Table.from_batches([documents_batch(ids, [""] * len(ids), ids)]))


def dataset(documents: Corpus, queries: list[str], gold: dict[str, dict[str, float]]) -> Dataset:
    flat = [(q, d, g) for q, grades in gold.items() for d, g in grades.items()]
    qrels = qrels_table([q for q, _, _ in flat], [d for _, d, _ in flat], [g for _, _, g in flat])
    return Dataset("d", documents, Queries(queries_table(queries, queries)), Qrels(qrels))


def run(documents: Corpus, hits: dict[str, dict[str, float]], depth: int = 3) -> Run:
    rows, scores = np.full((len(hits), depth), -1), np.zeros((len(hits), depth), np.float32)
    for place, found in enumerate(hits.values()):
        rows[place, : len(found)] = documents.rows_of(pa.array(list(found), pa.large_string()))
        scores[place, : len(found)] = list(found.values())
    return Run.of(documents, pa.array(list(hits), pa.large_string()), rows, scores)
