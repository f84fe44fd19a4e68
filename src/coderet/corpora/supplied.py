"""Pairs that a user brings: (query, code) from JSON Lines or Parquet, checked, and divided for a training of their own.

A row has a `query` and a `code` (or `document`), and may have an `id` (or `pair_id`), a `repository` (or `group`), a
`language`, a `path` and a `name`. Rows that cannot be meant are refused, the first few named; what is only too long
for an encoder is counted and left to it.

Pairs are divided by group where there are several, for functions of one repository know each other; else one by one.
What is held out is halved: one half chooses the best epoch, the other is scored and neither taught nor chose.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coderet.corpora import exchange
from coderet.records import (
    PAIRS,
    Corpus,
    DataError,
    Dataset,
    Qrels,
    Queries,
    documents_batch,
    qrels_table,
    queries_table,
)

LONG = 100_000  # characters of a text above which it is counted
FEWEST = 20  # pairs that can be divided into three sides at all
SHOWN = 3  # places that a message names
OTHER_NAMES = {"code": "document", "pair_id": "id", "repository": "group"}
OPTIONAL = ("repository", "language", "path", "name")
SIDES = ("train", "valid", "test")


@dataclass(frozen=True)
class Divided:
    """Tables of PAIRS. grouped: whether whole groups were held out.

    leaked: pairs left out of train because their query or code, less outer white space, is held out too.
    """

    train: pa.Table
    valid: pa.Table
    test: pa.Table
    grouped: bool
    leaked: int


def read(path: Path) -> tuple[pa.Table, dict[str, int]]:
    """The pairs in path as a table of PAIRS, and how many: pairs, groups, and texts longer than LONG characters.

    DataError for a file that is neither form or cannot be read, and for rows with a side missing, empty or no text, or
    with an id that another row has.
    """
    rows: list[dict[str, str]] = []
    ids: list[tuple[str, str]] = []
    faults: dict[str, list[str]] = {}
    for row, place in _rows(path):
        query, code = (_side(row, name, place, faults) for name in ("query", "code"))
        ids.append((_optional(row, "pair_id", place) or str(len(ids)), place))
        about = [_optional(row, name, place) for name in OPTIONAL]
        rows.append({"pair_id": ids[-1][0], "query": query, "code": code, **dict(zip(OPTIONAL, about, strict=True))})
    counts = Counter(identity for identity, _ in ids)
    repeated = [place for identity, place in ids if counts[identity] > 1]
    if repeated:
        faults["an id that another row has"] = repeated
    if faults:
        raise DataError("; ".join(_told(what, places) for what, places in faults.items()) + "; mend or remove them")
    table = pa.Table.from_pylist(rows, PAIRS)
    longest = pc.max_element_wise(pc.utf8_length(table["query"]), pc.utf8_length(table["code"]))
    return table, {
        "pairs": len(table),
        "groups": len(pc.unique(table["repository"])),
        "long": int(pc.sum(pc.greater(longest, LONG)).as_py() or 0),
    }


def divide(pairs: pa.Table, held_out: float, seed: int) -> Divided:
    """Pairs for training, for choosing and for scoring; held_out: the share of all that the last two have together.

    The same for the same pairs and seed. DataError for fewer than FEWEST pairs, or if a side would be nearly empty.
    """
    if len(pairs) < FEWEST:
        found = "1 pair" if len(pairs) == 1 else f"{len(pairs)} pairs"
        raise DataError(
            f"{found} found; wanted at least {FEWEST}, some of which are held out to choose and to score by"
        )
    for column in ("repository", "pair_id"):
        side = _sides(pairs[column].to_pylist(), held_out, seed)
        grouped = column == "repository"
        if all((side == name).sum() > 1 for name in SIDES):
            break
    else:
        by_side = {name: int((side == name).sum()) for name in SIDES}
        raise DataError(f"pairs by side are {by_side}; wanted at least two on each: give more pairs or another seed")
    chosen = {name: pairs.filter(pa.array(side == name)) for name in SIDES}
    clean = pa.array(np.ones(len(chosen["train"]), bool))
    for text in ("query", "code"):
        held = pa.chunked_array([c for name in SIDES[1:] for c in pc.utf8_trim_whitespace(chosen[name][text]).chunks])
        clean = pc.and_(clean, pc.invert(pc.is_in(pc.utf8_trim_whitespace(chosen["train"][text]), pc.unique(held))))
    train = chosen["train"].filter(clean)
    if len(train) < 2:
        raise DataError(
            "no pair is left to train on: all texts stand on both sides; are the pairs copies of each other?"
        )
    return Divided(train, chosen["valid"], chosen["test"], grouped, len(chosen["train"]) - len(train))


def benchmark(pairs: pa.Table, name: str = "test") -> Dataset:
    """Each distinct query of pairs against all their distinct codes; relevant is whatever it is paired with."""
    queries, codes = (pairs[name].combine_chunks().dictionary_encode() for name in ("query", "code"))
    query_ids = [f"q{row}" for row in range(len(queries.dictionary))]
    code_ids = [f"c{row:09}" for row in range(len(codes.dictionary))]
    judged = sorted(set(zip(queries.indices.to_pylist(), codes.indices.to_pylist(), strict=True)))
    batch = documents_batch(code_ids, [None] * len(code_ids), codes.dictionary)
    return Dataset(
        name,
        Corpus(name, pa.Table.from_batches([batch])[::-1]),
        Queries(queries_table(query_ids, queries.dictionary)),
        Qrels(qrels_table([query_ids[q] for q, _ in judged], [code_ids[c] for _, c in judged])),
    )


def _rows(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    names = path.name.removesuffix(".gz")
    if names.endswith((".jsonl", ".json", ".ndjson")):
        yield from exchange.json_lines(path)
    elif path.name.endswith(".parquet"):
        try:
            file = pq.ParquetFile(path)
            number = 0
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield {key: value for key, value in row.items() if value is not None}, f"{path}: row {number}"
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise DataError(f"{path} cannot be read ({error}); is it whole, and are its texts UTF-8?") from None
    else:
        raise DataError(f"{path} is neither JSON Lines (.jsonl, .jsonl.gz) nor Parquet (.parquet)")


def _side(row: dict[str, Any], name: str, place: str, faults: dict[str, list[str]]) -> str:
    """The text of a side; what is wrong with it is noted in faults."""
    given = name if name in row else OTHER_NAMES.get(name, name)
    if row.get(given) is None:
        faults.setdefault(f"no {name}", []).append(place)
        return ""
    text = exchange.text_of(row, given, place)
    if not text.strip():
        faults.setdefault(f"an empty {name}", []).append(place)
    return text


def _optional(row: dict[str, Any], name: str, place: str) -> str:
    value = row.get(name, row.get(OTHER_NAMES.get(name, name)))
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"{place}: {name} is {value!r}; wanted text or a whole number")
    return exchange.storable(str(value), name, place)


def _sides(labels: list[str], held_out: float, seed: int) -> np.ndarray:
    """(N,) names of sides, equal for equal labels: they are lined up by chance, and the first of the line held out."""
    names, of_row, counts = np.unique(np.array(labels, object), return_inverse=True, return_counts=True)
    order = np.argsort([_place(name, seed) for name in names], kind="stable")
    middles = (np.cumsum(counts[order]) - counts[order] / 2) / len(labels)
    side = np.empty(len(names), object)
    side[order] = np.select([middles < held_out / 2, middles < held_out], ["test", "valid"], "train")
    return side[of_row]


def _place(label: str, seed: int) -> float:
    """A number in [0, 1) that looks random."""
    return int.from_bytes(hashlib.sha256(f"{seed} {label}".encode()).digest()[:8]) / 2**64


def _told(what: str, places: list[str]) -> str:
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return f"{', '.join(places[:SHOWN])}{more}: {what}"
