"""What a line of params.yaml pins: where an artifact comes from, and what its bytes must be.

    wheel:<name>==<version>#sha256=<64 hex>        a file of PyPI, or of the index or folder that pip is set up with
    sdist:<name>==<version>#sha256=<64 hex>
    npm:<name>==<version>#sha256=<64 hex>          a package of the registry that npm is set up with; or @<scope>/<name>
    hub:<owner>/<id>@<40 hex>[?include=<glob>]     a model of the Hugging Face hub at a commit;
    hub:datasets/<owner>/<id>@<40 hex>             a data set
    file:<path>#sha256=<64 hex>                    a file or a folder of this machine
    url:https://<...>#sha256=<64 hex>

A folder's SHA-256 is `digest`'s. A hub line may carry one too, over the folder that it gives.
"""

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from coderet.corpora.unpacking import TARBALLS, ZIPS
from coderet.registry import nearest

KINDS = ("wheel", "sdist", "npm", "hub", "file", "url")
FORMS = {
    "wheel": "wheel:<name>==<version>#sha256=<64 hex digits>",
    "sdist": "sdist:<name>==<version>#sha256=<64 hex digits>",
    "npm": "npm:<name>==<version>#sha256=<64 hex digits>, or npm:@<scope>/<name>==...",
    "hub": "hub:<owner>/<id>@<40 hex digits of a commit>, or hub:datasets/<owner>/<id>@<commit>",
    "file": "file:<path>#sha256=<64 hex digits>",
    "url": "url:https://<host>/<path>#sha256=<64 hex digits>",
}

