"""What a dataset is made of: equal documents, equal queries, queries without gold, empty and overlong texts.

Texts are compared after line ends are made one and outer white space is taken off, nothing else. Documents of equal
text form a group; the strict scores treat its members as different, the `-folded` ones as one item.
"""

import hashlib
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from coderet.records import Dataset

OVERLONG_CHARACTERS = 100_000


def text_groups(texts: pa.ChunkedArray) -> np.ndarray:
    """(N,) int32: the group of each text, numbered by first appearance; equal texts share one."""
    digests = np.empty((len(texts), 16), np.uint8)
    place = 0
    for chunk in texts.chunks:
        for text in chunk:
            normal = text.as_py().replace("\r\n", "\n").replace("\r", "\n").strip()
            digests[place] = np.frombuffer(hashlib.blake2b(normal.encode(), digest_size=16).digest(), np.uint8)
            place += 1
    _, first, inverse = np.unique(digests.view("V16").ravel(), return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int32)
    order[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return order[inverse]


def census(dataset: Dataset) -> tuple[dict[str, Any], np.ndarray | None]:
    """The counts for the report, and each document's group, None if no two documents are equal."""
    documents, queries, qrels = dataset.corpus, dataset.queries, dataset.qrels.table
    groups = text_groups(documents.ids if len(documents) == 0 else documents.table["text"])
    sizes = np.bincount(groups, minlength=1)
    lengths = _lengths(documents.table["text"])
    relevant = qrels.filter(pa.compute.greater(qrels["grade"], 0))
    gold = _gold(dataset, relevant)
    shared = sizes[groups] > 1
    affected = sum(any(shared[row] for row in rows) for rows in gold.values())
    asked, conflicting, ceiling = _equal_queries(dataset, gold, groups)
    counts = {
        "documents": len(documents),
        "queries": len(queries),
        "judgements": len(qrels),
        "relevant_judgements": len(relevant),
        "queries_without_gold": len(queries) - len(gold),
        "empty_documents": int((lengths == 0).sum()),
        "empty_queries": int((_lengths(queries.texts) == 0).sum()),
        "overlong_documents": int((lengths > OVERLONG_CHARACTERS).sum()),
        "overlong_characters": OVERLONG_CHARACTERS,
        "document_characters_median": float(np.median(lengths)) if len(lengths) else 0.0,
        "duplicate_groups": int((sizes > 1).sum()),
        "duplicate_documents": int(sizes[sizes > 1].sum()),
        "affected_queries": int(affected),
        "duplicate_query_groups": asked,
        "conflicting_query_groups": conflicting,
        "best_reachable_hit@1": ceiling,
    }
    return counts, groups if (sizes > 1).any() else None


def _lengths(texts: pa.ChunkedArray) -> np.ndarray:
    trimmed = pa.compute.utf8_length(pa.compute.utf8_trim_whitespace(texts))
    return trimmed.to_numpy().astype(np.int64)


def _gold(dataset: Dataset, relevant: pa.Table) -> dict[str, list[int]]:
    rows = dataset.corpus.rows_of(relevant["document_id"])
    gold: dict[str, list[int]] = defaultdict(list)
    for query_id, row in zip(relevant["query_id"].to_pylist(), rows.tolist(), strict=True):
        gold[query_id].append(row)
    return gold


def _equal_queries(dataset: Dataset, gold: dict[str, list[int]], groups: np.ndarray) -> tuple[int, int, float]:
    """Groups of equal query text, those that disagree on their gold, and the best hit@1 that one answer can get.

    A retriever sees the text alone, so it gives queries of equal text one first hit; that hit is right for the queries
    that have it as gold. Equal documents count as one.
    """
    members: dict[int, list[set[int]]] = defaultdict(list)
    ids = dataset.queries.ids.to_pylist()
    for query_id, group in zip(ids, text_groups(dataset.queries.texts).tolist(), strict=True):
        if query_id in gold:
            members[group].append({int(groups[row]) for row in gold[query_id]})
    repeated = [sets for sets in members.values() if len(sets) > 1]
    conflicting = [sets for sets in repeated if any(each != sets[0] for each in sets)]
    answered = sum(max(sum(one in each for each in sets) for one in set().union(*sets)) for sets in members.values())
    return len(repeated), len(conflicting), answered / len(gold) if gold else 0.0
