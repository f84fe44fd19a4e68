"""Codes that a retriever takes for the answer and that are none: what a better encoder has most to learn from.

Every training query is searched among all training codes. Of the hits in a window of ranks (the first ones are too
often right answers that nobody marked), those are left out that are known or likely to be answers: the same text, the
code of a pair with the same query, a near copy of the query's own code, and, with a margin, whatever scores nearly as
high as that (as in NV-Retriever: Moreira et al., 2024). A teacher may then score what is left (`rescored`), cut again
what it holds for right, and leave its scores to be learned from.

Queries are searched some at a time, and each part is kept in the work folder: a killed run goes on where it was.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from coderet import registry
from coderet.corpora import store
from coderet.corpora.fingerprints import Fingerprints, Threshold, fingerprint, near
from coderet.records import NO_HIT, Corpus, DataError, Encoder, Retriever, Searcher, documents_batch
from coderet.training import negatives
from coderet.training.augmentation import Draws
from coderet.training.keys import text_keys
from coderet.training.mixture import NO_ROW, Gathered, gathered

FORMAT = 1
QUERIES_AT_A_TIME = 4096
TEXTS_AT_A_TIME = 16_384
CAUSES = ("same_text", "same_query", "margin", "near_copy")
_CODES = "codes"


def mine(
    pairs_path: Path,
    retriever: Retriever,
    identity: str,
    out: Path,
    work_folder: Path,
    seed: int,
    *,
    first: int = 10,
    last: int = 100,
    a_pair: int = 8,
    draw: Literal["hardest", "random"] = "hardest",
    margin: float | None = None,
    factor: float | None = None,
    near_copies: bool = True,
) -> dict[str, Any]:
    """Write the negatives of the pairs at pairs_path to out; the facts of it, each hit in exactly one count.

    identity: what the retriever's answers follow from, for the name of the work folder. first, last: ranks among the
    hits without the pair's own code, counted from 1, both taken. a_pair: at most so many; draw: the highest of those
    that may be taken, or some by chance. margin, factor: a negative scores at most the own code's score less margin, at
    most factor times that; a query whose own code is not among its hits then has none. near_copies: cut them.
    """
    registry.check_range("negatives.first", first, 1)
    registry.check_range("negatives.last", last, first)
    registry.check_range("negatives.a_pair", a_pair, 1)
    registry.check_range("negatives.factor", 1 if factor is None else factor, 0, 1)
    registry.check_range("negatives.margin", 0 if margin is None else margin, 0)
    pairs = gathered(pairs_path)
    settings = {"first": first, "last": last, "draw": draw, "margin": margin, "factor": factor, "near": near_copies}
    work = work_folder / _key(negatives.digest_of(pairs_path), identity, seed, settings | {"a_pair": a_pair})
    searcher = _searcher(pairs.table, retriever, work)
    judge = _Judge(pairs.table, settings, a_pair, seed)
    found = _kept(
        work, len(pairs.table), lambda rows: judge.chosen(rows, *_hits(searcher, pairs.table, rows, last + 1))
    )
    counts = Counter[str]()
    for part in found:
        counts.update(dict(zip(("hits", *CAUSES, "not_wanted", "taken"), part["counts"].tolist(), strict=True)))
        counts["pairs_without"] += int((part["rows"] == NO_ROW).all(axis=1).sum())
    _write(out, pairs_path, pairs, found)
    return {"pairs": len(pairs.table), **dict(counts)}


def rescored(
    path: Path,
    pairs_path: Path,
    encoder: Encoder,
    out: Path,
    work_folder: Path,
    *,
    margin: float = 0.0,
) -> dict[str, Any]:
    """Write the negatives at path to out with the cosines that a teacher's vectors have, the pair's own included.

    margin: a negative that scores more than the own code less margin is taken out. Vectors are kept where the encoder
    keeps them; what stands in the work folder is made anew by every run.
    """
    registry.check_range("rescorers.margin", margin, -2, 2)
    pairs, mined = gathered(pairs_path), negatives.read(path, pairs_path)
    work_folder.mkdir(parents=True, exist_ok=True)
    row_of = np.full(len(mined.own), NO_ROW)
    row_of[pairs.rows] = np.arange(len(pairs.rows))
    rows = np.where(mined.rows == NO_ROW, NO_ROW, row_of[mined.rows])[pairs.rows]
    parts, counts = [], Counter[str]()
    with store.new_file(work_folder / "codes.npy") as scratch:
        codes = np.lib.format.open_memmap(scratch, "w+", np.float32, (len(rows), encoder.dim))
        for start, texts in _texts(pairs.table["code"], "codes"):
            codes[start : start + len(texts)] = _units(encoder.encode_documents(texts))
        for start, texts in _texts(pairs.table["query"], "queries"):
            queries, theirs = _units(encoder.encode_queries(texts)), rows[start : start + len(texts)]
            own = np.einsum("qd,qd->q", queries, codes[start : start + len(texts)])
            scores = np.stack([np.einsum("qd,qd->q", queries, codes[each]) for each in theirs.T], axis=1)
            stays = (theirs != NO_ROW) & (scores <= own[:, None] - margin)
            counts["taken"] += int(stays.sum())
            counts["above_own"] += int((theirs != NO_ROW).sum() - stays.sum())
            order = np.argsort(np.where(stays, -scores, np.inf), axis=1, kind="stable")
            kept = np.take_along_axis(np.where(stays, theirs, NO_ROW), order, 1)
            counts["pairs_without"] += int((kept == NO_ROW).all(axis=1).sum())
            parts.append({"rows": kept, "scores": np.take_along_axis(scores, order, 1), "own": own})
    _write(out, pairs_path, pairs, parts)
    return {"pairs": len(rows), **dict(counts)}


class _Judge:
    """Which hits of a query are taken for negatives."""

    def __init__(self, table: pa.Table, settings: Mapping[str, Any], a_pair: int, seed: int) -> None:
        self._settings, self._a_pair, self._seed = settings, a_pair, seed
        self._queries, self._codes = text_keys(table["query"]), text_keys(table["code"])
        self._prints: Fingerprints | None = None
        if settings["near"]:
            self._prints = fingerprint(table["code"], table["language"])

    def chosen(self, rows: np.ndarray, hits: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
        """For pairs in rows (B,) with hits (B, k), best first: rows and scores (B, a_pair), own (B,), counts."""
        settings, mine = self._settings, hits == rows[:, None]
        own = np.where(mine.any(axis=1), scores[np.arange(len(rows)), mine.argmax(axis=1)], np.nan)
        others = (hits != NO_HIT) & ~mine
        ranks = np.cumsum(others, axis=1)
        left = others & (ranks >= settings["first"]) & (ranks <= settings["last"])
        counts = [int(left.sum())]
        ceiling = np.full(len(rows), np.inf)
        if settings["margin"] is not None:
            ceiling = np.minimum(ceiling, own - settings["margin"])
        if settings["factor"] is not None:
            ceiling = np.minimum(ceiling, own * settings["factor"])
        for cut in (
            self._codes[hits] == self._codes[rows][:, None],
            self._queries[hits] == self._queries[rows][:, None],
            ~(scores <= ceiling[:, None]),  # also where the own score is NaN, below every hit
        ):
            counts.append(int((left & cut).sum()))
            left &= ~cut
        order = np.argsort(~left, axis=1, kind="stable")
        if settings["draw"] == "random":
            draws = Draws(self._seed, 0)
            turns = np.stack([draws.of(rows, each) for each in range(hits.shape[1])], axis=1)
            order = np.argsort(np.where(left, turns, 2.0), axis=1, kind="stable")
        taken = np.full((len(rows), self._a_pair), NO_ROW)
        kept = np.full(taken.shape, np.nan, np.float32)
        near_copies = 0
        for place, many in enumerate(left.sum(axis=1).tolist()):
            columns: list[int] = []
            for column in order[place, :many].tolist():
                if len(columns) == self._a_pair:
                    break
                if self._prints is not None and self._near(int(rows[place]), int(hits[place, column])):
                    near_copies += 1
                    continue
                columns.append(column)
            columns.sort()  # hardest first
            taken[place, : len(columns)], kept[place, : len(columns)] = hits[place, columns], scores[place, columns]
        number = int((taken != NO_ROW).sum())
        counts += [near_copies, int(left.sum()) - near_copies - number, number]
        return {"rows": taken, "scores": kept, "own": own.astype(np.float32), "counts": np.array(counts)}

    def _near(self, one: int, other: int) -> bool:
        assert self._prints is not None
        if self._prints.exact[one] == self._prints.exact[other]:
            return True
        totals, threshold = self._prints.totals_of((one, other)), Threshold()
        return min(totals) >= threshold.identifiers and near(self._prints.of(one), self._prints.of(other), threshold)


def _searcher(table: pa.Table, retriever: Retriever, work: Path) -> Searcher:
    """Over all codes, whose document ids are their rows, so that they lie in the opposite order."""
    path = work / "corpora" / f"{_CODES}.arrow"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        store.write_corpus(path, _documents(table["code"]))
    corpus: Corpus = store.read_corpus(work, _CODES)
    if not (work / "index").is_dir():
        with store.new_folder(work / "index") as draft:
            retriever.index(corpus, draft)
    return retriever.open(corpus, work / "index")


def _documents(codes: pa.ChunkedArray) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(codes), TEXTS_AT_A_TIME):
        texts = codes.slice(start, TEXTS_AT_A_TIME).combine_chunks()
        yield documents_batch([f"{start + each:012d}" for each in range(len(texts))], [""] * len(texts), texts)


def _hits(searcher: Searcher, table: pa.Table, rows: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose code is a hit, and scores, of the queries in rows, one after the other."""
    queries = table["query"].slice(int(rows[0]), len(rows))
    found, scores = searcher.search(queries, min(depth, len(table)))
    return np.where(found == NO_HIT, NO_HIT, len(table) - 1 - found), scores


