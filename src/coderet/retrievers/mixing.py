"""The runs of several corpora to one run over all their documents, which is never searched itself.

CodeRAG-Bench's "All" takes the first document of each of its sources. Here the first hits of all sources come first,
in the order in which the sources are listed, for the paper gives none; then the second hits, and so on. Scores of
different corpora do not compare, so those of a mixture only say the place: 1, 1/2, 1/3, ...
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from coderet.records import NO_HIT, Corpus, DataError, Dataset, Run

SCORES = "1 / place; not the retriever's"


def mixed(dataset: Dataset, parts: Mapping[str, Run], depth: int) -> Run:
    """The first depth hits of the mixture of parts, runs by the names of the datasets that dataset is mixed of.

    DataError if they are others, or their documents are not those of dataset.
    """
    if tuple(parts) != dataset.mixed_of:
        raise DataError(f"{dataset.name} is mixed of {', '.join(dataset.mixed_of)}, not of {', '.join(parts)}")
    starts = _starts(dataset.corpus, {name: run.corpus for name, run in parts.items()})
    deepest = max(run.depth for run in parts.values())
    by_rank = np.full((len(dataset.queries), deepest, len(parts)), NO_HIT, np.int64)
    for place, (name, run) in enumerate(parts.items()):
        if not run.query_ids.equals(dataset.queries.ids):
            raise DataError(f"the run of {name} answers other queries than {dataset.name} asks; search again")
        by_rank[:, : run.depth, place] = np.where(run.rows == NO_HIT, NO_HIT, run.rows + starts[name])
    rows = by_rank.reshape(len(by_rank), deepest * len(parts))
    depth = min(depth, sum(run.depth for run in parts.values()))
    closed_up = np.argsort(rows == NO_HIT, axis=1, kind="stable")[:, :depth]
    scores = np.broadcast_to(1 / np.arange(1, depth + 1, dtype=np.float32), closed_up.shape)
    return Run.of(dataset.corpus, dataset.queries.ids, np.take_along_axis(rows, closed_up, axis=1), scores)


def settings(of: Mapping[str, Any], dataset: Dataset) -> dict[str, Any]:
    """The settings of the run of a mixture, made of runs with the settings `of`."""
    return {**of, "mixed_of": list(dataset.mixed_of), "scores": SCORES}


def _starts(whole: Corpus, parts: Mapping[str, Corpus]) -> dict[str, int]:
    """The first row in whole of each part: in descending id those of a part lie together, in their own order."""
    starts, row = {}, 0
    for name in sorted(parts, key=lambda each: f"{each}/".encode(), reverse=True):
        ids = parts[name].ids
        ends = [(row, 0), (row + len(ids) - 1, len(ids) - 1)] if len(ids) else []
        if any(here >= len(whole) or whole.ids[here].as_py() != f"{name}/{ids[there]}" for here, there in ends):
            raise DataError(f"the documents of {name} are not those in {whole.name}; collect and search again")
        starts[name], row = row, row + len(ids)
    if row != len(whole):
        raise DataError(f"{whole.name} has {len(whole)} documents, its parts {row}; collect and search again")
    return starts
