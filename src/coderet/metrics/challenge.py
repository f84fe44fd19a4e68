"""The CodeSearchNet Challenge (Husain et al., 2019): predictions against annotations, as its script did and soundly.

`ndcg-within-2019` and `ndcg-all-2019` are the script's. The relevance of a function is the mean of its annotations; the
first 300 hits of a query are kept; language and query are compared in lower case, URLs as they are. Going down the
list, an annotated URL gains (2**relevance - 1) / log2(rank + 1); `all` lets every hit take a rank, `within` annotated
ones alone. The sum is divided by that of all annotated URLs in the best order, without cutoff. A query whose
annotations are all 0 is left out, one without predictions has 0. Its faults are kept: a URL that is predicted twice
gains twice, so that the score may exceed 1, and an annotated URL that was not submitted is missed, so that it grows
with the length of the list.

Beside them stand the metrics of `ranking.py`, for which a repeated hit counts once, where it was first: by default
SOUND. `ndcg-reranked` ranks the whole judged pool and does not depend on the length of the list.

A language is a dataset: `scorecards.summary` with `datasets` gives the paper's average and all intervals.

Left out: reading and writing files (`corpora/challenge.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coderet.metrics import ranking
from coderet.metrics.chance import chance
from coderet.metrics.measures import exponential, ordinals, shares
from coderet.metrics.ranking import Judgements
from coderet.metrics.scorecards import Scorecard
from coderet.records import DataError

KEPT_HITS = 300
FEW_JUDGEMENTS = 5
SOUND = (
    "ndcg-reranked",
    "ndcg-within",
    "ndcg-all",
    "ndcg-exp@10",
    "ndcg-exp@100",
    "ndcg-within@10",
    "bpref",
    "mrr",
    "judged@10",
    "judged@100",
)


def score(
    annotations: pa.Table,
    predictions: pa.Table,
    metrics: Sequence[str] = SOUND,
    submitted_only: bool = False,
    few_judgements: int = FEW_JUDGEMENTS,
    searched: Mapping[str, int] | None = None,
) -> dict[str, Scorecard]:
    """A scorecard a language, in the order of the annotations; its query ids are the queries in lower case.

    annotations has columns language, query, url, relevance (a row an annotation), predictions language, query, url (a
    row a hit, best first). submitted_only leaves out languages without predictions, as the script does; else they
    score 0. searched: how many functions of a language there were to find, for the score of a random order. The counts
    say, besides those of a ranking:

    - `answered`: annotated queries that have a prediction;
    - `annotated`, `covered`, `annotated_relevant`, `covered_relevant`: annotated URLs, and how many were submitted;
    - `few_judgements`: scored queries with fewer judged URLs than few_judgements, where one URL decides;
    - `repeated_hits`: those that the sound metrics leave out; `late_hits`: those behind the 300th, which all leave out.

    DataError if the predictions answer no annotated query at all.
    """
    judged, submitted = relevances(annotations), _lowered(predictions, ("language", "query"))
    named = set(submitted["language"].unique().to_pylist())
    cards = {
        language: _scorecard(
            judged.filter(pc.equal(judged["language"], language)),
            submitted.filter(pc.equal(submitted["language"], language)),
            metrics,
            few_judgements,
            (searched or {}).get(language),
        )
        for language in judged["language"].unique().to_pylist()
        if language in named or not submitted_only
    }
    if not any(card.counts["answered"] for card in cards.values()):
        raise DataError(
            f"the predictions, for {', '.join(sorted(named)) or 'no language'}, answer no query that is annotated for "
            f"{', '.join(judged['language'].unique().to_pylist()) or 'any'}; look at both files"
        )
    return cards


def relevances(annotations: pa.Table) -> pa.Table:
    """Each URL of a query once, with the mean of its annotations: language and query in lower case, url, relevance."""
    lowered = _lowered(annotations, ("language", "query"))
    grouped = lowered.group_by(["language", "query", "url"], use_threads=False).aggregate([("relevance", "mean")])
    return grouped.select(["language", "query", "url", "relevance_mean"]).rename_columns(
        ["language", "query", "url", "relevance"]
    )


def _scorecard(
    judged: pa.Table, submitted: pa.Table, metrics: Sequence[str], few_judgements: int, documents: int | None
) -> Scorecard:
    """Of one language."""
    asked = judged["query"].unique()
    urls = pa.chunked_array([*judged["url"].chunks, *submitted["url"].chunks], pa.large_string()).unique()
    judgements = Judgements(
        _places(judged["query"], asked), _places(judged["url"], urls), judged["relevance"].to_numpy(), len(asked)
    )
    queries, rows = _places(submitted["query"], asked), _places(submitted["url"], urls)
    unknown = len(submitted.filter(pa.array(queries < 0))["query"].unique())
    order = np.argsort(queries, kind="stable")[np.count_nonzero(queries < 0) :]
    queries, rows = queries[order], rows[order]
    early = ordinals(queries) <= KEPT_HITS
    late, queries, rows = int(np.sum(~early)), queries[early], rows[early]
    first = np.zeros(len(queries), dtype=bool)
    first[np.unique(np.stack([queries, rows]), axis=1, return_index=True)[1]] = True

    _, covered = judgements.grades_of(queries[first], rows[first])
    evaluation = ranking.evaluate(*_run(queries[first], rows[first]), judgements, metrics)
    values = {name: each[evaluation.queries] for name, each in _values_2019(queries, rows, judgements).items()}
    counts = asdict(evaluation.counts) | {
        "unknown": unknown,
        "answered": len(np.unique(queries)),
        "annotated": len(judgements.rows),
        "covered": len(covered),
        "annotated_relevant": int((judgements.grades > 0).sum()),
        "covered_relevant": int((covered > 0).sum()),
        "few_judgements": int((np.bincount(judgements.queries)[evaluation.queries] < few_judgements).sum()),
        "repeated_hits": int(np.sum(~first)),
        "late_hits": late,
    }
    random = {} if documents is None else _floors(judgements, documents, metrics, evaluation.counts.depth)
    query_ids = pa.chunked_array([asked.take(pa.array(evaluation.queries))])
    return Scorecard(query_ids, values | dict(evaluation.values), counts, random)


def _values_2019(queries: np.ndarray, rows: np.ndarray, judgements: Judgements) -> dict[str, np.ndarray]:
    """(query_count,) float64 each: every hit counts, however often its URL was there before."""
    annotated, grades = judgements.grades_of(queries, rows)
    owners, gains = queries[annotated], exponential(grades)
    ideal = judgements.pool.relevant
    best = np.bincount(
        ideal.queries, exponential(ideal.grades) / np.log2(ideal.ranks + 1), minlength=judgements.query_count
    )
    return {
        name: shares(np.bincount(owners, gains / np.log2(ranks + 1), minlength=judgements.query_count), best)
        for name, ranks in (("ndcg-within-2019", ordinals(owners)), ("ndcg-all-2019", ordinals(queries)[annotated]))
    }


def _floors(judgements: Judgements, documents: int, metrics: Sequence[str], depth: int) -> dict[str, float]:
    """A random order repeats no hit, so the script's readings of it are the sound ones."""
    known = [name for name in metrics if not name.startswith("bpref")]
    floors = chance(judgements, documents, [*known, "ndcg-within", "ndcg-all"], depth)
    floors |= {f"{name}-2019": floors[name] for name in ("ndcg-within", "ndcg-all")}
    wanted = [*known, "ndcg-within-2019", "ndcg-all-2019"]
    return {name: float(floors[name].mean()) for name in wanted if len(floors[name])}


def _run(queries: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The queries (Q,), rows (Q, k) and falling scores (Q, k) of hits that are sorted by query and in order."""
    lines, line_of = np.unique(queries, return_inverse=True)
    ranks = ordinals(queries)
    shape = len(lines), int(ranks.max(initial=1))
    matrix, scores = np.full(shape, -1), np.full(shape, -np.inf, np.float32)
    matrix[line_of, ranks - 1], scores[line_of, ranks - 1] = rows, -ranks
    return lines, matrix, scores


def _lowered(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The table with columns in lower case as Python has it, which the script was written in."""
    for name in names:
        distinct = table[name].unique()
        lowered = pa.array([each.lower() for each in distinct.to_pylist()], pa.large_string())
        column = lowered.take(pc.index_in(table[name], value_set=distinct).combine_chunks())
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _places(some: pa.ChunkedArray, known: pa.Array) -> np.ndarray:
    return pc.fill_null(pc.index_in(some, value_set=known), -1).to_numpy().astype(np.int64)
