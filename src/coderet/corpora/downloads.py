"""Files from a package index, a registry or an address, kept by their SHA-256.

A file lies in downloads/<its SHA-256>/<its name>, is put there by one rename and checked whenever it is read, so what
was once fetched needs no network, and what a killed fetch had finished is not fetched again. A half file lies in a
folder named .partial: that of a pinned address is gone on with, others are cleared away. One process at a time
downloads, others wait for it.
"""

import contextlib
import fcntl
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
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

import requests
from tqdm import tqdm

from coderet.corpora import npm_registry
from coderet.corpora.pins import Source, SourceError, digest, filename, mismatch

DOWNLOADED = ("wheel", "sdist", "npm", "url")  # the kinds of source that lie here
WORKERS = 8  # files at once from an index: each waits for the network most of the time
PAUSES = (0, 0.5, 1, 2)  # seconds before each try of an address; each goes on where the last broke off
CONNECT_SECONDS, READ_SECONDS = 15, 60
BLOCK = 2**16  # bytes; a connection that breaks off loses at most one
POLL_SECONDS = 0.5


def download(wanted: Sequence[Source], downloads: Path) -> dict[Source, Path]:
    """Where each wheel, sdist, npm and url lies in downloads; fetched, if it is not there or not sound."""
    kept = {source: _kept(source, downloads) for source in wanted}
    if all(kept.values()):
        return {source: path for source, path in kept.items() if path}
    downloads.mkdir(parents=True, exist_ok=True)
    with locked(downloads, wait=True):
        found = {source: path for source in wanted if (path := _kept(source, downloads))}
        missing = [source for source in wanted if source not in found]
        _clear_partial(downloads, {_partial_name(source) for source in missing})
        with _progress(len(missing), downloads) as done:
            for source, path in itertools.chain(
                _ask_pip([one for one in missing if one.kind in ("wheel", "sdist")], downloads),
                _ask_addresses([one for one in missing if one.kind in ("npm", "url")], downloads),
            ):
                found[source] = path
                done(path)
    return found


def _kept(source: Source, downloads: Path) -> Path | None:
    """The file of source in downloads, or None if it is not there or not what its folder says."""
    path = next((downloads / source.sha256).glob("*"), None) if source.sha256 else None
    return path if path is not None and digest(path) == source.sha256 else None


def _keep(source: Source, partial: Path, downloads: Path) -> Path:
    """Move partial, which holds one file, to its place in downloads; SourceError if it is not the pinned file."""
    (path,) = partial.iterdir()
    found = digest(path)
    if source.sha256 not in (None, found):
        raise mismatch(source, found)
    kept = replace(source, sha256=found)
    if (there := _kept(kept, downloads)) is not None:
        return there
    shutil.rmtree(downloads / found, ignore_errors=True)
    return partial.rename(downloads / found) / path.name


def _partial_name(source: Source) -> str:
    """Where the half of a file lies; what has no digest is not resumed, for nothing could tell if the halves fit."""
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
        address = npm_registry.tarball(source, _receive) if source.kind == "npm" else source.place
        partial = downloads / _partial_name(source)
        partial.mkdir(exist_ok=True)
        file = partial / filename(address)
        try:
            resumed = _receive(address, file)
            if resumed and digest(file) != source.sha256:  # the file there has changed since its first half was taken
                file.unlink()
                _receive(address, file)
        except SourceError:
            with contextlib.suppress(OSError):
                partial.rmdir()  # if there is no half to go on with
            raise
        try:
            yield source, _keep(source, partial, downloads)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _receive(address: str, file: Path, asked: Mapping[str, str] = {}) -> bool:
    """Download an address into file, from where file ends if it is there; whether it was. asked are more headers.

    SourceError if the server says no or if the last of the tries breaks off; file then holds what has come.
    """
    resumed = False
    problem = ""
    for pause in PAUSES:
        time.sleep(pause)
        had = file.stat().st_size if file.exists() else 0
        headers = {"Accept-Encoding": "identity", **asked} | ({"Range": f"bytes={had}-"} if had else {})
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


@contextlib.contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[bool]:
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


def _shown(address: str) -> str:
    """An address without the user and password that it may hold."""
    return re.sub(r"//[^/@]*@", "//", address)
