"""Fetch pinned artifacts: each named by one line that says where it comes from and what its bytes must be.

    wheel:<name>==<version>#sha256=<64 hex>        a file of PyPI, or of the index or folder that pip is set up with
    sdist:<name>==<version>#sha256=<64 hex>
    hub:<owner>/<id>@<40 hex>[?include=<glob>]     a model of the Hugging Face hub at a commit;
    hub:datasets/<owner>/<id>@<40 hex>             a data set
    file:<path>#sha256=<64 hex>                    a file or a folder of this machine
    url:https://<...>#sha256=<64 hex>

A folder's SHA-256 is `digest`'s. A hub line may carry one too, over the folder that it gives. What has no digest is
fetched, refused, and the line to write is in the message.

All or nothing: everything is put together beside the wanted folder and renamed at the end, so a failure leaves what was
there before. Downloads are kept by their SHA-256 under .work/downloads and checked when read, so what was once fetched
needs no network, and a killed fetch goes on where it was (a half file of a `url:` is resumed, others start afresh).
"""

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, cast
from urllib.parse import unquote, urlsplit

import requests
from tqdm import tqdm

from coderet import paths
from coderet.corpora import unpacking
from coderet.registry import nearest

KINDS = ("wheel", "sdist", "hub", "file", "url")
FORMS = {
    "wheel": "wheel:<name>==<version>#sha256=<64 hex digits>",
    "sdist": "sdist:<name>==<version>#sha256=<64 hex digits>",
    "hub": "hub:<owner>/<id>@<40 hex digits of a commit>, or hub:datasets/<owner>/<id>@<commit>",
    "file": "file:<path>#sha256=<64 hex digits>",
    "url": "url:https://<host>/<path>#sha256=<64 hex digits>",
}
DOWNLOADS = paths.WORK / "downloads"

WORKERS = 8  # files at once from an index: each waits for the network most of the time
PAUSES = (0, 0.5, 1, 2)  # seconds before each try of a url; each goes on where the last broke off
CONNECT_SECONDS, READ_SECONDS = 15, 60
BLOCK = 2**20
POLL_SECONDS = 0.5

_RELEASE = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)")
_HUB = re.compile(r"(?:datasets/)?[\w.-]+/(\w[\w.-]*)@[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class SourceError(ValueError):
    """A source that cannot be had as it is pinned: says which, what was found, what was wanted and what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed line. `str` gives the line back."""

    kind: str  # one of KINDS
    name: str  # the folder it is fetched into: the package, the id's or the path's last part
    place: str  # name==version, owner/id@commit (data sets: datasets/owner/id@commit), a path or an address
    sha256: str | None  # of the file, or `digest` of the folder
    include: tuple[str, ...] = ()  # globs: the only files wanted; hub alone

    def __str__(self) -> str:
        include = "?" + "&".join(f"include={glob}" for glob in self.include) if self.include else ""
        return f"{self.kind}:{self.place}{include}" + (f"#sha256={self.sha256}" if self.sha256 else "")


def parse(spec: str) -> Source:
    """The source that a line names; SourceError says what is wrong with it. A digest may lack: `fetch` asks for it."""
    kind, colon, rest = spec.strip().partition(":")
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
    if kind == "hub":
        place, _, query = place.partition("?")
        include = tuple(_after(part, "include=", spec) for part in query.split("&") if part)
        if repository := _HUB.fullmatch(place):
            return Source(kind, repository[1], place, sha256, include)
        if "@" in place:
            raise SourceError(f"{spec!r}: a branch or a tag can move; wanted {FORMS['hub']}")
    if kind == "file" and place:
        return Source(
            kind, _bare(os.path.basename(os.path.abspath(Path(place).expanduser())) or "files"), place, sha256
        )
    if kind == "url" and urlsplit(place).scheme in ("http", "https") and urlsplit(place).netloc:
        return Source(kind, _bare(_filename(place)), place, sha256)
    raise SourceError(f"{spec!r} is not of the form {FORMS[kind]}")


def fetch(
    specs: Sequence[str],
    folder: Path,
    unpack: bool = True,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    downloads: Path = DOWNLOADS,
) -> None:
    """Replace folder by one that holds each source's files in a folder of the source's name.

    With unpack, wheels, zip files and tarballs are unpacked as `unpacking.unpack` does it, only members that match one
    of keep (none given: all) and none of drop; without, each stays the one file it is. SourceError, and all stays as it
    was.
    """
    wanted = [parse(spec) for spec in specs]
    _check_names(wanted)
    with _system_errors(folder), _staging(Path(folder)) as staging:
        files = _download([source for source in wanted if source.kind in ("wheel", "sdist", "url")], Path(downloads))
        found = {}
        for source in wanted:
            own = staging / source.name
            own.mkdir()
            place = files.get(source) or _locate(source)
            if place.is_dir():
                _copy_folder(place, own, source.include)
                found[source] = digest(own)
            else:
                found[source] = digest(place)
                if source.sha256 in (None, found[source]):
                    _put(place, own, unpack, keep, drop)
            if source.sha256 not in (None, found[source]):
                raise _mismatch(source, found[source])
        _check_pins(found)


def digest(path: Path) -> str:
    """The SHA-256, in hex, of a file's bytes; of a folder, that of its lines "<path>\\0<SHA-256 of the file>\\n".

    The lines are of every file under the folder, by path from the folder with "/", sorted as bytes. Links to files count
    as files, empty folders not at all; SourceError for a link to a folder and for what is neither.
    """
    if not path.is_dir():
        return _sha256(path)
    whole = hashlib.sha256()
    for name in sorted(_files(path), key=os.fsencode):
        whole.update(os.fsencode(name) + b"\0" + _sha256(path / name).encode() + b"\n")
    return whole.hexdigest()


# What lies on this machine


def _locate(source: Source) -> Path:
    """The file or folder of a source that no index and no address gives."""
    if source.kind == "hub":
        return _snapshot(source)
    path = Path(source.place).expanduser()
    if not path.exists():
        raise SourceError(f"{source}: there is nothing at {path.absolute()}; put the file there or mend the path")
    return path


def _files(folder: Path) -> list[str]:
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


def _copy_folder(folder: Path, own: Path, include: Sequence[str]) -> None:
    names = [name for name in _files(folder) if not include or any(fnmatchcase(name, glob) for glob in include)]
    if not names:
        raise SourceError(f"{folder} has no file that matches {', '.join(include)}")
    for name in names:
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, own / name)


