"""Files inside folders, wheels, zip files and tarballs, read without unpacking them.

A source keeps what it fetched as it came: fifty wheels are fifty files for DVC to hash, not thirty thousand.
"""

import gzip
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from coderet.corpora.unpacking import TARBALLS, ZIPS, is_archive
from coderet.records import DataError


def members(path: Path, suffixes: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each regular file under path, a folder or an archive, whose name ends in a suffix, by name.

    DataError if path is an archive that cannot be read.
    """
    try:
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.is_file() and file.name.endswith(suffixes):
                    yield file.relative_to(path).as_posix(), file.read_bytes()
        elif path.name.endswith(ZIPS):
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    if name.endswith(suffixes):
                        yield name, archive.read(name)
        elif path.name.endswith(TARBALLS):
            with tarfile.open(path) as tarball:
                for member in sorted(tarball.getmembers(), key=lambda each: each.name):
                    content = tarball.extractfile(member) if member.isfile() else None
                    if content is not None and member.name.endswith(suffixes):
                        yield member.name, content.read()
        else:
            raise DataError(f"{path} is neither a folder nor an archive ({', '.join(ZIPS + TARBALLS)})")
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{path} cannot be read ({error}); remove it and run: dvc repro") from None


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


def _plain(name: str, content: bytes) -> bytes:
    if not name.endswith(".gz"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError) as error:
        raise DataError(f"{name} is not whole ({error}); fetch it again") from None
