"""A data set of the Hugging Face hub, read from a local folder of its layout: a snapshot, or what a person put there.

A data set has *configs* (tables of their own, such as corpus and queries) and each has *splits*; each split is one or
more files. Which files is said by `configs:` in the YAML head of README.md. A config that it does not name, or where
there is no README.md, follows the hub's habits: files `<split>-00000-of-00003.parquet` in `<config>/`, for the config
`default` in `data/` or at the top; `<config>/<split>/0000.parquet`; else the files or folders that are called after
train, validation or test; else all files are the split train.

Nothing is converted, cached or asked of a server. A split of which shards are missing is refused, not read short.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from coderet.records import DataError
from coderet.registry import nearest

DEFAULT = "default"
ROWS_A_BATCH = 8_192
ENDINGS = (".parquet", ".jsonl", ".json", ".jsonl.gz", ".json.gz")

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<rest>[^/]*)")
_NUMBERED = re.compile(r"\d+\.parquet")
_SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_LFS = b"version https://git-lfs"
_TOLD = 8  # names in a message

Splits = Mapping[str, Sequence[Path]]


def batches(folder: Path, config: str, split: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of one split, streamed, in the order of its files; only the named columns, if any are named.

    Parquet keeps its types; those of JSON are found anew for every batch. DataError, which lists what there is, for a
    config, a split or a column that there is not and for missing shards; and for files that are not whole.
    """
    for path in files(folder, config, split):
        read = _parquet if path.suffix == ".parquet" else _json
        yield from read(path, columns)


def column(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """A column as kind; DataError where its values are no such thing, as lists are no text."""
    try:
        return pc.cast(batch[name], kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"the column {name} holds {batch[name].type}, which cannot be read as {kind} ({error}); is it another data "
            "set?"
        ) from None


def files(folder: Path, config: str, split: str) -> list[Path]:
    """The files of one split, every shard there; DataError, as of `batches`."""
    found = _splits_of(folder, config)
    if split not in found:
        raise DataError(
            f"{folder}: config {config} has no split {split}; there are: {_listed(found)}.{nearest(split, found)}"
        )
    _check_shards(folder, found[split])
    return list(found[split])


def columns(folder: Path, config: str, split: str) -> list[str]:
    """The columns of a split, by its first file; of JSON, by the first row."""
    path = files(folder, config, split)[0]
    read = _parquet_columns if path.suffix == ".parquet" else _json_columns
    return read(path)


def splits(folder: Path, config: str) -> list[str]:
    """The splits of a config that have files; DataError if there is no such config."""
    return list(_splits_of(folder, config))


def configs(folder: Path) -> list[str]:
    """The configs of the data set in folder; DataError if it holds none."""
    return list(_configs(folder))


def split_or_only(folder: Path, config: str, split: str) -> str:
    """split, if the config has it, else the only split that it has, as loaders of retrieval data take it."""
    found = splits(folder, config)
    return found[0] if split not in found and len(found) == 1 else split


# Which files


def _splits_of(folder: Path, config: str) -> Splits:
    known = _configs(folder)
    if config not in known:
        raise DataError(
            f"{folder} has no config {config}; there are: {_listed(known)}.{nearest(config, known)} Is it another data "
            "set, or one that is not whole?"
        )
    return known[config]


def _configs(folder: Path) -> dict[str, Splits]:
    """Splits by config; those that README.md names come first and hide a folder of the same name."""
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; put the data set there, or fetch it")
    found = {name: _named(folder, name, entry) for name, entry in _head(folder).items()}
    for name, paths in _folders(folder).items():
        found.setdefault(name, _by_habit(folder / name if name != DEFAULT else folder, paths))
    found = {name: each for name, each in found.items() if each}
    if not found:
        there = _listed(sorted(each.name for each in folder.iterdir())) or "nothing"
        raise DataError(f"{folder} holds no data of the hub's layout ({', '.join(ENDINGS)}), but: {there}")
    return found


def _head(folder: Path) -> dict[str, Any]:
    """What README.md says of each config."""
    path = folder / "README.md"
    if not path.is_file():
        return {}
    try:
        head = re.match(r"\s*---\s*\n(.*?)\n---\s*(?:\n|$)", path.read_text(encoding="utf-8-sig"), re.DOTALL)
        said = yaml.safe_load(head[1]) if head else None
        entries = (said or {}).get("configs") or []
        return {str(each["config_name"]): each for each in entries}
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, KeyError, TypeError) as error:
        raise DataError(f"the head of {path} cannot be read ({error}); fetch the file again") from None


