"""Which pairs are learned from: those that were mined, by language, and a person's own files, in what proportion.

>>> gathered(Path("data/pairs/train.parquet"), {"own": "/data/own.parquet"}, {"python": 3, "own": 1})

A *source* is a language of the mined pairs or a named file in the same form (`records.PAIRS`). Without a mixture and
without smoothing all pairs count alike, and sources are only counted.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coderet import registry
from coderet.corpora import store
from coderet.records import DataError
from coderet.training.batches import NO_SOURCE, Mixture, place_in_group, random_of
from coderet.training.vocabulary import read_texts

COLUMNS = ("pair_id", "repository", "path", "language", "name", "query", "code")
NO_ROW = -1
SHOWN = 3  # of what is wrong


class Gathered(NamedTuple):
    """Pairs of all files. rows: (N,) a pair's row in the file of the mined ones, NO_ROW if it is of another.

    facts: pairs by source, how many of them are not used, what share of a batch each source has if they are mixed, and
    how many pairs were left out because a side of theirs says nothing.
    """

    table: pa.Table
    rows: np.ndarray
    mixture: Mixture | None
    facts: dict[str, Any]


def gathered(
    mined: Path,
    files: Mapping[str, Any] | None = None,
    mixture: Mapping[str, Any] | None = None,
    smoothing: float | None = None,
    epoch_pairs: int = 0,
    a_repository: int = 0,
    seed: int = 0,
) -> Gathered:
    """The pairs of a file of mined ones and of others by name.

    mixture: what each source weighs in a batch; sources that it does not name are not used. smoothing: each source
    weighs as many pairs as it has to that power, 1 for as it is, 0 for alike. epoch_pairs: of a mixture's epoch, 0 for
    as many as its sources have. a_repository: at most so many pairs of a repository in a file, drawn by seed, 0 for all
    of them. DataError for a file that cannot be used, UnknownName for a source that is none.
    """
    _check(files, mixture, smoothing, epoch_pairs)
    tables, rows, sources, empty = [], [], list[str](), 0
    for name, path in {"": mined, **{name: Path(each) for name, each in (files or {}).items()}}.items():
        if name and name in sources:
            raise registry.BadValue(f"fit.pairs.files.{name} has the name of a mined language; give it another")
        table = _read(path)
        whole = store.whole_pairs(table)
        empty += int((~whole).sum())
        if a_repository:
            whole[whole] = _first_of_each(table.filter(pa.array(whole))["repository"], a_repository, seed)
        kept = table.filter(pa.array(whole))
        if not len(kept):
            raise DataError(f"{path} has no pair with both a query and code; wanted text in both columns")
        tables.append(kept)
        rows.append(np.full(len(kept), NO_ROW) if name else np.flatnonzero(whole))
        sources += [name] * len(kept) if name else pc.fill_null(kept["language"], "").to_pylist()
    counts = Counter(sources)
    mixed = _mixture(sources, counts, mixture, smoothing, epoch_pairs)
    used = counts if mixed is None else Counter({name: counts[name] for name in mixed.names})
    shares = {} if mixed is None else dict(zip(mixed.names, mixed.shares, strict=True))
    facts = {
        "pairs_by_source": dict(sorted(counts.items())),
        "pairs_of_other_sources": counts.total() - used.total(),
        "shares_by_source": shares,
        "pairs_without_a_side": empty,
    }
    return Gathered(pa.concat_tables(tables), np.concatenate(rows), mixed, facts)


def _read(path: Path) -> pa.Table:
    table = read_texts(path, COLUMNS)
    counts = pc.value_counts(table["pair_id"])
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        some = ", ".join(map(repr, repeated.field("values").to_pylist()[:SHOWN]))
        raise DataError(f"{path} has {len(repeated)} pair ids that stand more than once, {some}...; wanted each once")
    return table.select(COLUMNS).cast(pa.schema([(name, pa.large_string()) for name in COLUMNS]))


def _first_of_each(repositories: pa.ChunkedArray, most: int, seed: int) -> np.ndarray:
    """(N,) bool: most of the rows of each repository, or all that it has, drawn by seed."""
    labels = pc.fill_null(repositories, "").combine_chunks().dictionary_encode().indices.to_numpy()
    order = random_of(seed, 0).permutation(len(labels))
    chosen = np.zeros(len(labels), bool)
    chosen[order] = place_in_group(labels[order]) < most
    return chosen


def _check(
    files: Mapping[str, Any] | None, mixture: Mapping[str, Any] | None, smoothing: float | None, epoch_pairs: int
) -> None:
    for key, value, wanted in (("files", files, "paths"), ("mixture", mixture, "numbers")):
        if value is not None and not isinstance(value, Mapping):
            raise registry.BadValue(f"fit.pairs.{key} is {value!r}; wanted {wanted} by the names of sources")
    for name, path in (files or {}).items():
        if not isinstance(path, str | Path):
            raise registry.BadValue(f"fit.pairs.files.{name} is {path!r}; wanted the path of a Parquet file of pairs")
    for name, weight in (mixture or {}).items():
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise registry.BadValue(f"fit.pairs.mixture.{name} is {weight!r}; wanted a number")
        registry.check_range(f"fit.pairs.mixture.{name}", weight, 1e-9)
    if mixture and smoothing is not None:
        raise registry.BadValue("fit.pairs has both mixture and smoothing, which say the same thing; keep one")
    if smoothing is not None:
        registry.check_range("fit.pairs.smoothing", smoothing, 0, 1)
    registry.check_range("fit.pairs.epoch_pairs", epoch_pairs, 0)


def _mixture(
    sources: list[str],
    counts: Counter[str],
    weights: Mapping[str, Any] | None,
    smoothing: float | None,
    epoch_pairs: int,
) -> Mixture | None:
    if not weights and smoothing is None:
        if epoch_pairs:
            raise registry.BadValue("fit.pairs.epoch_pairs is for a mixture; give mixture or smoothing too")
        return None
    for name in weights or {}:
        if name not in counts:
            raise registry.UnknownName(
                f"fit.pairs.mixture names {name!r}, which is neither a language of the mined pairs nor in "
                f"fit.pairs.files; known: {', '.join(sorted(counts))}.{registry.nearest(name, counts)}"
            )
    given = dict(weights) if weights else {name: counts[name] ** float(smoothing or 0) for name in sorted(counts)}
    total = sum(given.values())
    place = {name: number for number, name in enumerate(given)}
    return Mixture(
        tuple(given),
        np.array([place.get(name, NO_SOURCE) for name in sources]),
        tuple(weight / total for weight in given.values()),
        epoch_pairs or sum(counts[name] for name in given),
    )
