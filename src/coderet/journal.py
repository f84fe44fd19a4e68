"""Files of lines that are only appended to, by several threads and processes at once, and survive a kill."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A handle to read and to append, made with its folders where there is none; nobody else has one meanwhile.

    The lock is the handle's own, so that it keeps out other threads too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def append(handle: int, line: bytes) -> None:
    """All of line and its end."""
    content = line + b"\n"
    while content:
        content = content[os.write(handle, content) :]


def torn(handle: int) -> bool:
    """Whether the last line has no end, for whoever wrote it was killed."""
    size = os.fstat(handle).st_size
    return size > 0 and os.pread(handle, 1, size - 1) != b"\n"