_RELEASE = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)")
_NPM = re.compile(r"((?:@[a-z0-9~-][\w.~-]*/)?[A-Za-z0-9~][\w.~-]*)==([0-9][\w.+-]*)")
_HUB = re.compile(r"(?:datasets/)?[\w.-]+/(\w[\w.-]*)@[0-9a-f]{40}")
_REPOSITORY = re.compile(r"((?:datasets/)?[\w.-]+/\w[\w.-]*)(?:@(.*))?")
_REVISION = re.compile(r"[\w./-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class SourceError(ValueError):
    """A source that cannot be had as it is pinned: says which, what was found, what was wanted and what to do."""


class Unpinned(SourceError):
    """A line that names a repository of the hub and no commit.

    place: the repository, as in a line; revision: the branch or tag that it names, None if none; query: `?include=...`.
    """

    def __init__(self, message: str, place: str, revision: str | None, query: str) -> None:
        super().__init__(message)
        self.place, self.revision, self.query = place, revision, query


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed line. `str` gives the line back."""

    kind: str  # one of KINDS
    name: str  # the folder it is fetched into: the package (@scope+name of npm's), the id's or the path's last part
    place: str  # name==version, owner/id@commit (data sets: datasets/owner/id@commit), a path or an address
    sha256: str | None  # of the file, or `digest` of the folder
    include: tuple[str, ...] = ()  # globs: the only files wanted; hub alone

    def __str__(self) -> str:
        include = "?" + "&".join(f"include={glob}" for glob in self.include) if self.include else ""
        return f"{self.kind}:{self.place}{include}" + (f"#sha256={self.sha256}" if self.sha256 else "")


def parse(spec: str) -> Source:
    """The source that a line names; SourceError says what is wrong with it. A digest may lack: `fetch` asks for it."""
    if not isinstance(spec, str):
        raise SourceError(f"a source is {spec!r}; wanted a line such as {FORMS['wheel']}")
    kind, colon, rest = spec.strip().partition(":")
    if kind == "official":
        raise SourceError(
            f"{spec!r} stands for all files that a benchmark's own record names, so it is the only line of a "
            "benchmark's source; take the other lines out, or name every file by a line of its own"
        )
    if not colon or kind not in KINDS:
        raise SourceError(f"{spec!r} begins with no known kind; known: {', '.join(KINDS)}.{nearest(kind, KINDS)}")
    place, mark, pin = rest.rpartition("#sha256=") if "#sha256=" in rest else (rest, "", "")
    if mark and not _SHA256.fullmatch(pin.lower()):
        raise SourceError(f"{spec!r}: a SHA-256 is 64 hex digits, found {pin!r}")
    sha256 = pin.lower() if mark else None
    if "#" in place and kind != "file":
        raise SourceError(f"{spec!r}: after # only sha256=<64 hex digits> is known")
    if kind in ("wheel", "sdist") and (release := _RELEASE.fullmatch(place)):
        return Source(kind, re.sub(r"[-_.]+", "-", release[1]).lower(), place, sha256)
    if kind == "npm" and (release := _NPM.fullmatch(place)):
        return Source(kind, release[1].replace("/", "+"), place, sha256)
    if kind == "hub":
        place, _, query = place.partition("?")
        include = tuple(_after(part, "include=", spec) for part in query.split("&") if part)
        if repository := _HUB.fullmatch(place):
            return Source(kind, repository[1], place, sha256, include)
        if loose := _REPOSITORY.fullmatch(place):
            why = "a branch or a tag can move" if "@" in place else "it names no commit"
            revision = loose[2] if loose[2] and _REVISION.fullmatch(loose[2]) else None
            raise Unpinned(f"{spec!r}: {why}; wanted {FORMS['hub']}", loose[1], revision, query and f"?{query}")
    if kind == "file" and place:
        last = os.path.basename(os.path.abspath(os.path.expanduser(place)))
        return Source(kind, _bare(last) or "files", place, sha256)
    if kind == "url" and urlsplit(place).scheme in ("http", "https") and urlsplit(place).netloc:
        return Source(kind, _bare(filename(place)), place, sha256)
    raise SourceError(f"{spec!r} is not of the form {FORMS[kind]}")


def digest(path: Path) -> str:
    """The SHA-256, in hex, of a file's bytes; of a folder, that of its lines "<path>\\0<SHA-256 of the file>\\n".

    The lines are of every file under the folder, by path from the folder with "/", sorted as bytes. Links to files
    count as files, empty folders not at all; SourceError for a link to a folder and for what is neither.
    """
    if not path.is_dir():
        return _sha256(path)
    whole = hashlib.sha256()
    for name in sorted(files_under(path), key=os.fsencode):
        whole.update(os.fsencode(name) + b"\0" + _sha256(path / name).encode() + b"\n")
    return whole.hexdigest()


def files_under(folder: Path) -> list[str]:
    """Every file under folder, by its path from there with "/"."""
    names = []
    for root, folders, files in os.walk(folder):
        for each in folders + files:
            path = Path(root, each)
            if path.is_symlink() and path.is_dir():
                raise SourceError(f"{path} is a link to a folder; a pinned folder holds files and links to files only")
            if not path.exists() or not (path.is_dir() or path.is_file()):
                raise SourceError(f"{path} is no file that can be read: a broken link, a socket or a device")
        names += [Path(root, each).relative_to(folder).as_posix() for each in files]
    if not names:
        raise SourceError(f"{folder} holds no file")
    return names


def mismatch(source: Source, found: str) -> SourceError:
    """The error that says so, if what source gave has the SHA-256 found."""
    return SourceError(
        f"{source.kind}:{source.place} has SHA-256 {found}, wanted {source.sha256}: it is not what was pinned. "
        f"If the new one is meant, write into params.yaml:\n  {replace(source, sha256=found)}"
    )


def filename(address: str) -> str:
    """What a file from an address is called: the path's last part, with nothing in it that a file system minds."""
    last = unquote(urlsplit(address).path).rstrip("/").rpartition("/")[2]
    return re.sub(r"[^\w.+@=-]", "_", last).lstrip(".") or "file"


def _bare(name: str) -> str:
    """A file's name without the ending of an archive."""
    for ending in ZIPS + TARBALLS:
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return name


def _after(text: str, prefix: str, spec: str) -> str:
    if not text.startswith(prefix):
        raise SourceError(f"{spec!r} has {text!r} where {prefix}... is wanted")
    return text.removeprefix(prefix)


def _sha256(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
