"""MRR with 999 distractors: each query against the documents of its block, the protocol of CodeSearchNet (2019).

In a block every document is the gold of exactly one query. Ties count against: a rank is the number of items that score
at least as high as the own one, itself included. Two readings of the same scores:

- `mrr-1000` ranks the block's documents for each query, as the paper says;
- `mrr-1000-paper` ranks the block's queries for each document, as the released code did for the published figures.

Left out: which items form a block (the benchmark says that), and the mean, which is simply that of all reciprocal ranks
because blocks are of one size.
"""

import numpy as np

from coderet.records import DataError


def block_ranks(scores: np.ndarray) -> np.ndarray:
    """(B,) int64: rank of each query's own document among the block's, ties against.

    scores is (B, B): query i against query j's document; transposed, it gives the ranks of each document's own
    query. -inf marks a pair that the retriever found nothing in common in: such pairs tie, behind all hits. Raises
    DataError for NaN.
    """
    if np.isnan(scores).any():
        raise DataError(f"{np.isnan(scores).sum()} scores of the block are NaN and have no rank; mend the retriever")
    return (scores >= np.diagonal(scores)[:, None]).sum(axis=1)


def block_reciprocal_ranks(rows: np.ndarray, scores: np.ndarray, gold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reciprocal ranks of one block by both readings: for each query, and for the document of each query, (B,) float64.

    rows is (B, k): the hits of each query among the block's documents 0 to B - 1, -1 where the retriever found no more;
    scores is (B, k); gold is (B,), the document of each query. Raises DataError if the run is cut off (a query has k
    hits although k < B), if a document is nobody's or two queries' gold, and if a query has one document twice.
    """
    size = len(gold)
    if rows.shape != scores.shape or len(rows) != size:
        raise DataError(f"the block has {size} queries, but rows {rows.shape} and scores {scores.shape}")
    if not np.array_equal(np.sort(gold), np.arange(size)):
        raise DataError(f"the block's {size} queries must have {size} different gold documents, rows 0 to {size - 1}")
    hit = rows >= 0
    if hit.any() and rows.max() >= size:
        raise DataError(f"row {rows.max()} is outside the block of {size} documents; search within the block")
    if rows.shape[1] < size and hit.all(axis=1).any():
        raise DataError(f"the run is cut at {rows.shape[1]} hits and says nothing of the rest; search {size} deep")
    lines, columns = np.nonzero(hit)
    named = np.zeros((size, size), dtype=bool)
    named[lines, rows[lines, columns]] = True
    if named.sum() < len(lines):
        raise DataError("a query of the block has one document as two hits; a run names a document once a query")
    matrix = np.full((size, size), -np.inf, dtype=scores.dtype)
    matrix[lines, rows[lines, columns]] = scores[lines, columns]
    aligned = matrix[:, gold]
    return 1 / block_ranks(aligned), 1 / block_ranks(aligned.T)
