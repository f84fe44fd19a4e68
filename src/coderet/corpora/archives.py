"""Files inside folders, wheels, zip files and tarballs, read without unpacking them.

A source keeps what it fetched as it came: fifty wheels are fifty files for DVC to hash, not thirty thousand.
"""

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from coderet.corpora.unpacking import TARBALLS, ZIPS, is_archive
from coderet.records import DataError


def names(path: Path, suffixes: tuple[str, ...]) -> list[str]:
    """The names that `members` gives, sorted; a tarball is unpacked to its end for them."""
    with _reading(path):
        if path.is_dir():
            return sorted(
                file.relative_to(path).as_posix()
                for file in path.rglob("*")
                if file.name.endswith(suffixes) and file.is_file()
            )
        if path.name.endswith(ZIPS):
            with zipfile.ZipFile(path) as archive:
                return sorted({name for name in archive.namelist() if name.endswith(suffixes)})
        with tarfile.open(path) as tarball:
            return sorted({each.name for each in tarball if each.isfile() and each.name.endswith(suffixes)})


def members(path: Path, suffixes: tuple[str, ...], chosen: Iterable[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each regular file under path, a folder or an archive, whose name ends in a suffix, by name.

    chosen are those of `names` to give, all if None. What a tarball gives is all in memory at once. DataError if path
    is an archive that cannot be read.
    """
    with _reading(path):
        if path.is_dir():
            for name in names(path, suffixes) if chosen is None else sorted(chosen):
                yield name, (path / name).read_bytes()
        elif path.name.endswith(ZIPS):
            with zipfile.ZipFile(path) as archive:
                for name in names(path, suffixes) if chosen is None else sorted(chosen):
                    yield name, archive.read(name)
        else:
            wanted = None if chosen is None else set(chosen)
            contents: dict[str, bytes] = {}
            with tarfile.open(path) as tarball:
                # In the tarball's own order: to go back in a compressed one is to unpack it again from its beginning.
                for member in tarball:
                    name = member.name
                    if member.isfile() and name.endswith(suffixes) and (wanted is None or name in wanted):
                        content = tarball.extractfile(member)
                        assert content is not None  # it is a regular file
                        contents[name] = content.read()  # of two members of one name the last counts, as in unpacking
            yield from sorted(contents.items())


def find(folder: Path, name: str) -> bytes:
    """The content of the one file called name, or name + ".gz", under folder, in a plain place or in an archive.

    DataError if there is none.
    """
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if path.is_file() and path.name in (name, name + ".gz"):
            return _plain(path.name, path.read_bytes())
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if path.is_file() and is_archive(path.name):
            for member, content in members(path, (name, name + ".gz")):
                if PurePosixPath(member).name in (name, name + ".gz"):
                    return _plain(member, content)
    raise DataError(f"no {name} or {name}.gz under {folder}; put it there, or name its source in params.yaml")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise DataError instead of what reading a broken archive, or something else, raises."""
    if not path.is_dir() and not is_archive(path.name):
        raise DataError(f"{path} is neither a folder nor an archive ({', '.join(ZIPS + TARBALLS)})")
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, RuntimeError) as error:
        raise DataError(f"{path} cannot be read ({error}); remove it and run: dvc repro") from None


def _plain(name: str, content: bytes) -> bytes:
    if not name.endswith(".gz"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name} is not whole ({error}); fetch it again") from None
