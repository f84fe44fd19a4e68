"""Hard negatives of training pairs: the file that mining writes, and which of them stand in a batch.

A file has a row for every pair of the training file, in its order: the rows of pairs whose code is a negative, hardest
first, what a retriever thought of each, and what it thought of the pair's own code. It says which training file it was
mined for, and is read for no other.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coderet import registry
from coderet.corpora import store
from coderet.records import DataError
from coderet.training.augmentation import Draws
from coderet.training.mixture import NO_ROW, Gathered

SCHEMA = pa.schema(
    [
        ("pair_id", pa.large_string()),
        ("negatives", pa.list_(pa.int32())),
        ("scores", pa.list_(pa.float32())),
        ("own_score", pa.float32()),  # null where nobody knows it
    ]
)
PAIRS = b"pairs"


class Mined(NamedTuple):
    """Negatives of N pairs. rows (N, M): NO_ROW after the last one; scores (N, M) and own (N,): NaN where unknown."""

    pair_ids: pa.ChunkedArray
    rows: np.ndarray
    scores: np.ndarray
    own: np.ndarray


@dataclass(frozen=True, eq=False)
class Negatives:
    """Hard negatives of N pairs that are learned from: rows, scores and own as in `Mined`, rows of these pairs.

    count: how many of them stand in a batch, drawn anew for every epoch.
    """

    rows: np.ndarray
    scores: np.ndarray
    own: np.ndarray
    count: int
    seed: int

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], count: int, seed: int) -> "Negatives":
        """From the arrays that `negatives_of` made; BadValue if no pair has so many."""
        rows = arrays["negative_rows"]
        if count > rows.shape[1]:
            raise registry.BadValue(
                f"fit.pairs.negatives_a_pair is {count}, but no pair has more than {rows.shape[1]}; mine more of them "
                "(negatives.a_pair) or lower it"
            )
        return cls(rows, arrays["negative_scores"], arrays["own_scores"], count, seed)

    @property
    def facts(self) -> dict[str, int]:
        """How many pairs have none."""
        return {"pairs_without_negatives": int((self.rows == NO_ROW).all(axis=1).sum())}

    def drawn(self, rows: np.ndarray, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """(B, count) rows of pairs and (B, 1 + count) float32 scores, the own first.

        A pair that has too few gets its own code instead, which no objective takes for a negative, with the score NaN.
        """
        there, draws = self.rows[rows], Draws(self.seed, epoch)
        turns = np.stack([draws.of(rows, _FIRST_STREAM + each) for each in range(there.shape[1])], axis=1)
        first = np.argsort(np.where(there == NO_ROW, 2.0, turns), axis=1, kind="stable")[:, : self.count]
        chosen = np.take_along_axis(there, first, 1)
        scores = np.where(chosen == NO_ROW, np.nan, np.take_along_axis(self.scores[rows], first, 1))
        chosen = np.where(chosen == NO_ROW, rows[:, None], chosen)
        return chosen, np.concatenate([self.own[rows][:, None], scores], axis=1).astype(np.float32)


def negatives_of(pairs: Gathered, pairs_path: Path, path: Path) -> dict[str, np.ndarray]:
    """Arrays for `Negatives`: what was mined for the file at pairs_path, in rows of pairs; others have none."""
    mined = read(path, pairs_path)
    ours = np.flatnonzero(pairs.rows != NO_ROW)
    row_of_theirs = np.full(len(mined.own) + 1, NO_ROW)  # the last one is for NO_ROW itself
    row_of_theirs[pairs.rows[ours]] = ours
    rows = np.full((len(pairs.rows), mined.rows.shape[1]), NO_ROW)
    scores, own = np.full(rows.shape, np.nan, np.float32), np.full(len(rows), np.nan, np.float32)
    theirs = pairs.rows[ours]
    rows[ours], scores[ours], own[ours] = row_of_theirs[mined.rows[theirs]], mined.scores[theirs], mined.own[theirs]
    return {"negative_rows": rows, "negative_scores": scores, "own_scores": own}


def write(path: Path, pairs_path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Batches of SCHEMA, mined for the pairs at pairs_path, as one file."""
    schema = SCHEMA.with_metadata({PAIRS: digest_of(pairs_path).encode()})
    with store.new_file(path) as draft, pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))


def read(path: Path, pairs_path: Path) -> Mined:
    """What `write` wrote; DataError if it is missing, cut short or of other pairs than those at pairs_path."""
    how = f"run: dvc repro negatives@{path.stem.split('+')[0]}"
    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise DataError(f"{path} is missing; name it in grid.negatives and {how}") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is cut short or is no Parquet file ({error}); remove it and {how}") from None
    if table.schema.remove_metadata() != SCHEMA:
        raise DataError(f"{path} has columns {table.schema.names}, wanted {SCHEMA.names}; {how}")
    if (table.schema.metadata or {}).get(PAIRS) != digest_of(pairs_path).encode():
        raise DataError(f"{path} was mined for other pairs than those of {pairs_path}; {how}")
    lists, values = table["negatives"].combine_chunks(), table["scores"].combine_chunks()
    lengths = np.diff(lists.offsets.to_numpy())
    there = np.arange(int(lengths.max(initial=0)))[None, :] < lengths[:, None]
    rows, scores = np.full(there.shape, NO_ROW), np.full(there.shape, np.nan, np.float32)
    rows[there], scores[there] = lists.flatten().to_numpy(), values.flatten().to_numpy()
    own = table["own_score"].to_numpy().astype(np.float32)  # a null is NaN
    return Mined(table["pair_id"], rows, scores, own)


def batch_of(
    pair_ids: pa.Array | pa.ChunkedArray, rows: np.ndarray, scores: np.ndarray, own: np.ndarray
) -> pa.RecordBatch:
    """A batch of SCHEMA from what `Mined` has of some pairs."""
    there = rows != NO_ROW
    ends = pa.array(np.append(0, np.cumsum(there.sum(axis=1))), pa.int32())
    lists = [
        pa.ListArray.from_arrays(ends, pa.array(values[there], kind))
        for values, kind in ((rows, pa.int32()), (scores, pa.float32()))
    ]
    ids = pair_ids.combine_chunks() if isinstance(pair_ids, pa.ChunkedArray) else pair_ids
    known = pa.array(own, pa.float32(), mask=np.isnan(own))
    return pa.RecordBatch.from_arrays([ids.cast(pa.large_string()), *lists, known], schema=SCHEMA)


def digest_of(path: Path) -> str:
    """SHA-256 of a file; DataError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error}); run: dvc repro mine") from error


_FIRST_STREAM = 16  # of draws, behind those of `variants`
