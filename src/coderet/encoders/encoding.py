"""The engine that encodes many texts: each distinct text once, in batches by length, and kept on disk if asked.

One rule makes cached and uncached vectors equal bit for bit, whatever else was asked for before: **a text's vector
depends on that text alone**. Encoders keep it by padding a text to the next multiple of LENGTH_STEP of its own length,
never to the longest of the batch; its row is then the same in a batch of one and of a hundred. (Asserted in fp32
for the encoders of this package on processors. Graphics processors, and the matrix units that some processors compute
bf16 with, choose how to add up by batch size: there a number of a vector moves by some 1e-3, as far as bf16 rounds, and
the same texts in the same order still give the same bytes.)

A cache is a folder `<encoder's fingerprint>/<role>/` of shards. A shard is a safetensors file of hashes (n, 16) uint8
and vectors (n, dim) float32, named for its content and moved into place whole, so that writers never meet; a file that
was cut short is removed and its texts are encoded again.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from tqdm import tqdm

from coderet.records import DataError, Encoder

LENGTH_STEP = 16
SHARD = 2048  # texts between two saves: what a killed process loses at most
TEXTS_AT_A_TIME = 4096
HASH_BYTES = 16
POSITIONS_SHOWN = 10

Role = Literal["query", "document"]


def batches(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Rows of texts with these lengths (N,), longest first, so many at a time that their padded tokens fit into budget.

    A text that is over budget alone makes a batch of its own. Every row comes once. No batch mixes padded lengths: what
    the encoder sees beside a text never changes that text's shape.
    """
    widths = np.maximum(1, -(-lengths // LENGTH_STEP)) * LENGTH_STEP
    order = np.argsort(-widths, kind="stable")
    starts = np.flatnonzero(np.diff(widths[order], prepend=-1))
    for start, end in zip(starts, np.append(starts, len(order))[1:], strict=True):
        rows = max(1, budget // int(widths[order[start]]))
        for first in range(start, end, rows):
            yield order[first : min(first + rows, end)]


@dataclass
class Tally:
    """How many texts were asked for, and how many distinct ones of them were really encoded, over all calls so far."""

    texts: int = 0
    encoded: int = 0


def encode(
    encoder: Encoder,
    texts: pa.Array | pa.ChunkedArray,
    role: Role,
    *,
    cache: Path | None = None,
    out: np.ndarray | None = None,
    progress: str | None = None,
    tally: Tally | None = None,
) -> np.ndarray:
    """Vectors (N, dim) float32 of texts in their order, each distinct text encoded at most once.

    cache: where vectors are kept between calls, processes and crashes; without it nothing is written. out: an array of
    that shape to fill instead of a new one, such as a memory-mapped one. progress: what the progress bar is called,
    None for no bar. tally is added to. Holds a hash a text and one shard of texts in memory. DataError names the rows
    whose vector is not finite.
    """
    texts = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array([texts])
    if out is None:
        out = np.empty((len(texts), encoder.dim), dtype=np.float32)
    if out.shape != (len(texts), encoder.dim):
        raise DataError(f"out has shape {out.shape}, wanted {(len(texts), encoder.dim)}")
    distinct, first_rows, of_row = np.unique(hashes_of(texts), return_index=True, return_inverse=True)
    shards = Shards(cache / encoder.fingerprint / role, encoder.dim) if cache is not None else None
    found = shards.find(distinct) if shards is not None else np.zeros(len(distinct), dtype=bool)
    # Distinct texts in the order they first come: a resumed run cuts the rest into other shards, to the same vectors.
    todo = np.flatnonzero(~found)
    todo = todo[np.argsort(first_rows[todo], kind="stable")]
    members = _Members(of_row, len(distinct))
    with tqdm(total=len(texts), desc=progress, unit="text", unit_scale=True, disable=None if progress else True) as bar:
        if shards is not None:
            bar.update(members.fill(out, np.flatnonzero(found), shards.vectors))
        for part in _parts(encoder, texts, first_rows, todo, role):
            block = texts.take(pa.array(first_rows[part]))
            vectors = encoder.encode_queries(block) if role == "query" else encoder.encode_documents(block)
            _check(vectors, encoder.dim, members, part)
            if shards is not None:
                shards.add(distinct[part], vectors)
            bar.update(members.fill(out, part, lambda _, made=vectors: made))
    if tally is not None:
        tally.texts, tally.encoded = tally.texts + len(texts), tally.encoded + len(todo)
    return out


def _parts(
    encoder: Encoder, texts: pa.ChunkedArray, first_rows: np.ndarray, todo: np.ndarray, role: Role
) -> Iterator[np.ndarray]:
    """todo in shards; an encoder that asks a server has its `requests` as shards, so that no answer is lost."""
    requests = getattr(encoder, "requests", None)
    for start in range(0, len(todo), SHARD):
        part = todo[start : start + SHARD]
        if requests is None:
            yield part
        else:
            yield from (part[rows] for rows in requests(texts.take(pa.array(first_rows[part])), role))


class Cached:
    """An encoder whose document vectors are kept in folder; queries, whose time is measured, are always encoded.

    An encoder whose queries cost money may say `keep_queries`; their time is that of the cache once they are in it.

    encoded counts the distinct documents that were really encoded, over all calls: a rate is only true of those.
    """

    def __init__(self, encoder: Any, folder: Path) -> None:
        self.encoder, self.folder = encoder, folder
        self.dim: int = encoder.dim
        self.fingerprint: str = encoder.fingerprint
        self._tally = Tally()

    @property
    def encoded(self) -> int:
        return self._tally.encoded

    def encode_queries(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        if getattr(self.encoder, "keep_queries", False):
            return encode(self.encoder, texts, "query", cache=self.folder)
        vectors: np.ndarray = self.encoder.encode_queries(texts)
        return vectors

    def encode_documents(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        return encode(self.encoder, texts, "document", cache=self.folder, progress="encode", tally=self._tally)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["encoder"], name)


class _Members:
    """Which rows each distinct text stands in."""

    def __init__(self, of_row: np.ndarray, distinct: int) -> None:
        self._rows = np.argsort(of_row, kind="stable")
        self._ends = np.cumsum(np.bincount(of_row, minlength=distinct))

    def rows(self, text: int) -> np.ndarray:
        return self._rows[self._ends[text - 1] if text else 0 : self._ends[text]]

    def fill(self, out: np.ndarray, texts: np.ndarray, vectors: Any) -> int:
        """Write the vectors of distinct texts into their rows of out, a shard at a time; how many rows that were."""
        filled = 0
        for start in range(0, len(texts), SHARD):
            part = texts[start : start + SHARD]
            starts = np.where(part, self._ends[part - 1], 0)
            counts = self._ends[part] - starts
            places = np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
            out[self._rows[places]] = np.repeat(vectors(part), counts, axis=0)
            filled += len(places)
        return filled


class Shards:
    """A cache folder, as it was when opened, and what this process adds: numbers (dim of them) by the hash of a text.

    Vectors of one encoder and role; or, with dim 1, a reranker's scores of pairs.
    """

    def __init__(self, folder: Path, dim: int) -> None:
        self._folder, self._dim = folder, dim
        self._files: list[Path] = []
        keys = []
        for path in sorted(folder.glob("*.safetensors")):
            hashes = self._hashes_in(path)
            if hashes is not None:
                keys.append(hashes)
                self._files.append(path)
        lengths = [len(each) for each in keys]
        hashes = np.concatenate(keys) if keys else np.zeros(0, dtype=f"S{HASH_BYTES}")
        self._hashes, first = np.unique(hashes, return_index=True)
        self._file = np.repeat(np.arange(len(keys)), lengths)[first] if keys else first
        self._row = np.concatenate([np.arange(n) for n in lengths])[first] if keys else first
        self._places = np.zeros(0, dtype=np.int64)

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """(D,) bool: which of the wanted hashes, sorted, are here; `vectors` then takes places among the wanted."""
        places = np.searchsorted(self._hashes, wanted)
        self._places = np.minimum(places, max(0, len(self._hashes) - 1))
        if not len(self._hashes):
            return np.zeros(len(wanted), dtype=bool)
        return np.asarray(self._hashes[self._places] == wanted)

    def vectors(self, texts: np.ndarray) -> np.ndarray:
        """(n, dim) of found texts, by their places among the wanted."""
        entries = self._places[texts]
        out = np.empty((len(texts), self._dim), dtype=np.float32)
        for number in np.unique(self._file[entries]):
            here = np.flatnonzero(self._file[entries] == number)
            with safe_open(self._files[number], framework="np") as shard:
                out[here] = shard.get_tensor("vectors")[self._row[entries[here]]]
        return out

    def add(self, hashes: np.ndarray, vectors: np.ndarray) -> None:
        """Keep a shard; the same shard written twice at a time is the same file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        raw = np.frombuffer(hashes.astype(f"S{HASH_BYTES}").tobytes(), dtype=np.uint8).reshape(-1, HASH_BYTES)
        name = hashlib.blake2b(raw.tobytes(), digest_size=HASH_BYTES).hexdigest()
        handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=name, suffix=".part")
        os.close(handle)
        try:
            save_file({"hashes": raw, "vectors": np.ascontiguousarray(vectors, dtype=np.float32)}, temporary)
            os.replace(temporary, self._folder / f"{name}.safetensors")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _hashes_in(self, path: Path) -> np.ndarray | None:
        try:
            with safe_open(path, framework="np") as shard:
                hashes, shape = shard.get_tensor("hashes"), shard.get_slice("vectors").get_shape()
        except FileNotFoundError:
            return None  # another process found it broken and removed it
        except (OSError, SafetensorError):
            path.unlink(missing_ok=True)
            return None
        if shape != [len(hashes), self._dim]:
            path.unlink(missing_ok=True)
            return None
        return np.ascontiguousarray(hashes).view(f"S{HASH_BYTES}").ravel()


def hashes_of(texts: pa.ChunkedArray) -> np.ndarray:
    """(N,) of HASH_BYTES bytes each; a null text is the empty text."""
    hashes = np.empty(len(texts), dtype=f"S{HASH_BYTES}")
    for start in range(0, len(texts), TEXTS_AT_A_TIME):
        part = texts.slice(start, TEXTS_AT_A_TIME).to_pylist()
        hashes[start : start + len(part)] = [
            hashlib.blake2b((text or "").encode("utf-8"), digest_size=HASH_BYTES).digest() for text in part
        ]
    return hashes


def _check(vectors: np.ndarray, dim: int, members: _Members, part: np.ndarray) -> None:
    if vectors.shape != (len(part), dim):
        raise DataError(f"the encoder gave vectors of shape {vectors.shape}, wanted {(len(part), dim)}")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        rows = np.sort(np.concatenate([members.rows(text) for text in part[bad]]))
        shown = ", ".join(map(str, rows[:POSITIONS_SHOWN])) + (", ..." if len(rows) > POSITIONS_SHOWN else "")
        raise DataError(f"{len(rows)} texts have a vector that is not finite, at rows {shown}; mend the encoder")