def _named(folder: Path, config: str, entry: Mapping[str, Any]) -> Splits:
    """The files of a config by the patterns of README.md: text, a list of texts, or a list of split and path."""
    base = folder / str(entry.get("data_dir") or ".")
    if entry.get("data_files") is None:
        return _by_habit(base, sorted(_data_files(base)))
    patterns: dict[str, list[str]] = {}
    for each in _list(entry["data_files"]):
        split, paths = (each.get("split"), each.get("path")) if isinstance(each, Mapping) else ("train", each)
        patterns.setdefault(str(split), []).extend(_list(paths))
    return {
        split: found
        for split, some in patterns.items()
        if (found := [path for pattern in some for path in _matching(base, str(pattern), f"{folder}, {config}")])
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _matching(base: Path, pattern: str, where: str) -> list[Path]:
    if pattern.startswith("/") or ".." in pattern.split("/") or "://" in pattern:
        raise DataError(f"{where}: README.md names {pattern!r}, which is not in the folder; wanted a path inside it")
    if pattern.endswith("**"):
        pattern += "/*"
    try:
        return sorted(path for path in base.glob(pattern) if path.name.endswith(ENDINGS) and path.is_file())
    except ValueError as error:
        raise DataError(f"{where}: README.md names {pattern!r}, which is no pattern of files ({error})") from None


def _folders(folder: Path) -> dict[str, list[Path]]:
    """Data files by the folder that makes a config of them; `default` are those at the top, in data/ and by split."""
    found: dict[str, list[Path]] = {}
    for path in sorted(_data_files(folder)):
        parts = path.relative_to(folder).parts
        own = DEFAULT if len(parts) == 1 or parts[0] == "data" or _split_of(parts[0]) else parts[0]
        found.setdefault(own, []).append(path)
    return found


def _data_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.name.endswith(ENDINGS) and not hidden and path.is_file() and path.name != "dataset_infos.json":
            yield path


def _by_habit(base: Path, paths: Iterable[Path]) -> Splits:
    """The splits that files are called after; one way of calling them holds for all."""
    paths = list(paths)
    for split_of in (_sharded_split, _folder_split, _file_split):
        found: dict[str, list[Path]] = {}
        for path in paths:
            split = split_of(path.relative_to(base))
            if split:
                found.setdefault(split, []).append(path)
        if found:
            return found
    return {"train": paths} if paths else {}


def _sharded_split(path: Path) -> str | None:
    shard = _SHARD.fullmatch(path.name)
    return shard["stem"] if shard else None


def _folder_split(path: Path) -> str | None:
    if len(path.parts) > 1 and _NUMBERED.fullmatch(path.name):
        return path.parts[-2]
    return next((split for part in path.parts[:-1] if (split := _split_of(part))), None)


def _file_split(path: Path) -> str | None:
    return _split_of(path.name)


def _split_of(name: str) -> str | None:
    words = re.split(r"[-._ 0-9]+", name)
    return next((split for split, known in _SPLIT_WORDS.items() if any(word in known for word in words)), None)


def _check_shards(folder: Path, paths: Iterable[Path]) -> None:
    """DataError that names the files that are missing of those numbered `-of-`."""
    numbers: dict[tuple[Path, str, str], set[int]] = {}
    endings: dict[tuple[Path, str, str], str] = {}
    for path in paths:
        if shard := _SHARD.fullmatch(path.name):
            key = path.parent, shard["stem"], shard["count"]
            numbers.setdefault(key, set()).add(int(shard["number"]))
            endings[key] = re.sub(r"^-[^.]*", "-*", shard["rest"])  # a hash may follow the numbers
    for (parent, stem, count), there in numbers.items():
        missing = sorted(set(range(int(count))) - there)
        if missing:
            ending = endings[parent, stem, count]
            names = [f"{stem}-{each:05}-of-{count}{ending}" for each in missing]
            raise DataError(
                f"{parent} has {len(there)} of {int(count)} files of {stem}; missing: {_listed(names)}. The data set "
                f"in {folder} is not whole: fetch it again"
            )


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return ", ".join(names[:_TOLD]) + more


# What is in them


def _parquet(path: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    with _opened(path) as file:
        _check_columns(path, file.schema_arrow.names, columns)
        yield from file.iter_batches(ROWS_A_BATCH, columns=None if columns is None else list(columns))


def _parquet_columns(path: Path) -> list[str]:
    with _opened(path) as file:
        return list(file.schema_arrow.names)


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowInvalid, OSError) as error:
        with path.open("rb") as content:
            pointer = content.read(len(_LFS)) == _LFS
        if pointer:
            raise DataError(f"{path} is a pointer of Git LFS, not the file itself; run: git lfs pull") from None
        raise DataError(f"{path} is cut short or is no Parquet file ({error}); fetch it again") from None


def _json(path: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    for row in _json_rows(path):
        _check_columns(path, list(row), columns)
        rows.append(row if columns is None else {name: row[name] for name in columns})
        if len(rows) == ROWS_A_BATCH:
            yield _batch(path, rows)
            rows = []
    if rows:
        yield _batch(path, rows)


def _json_columns(path: Path) -> list[str]:
    return list(next(_json_rows(path), {}))


def _batch(path: Path, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    try:
        return pa.RecordBatch.from_pylist(rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(f"{path} has a column of several types ({error}); make them one") from None
    except UnicodeEncodeError as error:
        raise DataError(f"{path} holds half of a surrogate pair, which is no character ({error})") from None


def _json_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, or of one list of objects, which is read whole."""
    read = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as content:
            lines = (line for line in content if line.strip())
            for line in lines:
                if read == 0 and line.lstrip().startswith(b"["):
                    yield from json.loads(line + b"".join(lines))
                    return
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError(f"{type(row).__name__} where an object is wanted")
                read += 1
                yield row
    except (ValueError, RecursionError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path}, after {read} rows: not whole or not JSON ({error}); fetch the file again") from None


def _check_columns(path: Path, there: Sequence[str], wanted: Sequence[str] | None) -> None:
    missing = [name for name in wanted or () if name not in there]
    if missing:
        raise DataError(
            f"{path} has no column {_listed(missing)}; there are: {_listed(there)}. Is it another data set?"
        )