def _put(file: Path, own: Path, unpack: bool, keep: Sequence[str], drop: Sequence[str]) -> None:
    """The file, or the members of the archive that it is, in the folder own."""
    if not (unpack and unpacking.is_archive(file.name)):
        shutil.copyfile(file, own / file.name)
        return
    try:
        written = unpacking.unpack(file, own, keep, drop)
    except unpacking.UnpackError as error:
        raise SourceError(str(error)) from None
    if not written:
        raise SourceError(f"{file.name} has no member that matches {list(keep)} and none of {list(drop)}")


def _sha256(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None


@contextlib.contextmanager
def _system_errors(folder: Path) -> Iterator[None]:
    """A full disk or a folder that may not be written is no bug of ours: say so in one line."""
    try:
        yield
    except OSError as error:
        raise SourceError(f"{folder} could not be filled: {error}") from None


@contextlib.contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """An empty folder beside folder, which takes its place if the block ends well, and is gone if not.

    One process at a time fills it; what a killed one left is cleared away.
    """
    staging = folder.parent / f".{folder.name}.fetching"
    before = folder.parent / f".{folder.name}.before"
    staging.mkdir(parents=True, exist_ok=True)
    with _locked(staging) as mine:
        if not mine:
            raise SourceError(f"{folder} is being fetched by another process; wait for it to end")
        if before.exists():  # killed between the two renames below, or just after them
            _remove(before) if folder.exists() else before.rename(folder)
        try:
            for left in staging.iterdir():
                shutil.rmtree(left)
            yield staging
            if folder.exists():
                folder.rename(before)
            staging.rename(folder)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            if before.exists() and not folder.exists():
                before.rename(folder)
            raise
        _remove(before)


def _remove(folder: Path) -> None:
    if folder.is_symlink():  # as DVC may have laid it
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(folder: Path, wait: bool = False) -> Iterator[bool]:
    """Whether this process alone holds folder until the block ends; the system lets go of it if the process dies."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        mine = True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            mine = False
        yield mine
    finally:
        os.close(handle)


# What is downloaded. A file lies in downloads/<its SHA-256>/<its name>, put there by one rename.


def _download(wanted: Sequence[Source], downloads: Path) -> dict[Source, Path]:
    """Where each wheel, sdist and url lies in downloads; fetched, if it is not there or not sound."""
    kept = {source: _kept(source, downloads) for source in wanted}
    if all(kept.values()):
        return {source: path for source, path in kept.items() if path}
    downloads.mkdir(parents=True, exist_ok=True)
    with _locked(downloads, wait=True):
        found = {source: path for source in wanted if (path := _kept(source, downloads))}
        missing = [source for source in wanted if source not in found]
        _clear_partial(downloads, {_partial_name(source) for source in missing})
        with _progress(len(missing), downloads) as done:
            for source, path in itertools.chain(
                _ask_pip([one for one in missing if one.kind != "url"], downloads),
                _ask_addresses([one for one in missing if one.kind == "url"], downloads),
            ):
                found[source] = path
                done(path)
    return found


def _kept(source: Source, downloads: Path) -> Path | None:
    """The file of source in downloads, or None if it is not there or not what its folder says."""
    path = next((downloads / source.sha256).glob("*"), None) if source.sha256 else None
    return path if path is not None and _sha256(path) == source.sha256 else None


def _keep(source: Source, partial: Path, downloads: Path) -> Path:
    """Move partial, which holds one file, to its place in downloads; SourceError if it is not the pinned file."""
    (path,) = partial.iterdir()
    found = _sha256(path)
    if source.sha256 not in (None, found):
        raise _mismatch(source, found)
    kept = replace(source, sha256=found)
    if (there := _kept(kept, downloads)) is not None:
        return there
    shutil.rmtree(downloads / found, ignore_errors=True)
    return partial.rename(downloads / found) / path.name


def _partial_name(source: Source) -> str:
    """Where the half of a url lies; what has no digest is not resumed, for nothing could tell if the halves fit."""
    return f"{source.sha256 or 'unpinned'}.partial"


def _clear_partial(downloads: Path, resumable: set[str]) -> None:
    for left in downloads.glob("*.partial"):
        if left.name not in resumable or left.name == "unpinned.partial":
            shutil.rmtree(left)


def _ask_pip(wanted: Sequence[Source], downloads: Path) -> Iterator[tuple[Source, Path]]:
    """Download release files by `pip_files`, in a process of its own, which ends at the first that cannot be had."""
    if not wanted:
        return
    program = Path(__file__).with_name("pip_files.py")
    files = [(one.kind, *one.place.split("=="), one.sha256) for one in wanted]
    waiting = set(wanted)
    with tempfile.TemporaryDirectory(prefix="pip-", suffix=".partial", dir=downloads) as folder:
        job = Path(folder).absolute() / "job.json"
        job.write_text(json.dumps({"workers": WORKERS, "files": files}))
        command = [sys.executable, "-P", str(program), str(job)]
        with (
            tempfile.TemporaryFile() as complaints,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints) as process,
        ):
            try:
                for line in cast(IO[bytes], process.stdout):
                    answer = json.loads(line)
                    source = wanted[answer["file"]]
                    if "error" in answer:
                        raise SourceError(f"{source}: {answer['error']}")
                    waiting.remove(source)
                    yield source, _keep(source, Path(answer["path"]).parent, downloads)
                process.wait()
            finally:
                process.kill()
            complaints.seek(0)
            said = complaints.read().decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
            if waiting:
                raise SourceError(
                    f"pip ended with {len(waiting)} of {len(wanted)} files still wanted: {said[-1]}; "
                    f"{sys.executable} -m pip must work (python -m ensurepip brings it)"
                )


def _ask_addresses(wanted: Sequence[Source], downloads: Path) -> Iterator[tuple[Source, Path]]:
    for source in wanted:
        partial = downloads / _partial_name(source)
        partial.mkdir(exist_ok=True)
        file = partial / _filename(source.place)
        try:
            resumed = _receive(source.place, file)
            if resumed and _sha256(file) != source.sha256:  # the file there has changed since its first half was taken
                file.unlink()
                _receive(source.place, file)
        except SourceError:
            with contextlib.suppress(OSError):
                partial.rmdir()  # if there is no half to go on with
            raise
        try:
            yield source, _keep(source, partial, downloads)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _receive(address: str, file: Path) -> bool:
    """Download an address into file, from where file ends if it is there; whether it was.

    SourceError if the server says no or if the last of the tries breaks off; file then holds what has come.
    """
    resumed = False
    problem = ""
    for pause in PAUSES:
        time.sleep(pause)
        had = file.stat().st_size if file.exists() else 0
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={had}-"} if had else {})
        try:
            with requests.get(address, headers=headers, stream=True, timeout=(CONNECT_SECONDS, READ_SECONDS)) as answer:
                status = answer.status_code
                appends = status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {had}-")
                if had and not appends and status in (206, 416):  # no such half: start afresh
                    file.unlink()
                    problem = f"it answered {status} to a request for its bytes from {had}"
                elif status >= 500 or status == 429:
                    problem = f"it answered {status} {answer.reason}"
                elif status not in (200, 206):
                    raise SourceError(f"{_shown(address)} answered {status} {answer.reason}; mend the address")
                else:
                    resumed = appends
                    with open(file, "ab" if appends else "wb") as out:
                        for block in answer.iter_content(BLOCK):
                            out.write(block)
                    return resumed
        except requests.RequestException as error:
            problem = str(error)
    came = file.stat().st_size if file.exists() else 0
    raise SourceError(
        f"{_shown(address)} could not be fetched in {len(PAUSES)} tries, the last time because {problem}; "
        f"{came:,} bytes have come: check the network and run this again"
    )


def _snapshot(source: Source) -> Path:
    """The folder of the hub client's own cache that holds a repository at a commit."""
    import huggingface_hub  # two seconds, and only hub: needs it

    repository, _, revision = source.place.removeprefix("datasets/").partition("@")
    try:
        return Path(
            huggingface_hub.snapshot_download(
                repository,
                repo_type="dataset" if source.place.startswith("datasets/") else "model",
                revision=revision,
                allow_patterns=list(source.include) or None,
                etag_timeout=CONNECT_SECONDS,
            )
        )
    except Exception as error:  # the client raises those of its http library too
        raise SourceError(
            f"{source} cannot be had from the hub: {type(error).__name__}: {error}. Where the hub is out of reach, set "
            f"HF_ENDPOINT to a mirror or HF_HUB_CACHE to a filled cache, or pin a folder with the same files as file:"
        ) from None


@contextlib.contextmanager
def _progress(files: int, downloads: Path) -> Iterator[Callable[[Path], None]]:
    """A bar of the files done, with the bytes that have come and their rate; the block calls it with each file done."""
    ended = threading.Event()
    sizes: list[int] = []
    before = _bytes_under(downloads)
    start = time.monotonic()
    bar = tqdm(total=files, unit="file", desc="fetch", disable=None)

    def show() -> None:
        while not ended.wait(POLL_SECONDS):
            came = (_bytes_under(downloads) + sum(sizes) - before) / 1e6
            bar.set_postfix_str(f"{came:.1f} MB, {came / (time.monotonic() - start):.1f} MB/s")

    def done(path: Path) -> None:
        sizes.append(path.stat().st_size)
        bar.update()

    watcher = threading.Thread(target=show, daemon=True)
    with bar:
        if not bar.disable:
            watcher.start()
        try:
            yield done
        finally:
            ended.set()


def _bytes_under(downloads: Path) -> int:
    """The bytes of files not yet done."""
    total = 0
    for path in downloads.glob("*.partial/**/*"):
        with contextlib.suppress(OSError):  # done meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


# Words


def _check_names(wanted: Sequence[Source]) -> None:
    by_name: dict[str, Source] = {}
    for source in wanted:
        other = by_name.setdefault(source.name.lower(), source)
        if other is not source:
            raise SourceError(f"{other} and {source} would both lie in a folder {source.name!r}; take one of them")


def _check_pins(found: Mapping[Source, str]) -> None:
    """Refuse what has no digest, with the lines that have; a hub's commit is pin enough."""
    unpinned = [replace(one, sha256=sha256) for one, sha256 in found.items() if not one.sha256 and one.kind != "hub"]
    if unpinned:
        raise SourceError(
            "not pinned: " + ", ".join(source.place for source in unpinned) + ". If what was found is what you want, "
            "write into params.yaml:\n" + "\n".join(f"  - {source}" for source in unpinned)
        )


def _mismatch(source: Source, found: str) -> SourceError:
    return SourceError(
        f"{source.kind}:{source.place} has SHA-256 {found}, wanted {source.sha256}: it is not what was pinned. "
        f"If the new one is meant, write into params.yaml:\n  - {replace(source, sha256=found)}"
    )


def _filename(address: str) -> str:
    """What a file from an address is called: the path's last part, with nothing in it that a file system minds."""
    last = unquote(urlsplit(address).path).rstrip("/").rpartition("/")[2]
    return re.sub(r"[^\w.+@=-]", "_", last).lstrip(".") or "file"


def _bare(filename: str) -> str:
    """A file's name without the ending of an archive."""
    for ending in unpacking.ZIPS + unpacking.TARBALLS:
        if filename.endswith(ending) and filename != ending:
            return filename.removesuffix(ending)
    return filename


def _shown(address: str) -> str:
    """An address without the user and password that it may hold."""
    return re.sub(r"//[^/@]*@", "//", address)


def _after(text: str, prefix: str, spec: str) -> str:
    if not text.startswith(prefix):
        raise SourceError(f"{spec!r} has {text!r} where {prefix}... is wanted")
    return text.removeprefix(prefix)
