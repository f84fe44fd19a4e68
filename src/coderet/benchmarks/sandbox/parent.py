"""Our end of a warm parent: started when first needed, asked for one program after the other, ended when hurt."""

import contextlib
import json
import os
import pickle
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coderet.benchmarks.answering import Verdict
from coderet.benchmarks.sandbox import containment
from coderet.benchmarks.sandbox.containment import Level, Place, SandboxError

START_SECONDS = 300.0  # tensorflow takes 10 alone
WALL, WALL_EXTRA = 3.0, 2.0  # as the warm parent has them
PATIENCE = 20.0  # beyond its own limits, before it counts as stopped
ANSWER_BYTES = 128 << 20


class Died(Exception):
    """The warm parent ended or stood still while it judged a program."""

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict


class Unready(Exception):
    """A module that programs are to find imported cannot be imported."""


class Parent:
    """A warm parent behind a wall. What a program does to it is undone by starting another before the next program."""

    def __init__(self, level: Level, place: Place, modules: Sequence[str]) -> None:
        self.level, self.place, self.modules = level, place, modules
        self.process: subprocess.Popen[bytes] | None = None
        self.unready = ""

    def judge(self, job: dict[str, Any]) -> dict[str, Any]:
        """What became of one program; Unready, Died, or SandboxError if no warm parent can be started."""
        if self.process is None:
            self.begin()
        if self.unready:
            raise Unready(self.unready)
        until = time.monotonic() + job["seconds"] * WALL + WALL_EXTRA + PATIENCE
        try:
            self.send(job, until)
            said = self.receive(until)
        except TimeoutError:
            self.close()
            raise Died("timeout", "stopped the process that judged it") from None
        except (OSError, EOFError, ValueError):
            self.close()
            raise Died("failed", "ended the process that judged it") from None
        if said.pop("hurt"):
            self.close()
        return said

    def begin(self) -> None:
        started = containment.start(self.level, self.place, self.modules)
        self.folder, self.user = started.folder, started.user
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        if self.folder is not None:
            (self.folder / "warm").mkdir()
        self.process = subprocess.Popen(
            started.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=started.environment,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        assert self.process.stdin and self.process.stdout
        os.set_blocking(self.process.stdin.fileno(), False)
        try:
            self.unready = self.receive(time.monotonic() + START_SECONDS).get("import error", "")
        except (OSError, EOFError, ValueError) as error:
            self.errors.seek(0)
            said = self.errors.read().decode("utf-8", "replace").strip()[-500:]
            self.close()
            raise SandboxError(
                f"no warm parent behind {self.level} with {self.place.interpreter}: {said or error}"
            ) from None

    def send(self, job: dict[str, Any], until: float) -> None:
        assert self.process and self.process.stdin
        content = pickle.dumps(job, protocol=4)
        left = memoryview(struct.pack("<Q", len(content)) + content)
        pipe = self.process.stdin.fileno()
        while left:
            ready(select.POLLOUT, pipe, until)
            left = left[os.write(pipe, left[: 1 << 16]) :]

    def receive(self, until: float) -> dict[str, Any]:
        (size,) = struct.unpack("<Q", self.read(8, until))
        if size > ANSWER_BYTES:
            raise ValueError(f"an answer of {size} bytes")
        said = json.loads(self.read(size, until))
        if not isinstance(said, dict):
            raise ValueError("no answer")
        return said

    def read(self, size: int, until: float) -> bytes:
        assert self.process and self.process.stdout
        pipe, content = self.process.stdout.fileno(), bytearray()
        while len(content) < size:
            ready(select.POLLIN, pipe, until)
            part = os.read(pipe, size - len(content))
            if not part:
                raise EOFError("it ended")
            content += part
        return bytes(content)

    def close(self) -> None:
        """End it with all that it started; its name space goes with it, where it has one."""
        if self.process is None:
            return
        process, self.process = self.process, None
        assert process.stdin and process.stdout
        process.stdin.close()
        if self.level == "limits":
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)  # it ends by itself, its children first
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with contextlib.suppress(TimeoutError):  # its name space ends a moment after the process that made it
            until, said = time.monotonic() + PATIENCE, b"more"
            while said:
                ready(select.POLLIN, process.stdout.fileno(), until)
                said = os.read(process.stdout.fileno(), 1 << 16)
        while self.user is not None and (left := processes_of(self.user)):
            for each in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            time.sleep(0.01)
        process.stdout.close()
        self.errors.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def processes_of(user: int) -> list[int]:
    """Those that a user runs, but for the dead that nobody has asked after."""
    found = []
    for each in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if each.name.isdigit() and each.stat().st_uid == user and ") Z " not in (each / "stat").read_text():
                found.append(int(each.name))
    return found


def ready(event: int, file: int, until: float) -> None:
    waiting = select.poll()
    waiting.register(file, event)
    left = until - time.monotonic()
    if left <= 0 or not waiting.poll(left * 1000):
        raise TimeoutError
