"""Unpack wheels, zip files and tarballs without letting them write anywhere but into the given folder.

Only plain files are written. A member that is a link becomes a copy of the file of the archive that it points at; a
link to a folder of the archive, or to nothing in it, is left out. A member with an absolute name or one that climbs
out, a link that leads out, a device, an encrypted member, and more bytes or members than an honest source package has,
raise `UnpackError`; the caller then removes the folder. Permissions, owners and times are not kept.
"""

import contextlib
import lzma
import posixpath
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import IO

ZIPS = (".whl", ".zip")
TARBALLS = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar")

MAX_BYTES = 8 * 2**30  # what one archive may hold unpacked; the largest source packages hold under 1 GiB
MAX_MEMBERS = 500_000
BLOCK = 2**20
LONGEST_PATH = 4096

_CLIMBS = re.compile(r"^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)|\0")


class UnpackError(ValueError):
    """An archive that cannot or must not be unpacked: names the archive, the member and the reason."""


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of an archive, and how to read it."""

    name: str
    size: int  # bytes, unpacked
    kind: str  # "file", "folder", "link", or in a word what else it is
    open: Callable[[], IO[bytes] | None]
    target: str = ""  # the place a link points at, seen from the archive's root


def is_archive(name: str) -> bool:
    """Whether a file so called is one that `unpack` reads."""
    return name.endswith(ZIPS + TARBALLS)


def unpack(archive: Path, folder: Path, keep: Sequence[str] = (), drop: Sequence[str] = (), name: str = "") -> int:
    """Write the archive's files under folder, and return how many they were.

    keep and drop are globs over a member's path as the archive has it ("*" also crosses "/"): a member is written if it
    matches one of keep, or keep is empty, and none of drop. If all members of a tarball lie in one top folder, as those
    of a source distribution do, that folder is taken away, so that paths hold no version. name says what archive is
    called, if its path does not. UnpackError if it is not sound, or not to be trusted.
    """
    name = name or archive.name
    wanted = _matcher(keep, everything=True)
    unwanted = _matcher(drop, everything=False)
    tops: set[str] = set()
    links: list[Member] = []
    files: dict[str, Member] = {}
    unpacked = seen = written = 0
    try:
        with _members(archive, name) as members:
            for member in members:
                seen += 1
                unpacked += member.size
                _check(member, seen, unpacked)
                place = posixpath.normpath(member.name)
                if place != ".":
                    tops.add(place.partition("/")[0] if "/" in place or member.kind == "folder" else "")
                if member.kind == "file":
                    files[place] = member
                chosen = wanted(place) and not unwanted(place)
                if member.kind == "link" and chosen:
                    links.append(member)
                elif member.kind == "file" and chosen:
                    _write(member, folder / place)
                    written += 1
            for link in links:
                pointed_at = files.get(posixpath.normpath(link.target))
                if pointed_at is not None:
                    unpacked += pointed_at.size
                    _check(link, seen, unpacked)
                    _write(pointed_at, folder / posixpath.normpath(link.name))
                    written += 1
    except _Refused as refusal:
        raise UnpackError(f"{name}: {refusal}; it was not unpacked") from None
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError) as error:
        raise UnpackError(f"{name} is not a sound archive: {error}") from None
    except OSError as error:
        raise UnpackError(f"{name} could not be unpacked: {error}") from None
    if name.endswith(TARBALLS) and len(tops) == 1 and "" not in tops:
        _lift(folder, tops.pop())
    return written


class _Refused(Exception):
    pass


@contextlib.contextmanager
def _members(archive: Path, name: str) -> Iterator[Iterator[Member]]:
    """The members of an archive in its own order, to be read while it is open."""
    if name.endswith(ZIPS):
        with zipfile.ZipFile(archive) as zipped:
            yield (_zip_member(zipped, info) for info in zipped.infolist())
    else:
        with tarfile.open(archive) as tarred:
            yield (_tar_member(tarred, info) for info in tarred)


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.is_dir():
        return Member(info.filename, 0, "folder", lambda: None)
    if kind == stat.S_IFLNK:
        target = archive.read(info).decode("utf-8", "replace") if info.file_size <= LONGEST_PATH else "/"
        return Member(info.filename, 0, "link", lambda: None, _beside(info.filename, target))
    word = "file" if kind in (0, stat.S_IFREG) else "a device"
    return Member(info.filename, info.file_size, word, lambda: archive.open(info))


def _tar_member(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
    if info.isdir():
        return Member(info.name, 0, "folder", lambda: None)
    if info.issym():
        return Member(info.name, 0, "link", lambda: None, _beside(info.name, info.linkname))
    if info.islnk():
        return Member(info.name, 0, "link", lambda: None, info.linkname)
    return Member(info.name, info.size, "file" if info.isfile() else "a device", lambda: archive.extractfile(info))


def _beside(name: str, target: str) -> str:
    """A link's target, which is said from where the link lies, said from the archive's root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), target))


def _check(member: Member, seen: int, unpacked: int) -> None:
    if _CLIMBS.search(member.name):
        raise _Refused(f"member {member.name!r} wants to lie outside the folder it is unpacked into")
    if member.kind == "link" and _CLIMBS.search(member.target):
        raise _Refused(f"link {member.name!r} leads out of the archive, to {member.target!r}")
    if member.kind not in ("file", "folder", "link"):
        raise _Refused(f"member {member.name!r} is {member.kind}")
    if seen > MAX_MEMBERS:
        raise _Refused(f"it has more than {MAX_MEMBERS:,} members")
    if unpacked > MAX_BYTES:
        raise _Refused(f"it holds more than {MAX_BYTES:,} bytes unpacked")


def _write(member: Member, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content: IO[bytes] | None = member.open()
    if content is None:
        raise _Refused(f"member {member.name!r} cannot be read")
    with content, open(path, "wb") as file:
        shutil.copyfileobj(content, file, length=BLOCK)
        if file.tell() != member.size:
            raise _Refused(f"member {member.name!r} ends after {file.tell():,} of {member.size:,} bytes")


def _lift(folder: Path, top: str) -> None:
    """Move what lies in folder/top into folder itself."""
    if (folder / top).is_dir():
        inner = (folder / top).rename(folder / f".{top}.lifted")
        for each in inner.iterdir():
            each.rename(folder / each.name)
        inner.rmdir()


def _matcher(globs: Sequence[str], everything: bool) -> Callable[[str], object]:
    if not globs:
        return lambda place: everything
    return re.compile("|".join(translate(glob) for glob in globs)).match
