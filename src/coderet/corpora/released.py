"""The files of a benchmark as its authors released them: found, checked by hash, and read.

A file is looked for where a person may have put it, data/raw/<benchmark>, then in a mirror (`CODERET_DATA`: one folder
with the released files of many benchmarks, by the same names), then in its official place. In the first two it may be
packed as `<name>.gz`. What is found is checked and put into data/raw/<benchmark>; what is there already is neither
removed nor written over.
"""

import csv
import gzip
import hashlib
import io
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from coderet.corpora import sources
from coderet.corpora.pins import SourceError
from coderet.corpora.store import new_file, new_folder
from coderet.records import DataError, Released

MIRROR = "CODERET_DATA"
OFFICIAL = "official"
_BLOCK = 2**20
_NAMED = 5


@dataclass(frozen=True)
class Found:
    """What came of looking for a file: where it was found, or, if it is missing, why."""

    file: Released
    place: str
    state: Literal["there", "copied", "fetched", "missing"]

    def __str__(self) -> str:
        return f"{self.state:8} {self.file.name}: {self.place}"


def mirror() -> Path | None:
    """The folder that the environment names as the mirror, None if it names none; DataError if it is no folder."""
    named = os.environ.get(MIRROR, "")
    if named and not Path(named).is_dir():
        raise DataError(f"{MIRROR} names {Path(named).absolute()}, which is no folder; mend it, or unset it")
    return Path(named) if named else None


def gather(files: Sequence[Released], folder: Path, mirror: Path | None = None) -> list[Found]:
    """Put each of files into folder, if it is not there; what came of it, in their order.

    A file that cannot be had is `missing`, with where it comes from. DataError if one is there, or in the mirror, that
    is not the one released.
    """
    return [_gather(file, folder, mirror) for file in files]


def require(found: Sequence[Found], benchmark: str, folder: Path) -> None:
    """DataError that names every missing file and where it comes from, or if none is named and none is there."""
    if not found and not (folder.is_dir() and any(folder.iterdir())):
        raise DataError(
            f"{benchmark} is of a kind that names no files of its own, so `source: [{OFFICIAL}]` stands for nothing; "
            f"name its files under source in params.yaml, or put them into {folder}"
        )
    missing = [each for each in found if each.state == "missing"]
    if missing:
        there = ", ".join(sorted(each.name for each in folder.iterdir())[:_NAMED]) if folder.is_dir() else ""
        raise DataError(
            f"{benchmark} lacks {len(missing)} of {len(found)} files:\n"
            + "\n".join(f"  {each.file.name}: {each.place}" for each in missing)
            + f"\n{folder} holds {there or 'nothing'}; put the files there under these names, plain or as .gz, or set "
            f"{MIRROR} to a folder that has them"
        )


def _gather(file: Released, folder: Path, mirror: Path | None) -> Found:
    own = _existing(folder, file.name)
    if own is not None:
        _check(file, own)
        return Found(file, str(own), "there")
    other = _existing(mirror, file.name) if mirror is not None else None
    if other is not None:
        _check(file, other)
        _copy(other, folder / other.relative_to(cast(Path, mirror)))
        return Found(file, str(other), "copied")
    if not file.place:
        return Found(file, file.how or "no address gives it", "missing")
    try:
        _fetch(file, folder)
    except SourceError as error:
        return Found(file, f"{file.place.partition('#')[0]} ({error})", "missing")
    return Found(file, file.place, "fetched")


def _existing(folder: Path, name: str) -> Path | None:
    """The file or folder of that name, or the packed file."""
    if name.endswith("/"):
        return folder / name if (folder / name).is_dir() else None
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _check(file: Released, path: Path) -> None:
    if file.sha256 is None:
        return
    found = _digest(path)
    if found != file.sha256:
        raise DataError(
            f"{path} has SHA-256 {found}{' once unpacked' if path.suffix == '.gz' else ''}, wanted {file.sha256}: it "
            "is cut short or another version than the one released; take it away, and put the right one there"
        )


def _digest(path: Path) -> str:
    if path.is_dir():
        return sources.digest(path)
    whole = hashlib.sha256()
    with _opened(path) as content:
        while block := content.read(_BLOCK):
            whole.update(block)
    return whole.hexdigest()


