"""What the speed of an approximate index costs: the share of an exact search's hits that it finds too.

Measured on the dataset's own queries, against every vector of the same encoder compared exactly, both by the one order.
It says nothing of relevance; that is what metrics are for.
"""

import numpy as np
import pyarrow as pa

from coderet.records import NO_HIT, Dataset, Searcher

QUERIES = 200  # at most, evenly over the dataset: the share is then known to some three hundredths at worst
SHORT = 10  # a depth that is told beside the whole


def against_flat(dataset: Dataset, searcher: Searcher, depth: int) -> dict[str, float]:
    """`recall_against_flat@k` for k of SHORT and depth, of a search as deep as depth; nothing for an exact searcher.

    Empty as well where there are no queries or no documents.
    """
    texts = dataset.queries.texts
    if not getattr(searcher, "approximate", False) or not len(texts) or not len(dataset.corpus):
        return {}
    chosen = np.unique(np.linspace(0, len(texts) - 1, min(QUERIES, len(texts))).astype(np.int64))
    asked = texts.take(pa.array(chosen))
    deepest = min(depth, len(dataset.corpus))
    found, _ = searcher.search(asked, deepest)
    with searcher.exactly() as exact:  # type: ignore[attr-defined]
        wanted, _ = exact.search(asked, deepest)
    return {f"recall_against_flat@{k}": share(found[:, :k], wanted[:, :k]) for k in sorted({min(SHORT, depth), depth})}


def share(found: np.ndarray, wanted: np.ndarray) -> float:
    """Of all rows in wanted (Q, k), the share that found (Q, k) has for the same query. NO_HIT counts for none."""
    both = sum(len(np.intersect1d(ours[ours != NO_HIT], theirs)) for ours, theirs in zip(found, wanted, strict=True))
    return both / int((wanted != NO_HIT).sum())
