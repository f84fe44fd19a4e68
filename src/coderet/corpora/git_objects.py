"""Files of a git repository at a commit, read out of its object store: nothing is checked out, fetched or run.

The repository is a clone, bare or not, and only it: git looks for none in the folders above. Links and submodules are
left out.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, cast

from coderet.records import DataError

_LINK = "120000"


class Entry(NamedTuple):
    """A file of a tree: its path from the repository's top with "/", and the id of its content."""

    path: str
    blob: str


def tree(repository: Path, commit: str) -> list[Entry]:
    """The files of a commit in git's order; DataError if there is no such repository or commit."""
    command = _git(repository, "ls-tree", "-r", "-z", "--full-tree", f"{commit}^{{commit}}")
    try:
        listed = subprocess.run(command, capture_output=True, env=_environment(repository), check=False)
    except FileNotFoundError:
        raise DataError("there is no git on this machine, which reads repositories; install it") from None
    if listed.returncode:
        said = listed.stderr.decode(errors="replace").strip()
        raise DataError(
            f"{repository} does not give commit {commit} ({said}); put a full clone there: git clone --bare <address>"
        )
    entries = []
    for line in listed.stdout.split(b"\0"):
        facts, _, path = line.partition(b"\t")
        mode, kind, blob = facts.decode().split() if facts else ("", "", "")
        if kind == "blob" and mode != _LINK:
            entries.append(Entry(os.fsdecode(path), blob))
    return entries


def contents(repository: Path, blobs: Iterable[str]) -> Iterator[bytes]:
    """The content of each blob, one at a time; DataError if the repository lacks one."""
    with _batch(repository) as (asked, answered):
        for blob in blobs:
            asked.write(f"{blob}\n".encode())
            asked.flush()
            head = answered.readline().split()
            if len(head) != 3 or head[1] != b"blob":
                raise DataError(
                    f"{repository} lacks the content {blob} ({b' '.join(head).decode() or 'git ended'}); "
                    "it is a partial clone or not whole: clone it again"
                )
            content = answered.read(int(head[2]) + 1)
            if len(content) != int(head[2]) + 1:
                raise DataError(f"{repository}: git ended amid the content {blob}; clone it again")
            yield content[:-1]


@contextmanager
def _batch(repository: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Where blobs are asked for and where they are answered."""
    with subprocess.Popen(
        _git(repository, "cat-file", "--batch"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(repository),
    ) as process:
        try:
            yield cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        finally:
            process.kill()


def _git(repository: Path, *arguments: str) -> list[str]:
    return ["git", "-C", str(repository), *arguments]


def _environment(repository: Path) -> dict[str, str]:
    """Without what would make git look elsewhere or ask a server."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    above = str(repository.resolve().parent)
    return own | {"GIT_CEILING_DIRECTORIES": above, "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