def _copy(here: Path, there: Path) -> None:
    if here.is_dir():
        try:
            with new_folder(there) as draft:
                shutil.copytree(here, draft, dirs_exist_ok=True)
        except shutil.Error as error:
            raise DataError(
                f"{here} cannot be copied whole ({error}); mend it, as where a link leads nowhere"
            ) from None
        return
    with new_file(there) as draft:
        shutil.copyfile(here, draft)


def _fetch(file: Released, folder: Path) -> None:
    """From the official place to folder by one rename; SourceError if it cannot be had."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        place = file.place
        if place.startswith("url:") and "#sha256=" not in place and not place.endswith(".gz") and file.sha256:
            place += f"#sha256={file.sha256}"
        sources.fetch([place], Path(scratch, "fetched"), unpack=False)
        (fetched,) = Path(scratch, "fetched").iterdir()
        if file.name.endswith("/"):
            (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
            fetched.rename(folder / file.name)
            return
        (content,) = (path for path in fetched.rglob("*") if path.is_file())
        there = folder / (f"{file.name}.gz" if content.suffix == ".gz" and not file.name.endswith(".gz") else file.name)
        _check(file, content)
        there.parent.mkdir(parents=True, exist_ok=True)
        content.rename(there)


# Reading


@contextmanager
def opened(folder: Path, name: str) -> Iterator[IO[bytes]]:
    """The content of the file called name, or name + ".gz", in folder; DataError if it is not there or not whole."""
    with _opened(located(folder, name)) as content:
        yield content


def located(folder: Path, name: str) -> Path:
    """Where the file called name, or name + ".gz", is in folder; DataError if it is not there."""
    path = _existing(folder, name)
    if path is None:
        raise DataError(f"no {name} or {name}.gz in {folder}; run: make data BENCHMARK={folder.name}")
    return path


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as content:
            yield content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is not whole ({error}); take it away and fetch it again") from None


def json_lines(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The records of a file of JSON lines, one by one; DataError names the line that is no JSON object."""
    with opened(folder, name) as content:
        for number, line in enumerate(content, 1):
            if not line.strip():
                continue
            record = _parsed(line, f"{folder / name}, line {number}")
            if not isinstance(record, dict):
                raise DataError(f"{folder / name}, line {number} is {type(record).__name__}, wanted an object")
            yield record


def json_whole(folder: Path, name: str) -> Any:
    """What a file of JSON holds."""
    with opened(folder, name) as content:
        return _parsed(content.read(), str(folder / name))


def _parsed(content: bytes, place: str) -> Any:
    try:
        value = json.loads(content)
        if b"\\ud" in content or b"\\uD" in content:  # half of a surrogate pair is no character, and no column takes it
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place} is not JSON that can be read ({error}); fetch the file again") from None
    return value


def json_array(folder: Path, name: str, fields: Mapping[str, type | tuple[type, ...]]) -> list[dict[str, Any]]:
    """The records of a file that is one JSON array; DataError names the one that lacks a field of its type."""
    records = json_whole(folder, name)
    if not isinstance(records, list):
        raise DataError(f"{folder / name} is one {type(records).__name__}, wanted a list of records")
    for number, record in enumerate(records):
        check_fields(record, fields, f"{folder / name}, record {number}")
    return records


def check_fields(record: Any, fields: Mapping[str, type | tuple[type, ...]], place: str) -> None:
    """DataError, which says where, unless record is a mapping that has all fields, each of its type."""
    for field, kind in fields.items():
        if not isinstance(record, dict) or not isinstance(record.get(field), kind):
            found = sorted(map(str, record)) if isinstance(record, dict) else type(record).__name__
            raise DataError(f"{place} has no {field} as it should be, but {found}; is it another benchmark's file?")


def csv_records(folder: Path, name: str, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """The rows of a UTF-8 file of comma-separated values, by its header; DataError if that lacks one of columns."""
    with opened(folder, name) as content:
        rows = csv.reader(io.TextIOWrapper(content, encoding="utf-8-sig", newline=""), strict=True)
        try:
            header = next(rows, [])
            if not set(columns) <= set(header):
                raise DataError(f"{folder / name} has columns {header}, wanted {', '.join(columns)}")
            for row in rows:
                if len(row) != len(header):
                    raise DataError(
                        f"{folder / name}, line {rows.line_num} has {len(row)} cells, wanted {len(header)}; fetch again"
                    )
                yield dict(zip(header, row, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(f"{folder / name}, line {rows.line_num} cannot be read ({error}); fetch it again") from None
