"""Rerankers: the first hits of any run put into a new order by a model that reads query and document together.

A reranker's folder, models/rerankers/<name>, holds `reranker.json`, which names its kind, and whatever that kind saves.
Each distinct pair of texts is scored once; scores are kept by the reranker's fingerprint and the two texts, shard by
shard, so that a killed stage loses at most a shard and another `top` scores only what is new.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from coderet import registry
from coderet.encoders import encoding
from coderet.metrics import efficiency
from coderet.records import NO_HIT, DataError, Queries, Run, assemble

RERANKERS = {"cross-encoder": "coderet.retrievers.cross_encoder:CrossEncoder"}
FORMAT = 1
_FILE = "reranker.json"


class Reranker(Protocol):
    """fingerprint names model, lengths and precision: with the two texts, the key of a score."""

    fingerprint: str

    @property
    def parameters(self) -> int: ...

    def save(self, folder: Path) -> None: ...

    def scores(self, queries: pa.ChunkedArray, documents: pa.ChunkedArray) -> np.ndarray:
        """(N,) float32 scores of the pairs, row by row; higher is better."""
        ...


def prepare(kind: str, fit: Mapping[str, Any], work: Path, where: str = "params.yaml: rerankers") -> Reranker:
    """A reranker from `fit` of params.yaml; what it fetches goes to work."""
    make = _kind(kind, where).prepare
    made: Reranker = make(work, **registry.fit_arguments(make, fit, f"{where}.fit"))
    return made


def save(reranker: Reranker, kind: str, folder: Path) -> None:
    """Write reranker, which is of that kind, into folder, which is new."""
    folder.mkdir(parents=True, exist_ok=True)
    reranker.save(folder)
    (folder / _FILE).write_text(json.dumps({"kind": kind, "format": FORMAT}) + "\n", encoding="utf-8")


def load(folder: Path, kind: str, settings: Mapping[str, Any], where: str | None = None) -> Reranker:
    """The reranker in folder with the settings of its kind; DataError if the folder holds none or one of another kind.

    where is the place that settings come from, by default the entry in params.yaml that has the folder's name.
    """
    where = where or f"params.yaml: rerankers.{folder.name}"
    make = _kind(kind, where).load
    arguments = registry.fit_arguments(make, settings, where, _any_reranker)
    again = f"run: dvc repro prepare-reranker@{folder.name}"
    try:
        found = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} holds no reranker ({error}); {again}") from None
    if found != {"kind": kind, "format": FORMAT}:
        raise DataError(f"{folder} holds a reranker of {found}, wanted kind {kind!r}, format {FORMAT}; {again}")
    made: Reranker = make(folder, **arguments)
    return made


@dataclass
class Tally:
    """How many hits were asked for, how many distinct pairs of them were really scored, and in how many seconds."""

    hits: int = 0
    pairs: int = 0
    seconds: float = 0.0


def rerank(
    reranker: Reranker,
    queries: Queries,
    run: Run,
    *,
    top: int,
    below: Literal["drop", "keep"] = "drop",
    text_fields: tuple[str, ...] = ("text",),
    cache: Path | None = None,
    progress: str | None = None,
    tally: Tally | None = None,
) -> Run:
    """run with the first top hits of every query scored anew.

    below: hits after those are dropped, so that the run is top deep, or kept in their order. Kept ones get scores that
    descend from the lowest new one, equal where they were equal: numbers of another kind, good for their order only.
    text_fields are read of the documents. cache: where scores are kept between calls, processes and crashes. DataError
    if run is not of queries, or for a score that is not finite, with the query and the document.
    """
    if not run.query_ids.equals(queries.ids):
        raise DataError(f"a run of {len(run)} queries is not one of these {len(queries)}; search them again")
    if top < 1 or below not in ("drop", "keep"):
        raise DataError(f"top is {top} and below {below!r}; wanted a number of hits from 1 on, and drop or keep")
    head = run.top(top)
    scores = np.full(head.rows.shape, -np.inf, np.float32)
    owners, places = np.nonzero(head.rows != NO_HIT)
    pairs = _Pairs(queries, head, owners, places, text_fields)
    scores[owners, places] = pairs.scores(reranker, cache, progress, tally or Tally())
    reranked = Run.of(run.corpus, run.query_ids, head.rows, scores)
    return reranked if below == "drop" or run.depth <= top else _with_rest(reranked, run, top)


def lone_queries(
    reranker: Reranker,
    queries: Queries,
    run: Run,
    *,
    top: int,
    text_fields: tuple[str, ...],
    number: int,
    warm_up: int,
) -> np.ndarray:
    """Seconds of reranking single queries: the first number of them that have hits, less warm_up that are not timed."""
    answered = np.flatnonzero((run.rows != NO_HIT).any(axis=1))[: number + warm_up]
    alone = [
        (
            Queries(queries.table.slice(int(at), 1)),
            Run(run.corpus, run.query_ids.slice(int(at), 1), run.rows[[at]], run.scores[[at]]),
        )
        for at in answered
    ]
    if not alone:
        return np.empty(0)
    return efficiency.latencies(
        lambda one: rerank(reranker, *one, top=top, text_fields=text_fields), alone, min(warm_up, len(alone) - 1)
    )


class _Pairs:
    """The hits of a run at owners (queries) and places as distinct pairs of texts, and the scores of these."""

    def __init__(
        self, queries: Queries, run: Run, owners: np.ndarray, places: np.ndarray, text_fields: tuple[str, ...]
    ) -> None:
        self._queries, self._corpus, self._fields = queries, run.corpus, text_fields
        rows = run.rows[owners, places]
        distinct_rows, of_row = np.unique(rows, return_inverse=True)
        asked = _raw(encoding.hashes_of(queries.texts))
        read = np.zeros((len(distinct_rows), encoding.HASH_BYTES), np.uint8)
        for start in range(0, len(distinct_rows), encoding.TEXTS_AT_A_TIME):
            part = slice(start, start + encoding.TEXTS_AT_A_TIME)
            read[part] = _raw(encoding.hashes_of(self._texts(distinct_rows[part])))
        keys = np.empty(len(rows), f"S{encoding.HASH_BYTES}")
        for start in range(0, len(rows), encoding.TEXTS_AT_A_TIME):
            part = slice(start, start + encoding.TEXTS_AT_A_TIME)
            both = np.hstack([asked[owners[part]], read[of_row[part]]])
            keys[part] = [hashlib.blake2b(each, digest_size=encoding.HASH_BYTES).digest() for each in both]
        self._keys, first, self._of_hit = np.unique(keys, return_index=True, return_inverse=True)
        self._query, self._row = owners[first], rows[first]
        self._first = first

    def scores(self, reranker: Reranker, cache: Path | None, progress: str | None, tally: Tally) -> np.ndarray:
        """(H,) float32 scores of the hits, each distinct pair scored at most once."""
        shards = encoding.Shards(cache / reranker.fingerprint, 1) if cache is not None else None
        known = shards.find(self._keys) if shards is not None else np.zeros(len(self._keys), bool)
        found = np.empty(len(self._keys), np.float32)
        if shards is not None:
            found[known] = shards.vectors(np.flatnonzero(known))[:, 0]
        todo = np.flatnonzero(~known)
        todo = todo[np.argsort(self._first[todo], kind="stable")]
        with tqdm(
            total=len(known), initial=int(known.sum()), desc=progress, unit="pair", disable=None if progress else True
        ) as bar:
            for start in range(0, len(todo), encoding.SHARD):
                part = todo[start : start + encoding.SHARD]
                asked = self._queries.texts.take(pa.array(self._query[part]))
                read = self._texts(self._row[part])
                begun = time.perf_counter()
                found[part] = reranker.scores(asked, read)
                tally.seconds += time.perf_counter() - begun
                self._check(found[part], part)
                if shards is not None:
                    shards.add(self._keys[part], found[part][:, None])
                bar.update(len(part))
        tally.hits, tally.pairs = tally.hits + len(self._of_hit), tally.pairs + len(todo)
        return found[self._of_hit]

    def _texts(self, rows: np.ndarray) -> pa.ChunkedArray:
        return assemble(self._corpus.table.take(pa.array(rows)), self._fields)

    def _check(self, scores: np.ndarray, part: np.ndarray) -> None:
        bad = np.flatnonzero(~np.isfinite(scores))
        if len(bad):
            pair = part[bad[0]]
            query, document = (
                each[int(at)].as_py()
                for each, at in ((self._queries.ids, self._query[pair]), (self._corpus.ids, self._row[pair]))
            )
            raise DataError(
                f"{len(bad)} of {len(scores)} pairs have a score that is not finite: query {query!r} and document "
                f"{document!r} have {scores[bad[0]]}; mend the reranker, or set its precision to fp32"
            )


def _with_rest(reranked: Run, run: Run, top: int) -> Run:
    """reranked with the hits of run after the first top behind, in their order."""
    rows, old = run.rows[:, top:], run.scores[:, top:]
    lowest = np.where(reranked.rows != NO_HIT, reranked.scores, np.inf).min(axis=1)
    lowest = np.where(np.isfinite(lowest), lowest, 0).astype(np.float32)
    scores = np.full(rows.shape, -np.inf, np.float32)
    for place in range(rows.shape[1]):
        new_step = np.ones(len(rows), bool) if place == 0 else old[:, place] < old[:, place - 1]
        # Where one less is the same number in float32, the next lower one.
        lower = np.minimum(lowest - np.float32(1), np.nextafter(lowest, np.float32(-np.inf)))
        lowest = np.where(new_step, lower, lowest)
        scores[:, place] = lowest
    return Run.of(run.corpus, run.query_ids, np.hstack([reranked.rows, rows]), np.hstack([reranked.scores, scores]))


def _raw(hashes: np.ndarray) -> np.ndarray:
    """(N, HASH_BYTES) uint8 of hashes whose last bytes, if zero, are no text's end."""
    return np.frombuffer(hashes.tobytes(), np.uint8).reshape(-1, encoding.HASH_BYTES)


def _any_reranker(*, top: int = 0, below: str = "", text_fields: Sequence[str] = ()) -> None:
    """The settings that stand beside its kind's own, whatever the kind."""


def _kind(kind: str, where: str) -> Any:
    return registry.load(RERANKERS, kind, "rerankers", f"{where}.kind")