def _kept(work: Path, count: int, made: Any) -> list[dict[str, np.ndarray]]:
    """What made gives for some rows at a time, from the work folder where it is already there."""
    parts = []
    for start in tqdm(range(0, count, QUERIES_AT_A_TIME), desc="negatives", unit="block", disable=None):
        path = work / f"{start}.npz"
        if not path.exists():
            rows = np.arange(start, min(start + QUERIES_AT_A_TIME, count))
            with store.new_file(path) as draft, draft.open("wb") as file:
                np.savez(file, **made(rows))
        with np.load(path) as part:
            parts.append(dict(part))
    return parts


def _write(out: Path, pairs_path: Path, pairs: Gathered, parts: list[dict[str, np.ndarray]]) -> None:
    """parts are of pairs one after the other; the file's rows that are no whole pair have no negatives."""
    ids = pq.read_table(pairs_path, columns=["pair_id"])["pair_id"]
    place = np.full(len(ids), NO_ROW)
    place[pairs.rows] = np.arange(len(pairs.rows))
    rows, scores, own = (np.concatenate([part[name] for part in parts]) for name in ("rows", "scores", "own"))
    rows = np.where(rows == NO_ROW, NO_ROW, pairs.rows[rows])

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(ids), TEXTS_AT_A_TIME):
            some = place[start : start + TEXTS_AT_A_TIME]
            there = some != NO_ROW
            yield negatives.batch_of(
                ids.slice(start, len(some)),
                np.where(there[:, None], rows[some], NO_ROW),
                scores[some],
                np.where(there, own[some], np.nan),
            )

    negatives.write(out, pairs_path, batches())


def _texts(column: pa.ChunkedArray, what: str) -> Iterator[tuple[int, pa.ChunkedArray]]:
    for start in tqdm(range(0, len(column), TEXTS_AT_A_TIME), desc=what, unit="block", disable=None):
        yield start, column.slice(start, TEXTS_AT_A_TIME)


def _units(vectors: np.ndarray) -> np.ndarray:
    if not np.isfinite(vectors).all():
        raise DataError("the teacher gave vectors that are not finite; mend or replace it")
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _key(*parts: Any) -> str:
    return hashlib.sha256(json.dumps([FORMAT, *parts], sort_keys=True).encode()).hexdigest()[:32]
