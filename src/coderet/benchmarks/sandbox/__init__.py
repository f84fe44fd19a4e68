"""Programs that models wrote, run where they cannot hurt, and what became of them.

Every program runs in a process of its own that a warm parent forks (`warm`), behind the strongest wall the machine
allows (`containment`); `strongest()` names it, and results carry the name. It has no network, an empty read-only world
but for a folder in memory that is gone afterwards, no input but its own, limits on processor time, wall time, memory,
file size, output and the number of its processes; seeds are fixed and nothing of our environment is to be seen. When it
has ended, so have all processes that it started.

**A pass is proved.** Status 0 says nothing: only a proof, which the answer cannot know and which is given after the
check has run to its end, is a pass. The check comes to the process when the answer has run, only once, and runs with
true builtins, without the answer's names that hide builtins (but for `tested`), and with the functions and classes of
the modules it uses put back. What exchanges them while the check runs, writes into the report, asks for the check
itself or reaches for frames, tracing, the collector or raw memory, is `refused`, as is what fails because the wall said
no. Processor time decides on `timeout`, so that verdicts do not depend on what else runs; wall time only ends what
sleeps.

What this does not protect from: an answer whose results compare equal to everything; names other than builtins that a
check takes from the answer; a function exchanged during the check and put back before its end, or exchanged for another
of a library where the check does not name it; an answer that studied this package and finds a way to its own process's
memory that raises no audit event; a pytest plugin that looks for the proof; other commands, which pass by status 0;
holes in the kernel. Behind `limits` also the network, reading files, and, run by a normal user, writing all that the
user may write and processes that outlive the one that judges them.
"""

import queue
import secrets
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from coderet.benchmarks.answering import Outcome, Program
from coderet.benchmarks.sandbox.containment import LEVELS, Level, Place, SandboxError, available, strongest
from coderet.benchmarks.sandbox.parent import Died, Parent, Unready

__all__ = ["LEVELS", "Level", "SandboxError", "available", "interpreter", "run", "strongest"]


def run(
    programs: Sequence[Program],
    processes: int = 1,
    *,
    level: Level | None = None,
    interpreters: Mapping[str, Path] | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Place and outcome of every program, as they come; processes of them run at once, which moves no verdict.

    level: the wall, the strongest there is unless named. interpreters: of environments, where they are not where
    `interpreter` looks. SandboxError if programs cannot be run here, before the first is; ValueError for a program that
    writes files outside its folder.
    """
    if processes < 1:
        raise ValueError(f"processes is {processes}; at least one program must run at a time")
    suite = (interpreters or {}).get("") or interpreter("")
    wall = level or strongest(suite)
    if level and (lack := available(level, suite)):
        raise SandboxError(
            f"the wall {level} cannot be had here: {lack}; leave the level out for the strongest there is"
        )
    todo: dict[Warmth, list[int]] = {}
    for place, program in enumerate(programs):
        for name in program.files:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or not PurePosixPath(name).parts:
                raise ValueError(f"program {place} has a file called {name!r}; wanted a relative path without '..'")
        if early := without_running(program):
            yield place, early
        else:
            known = (interpreters or {}).get(program.environment) or interpreter(program.environment)
            todo.setdefault(Warmth(known, program.modules, program.tree), []).append(place)
    yield from in_lanes(programs, Waiting(todo), processes, wall)


def interpreter(environment: str) -> Path:
    """The interpreter of a pinned environment, which lies beside the suite's own; SandboxError if it was not built."""
    if not environment:
        return Path(sys.executable)
    path = Path(sys.prefix).parent / f".venv-{environment}" / "bin" / "python"
    if not path.exists():
        raise SandboxError(f"{path} is not there; run: make env ENV={environment}")
    return path


class Warmth(NamedTuple):
    """Programs with the same can come from one warm parent."""

    interpreter: Path
    modules: tuple[str, ...]
    tree: Path | None


def without_running(program: Program) -> Outcome | None:
    if not program.command and not program.source.strip():
        return Outcome("no code", "the answer is empty")
    if not (program.command or program.check.strip() or program.accepts):
        return Outcome("no tests", "neither a check nor a command nor an expected output")
    return None


class Waiting:
    """Places of programs that are to run, handed out to lanes so that they import as little as may be.

    A lane goes on with what its warm parent has imported. Then it takes programs that no other lane is at, the first
    first, and only when there are none it helps where most are left, which takes a warm parent more.
    """

    def __init__(self, places: Mapping[Warmth, Sequence[int]]) -> None:
        self.lock = threading.Lock()
        self.left = {warmth: deque(own) for warmth, own in places.items() if own}
        self.count = sum(map(len, self.left.values()))
        self.at: dict[int, Warmth] = {}

    def next(self, lane: int) -> tuple[Warmth, int] | None:
        """The next program of a lane, None if none is left."""
        with self.lock:
            left = {warmth: places for warmth, places in self.left.items() if places}
            if not left:
                return None
            own, taken = self.at.get(lane), set(self.at.values())
            if own not in left:
                free = [warmth for warmth in left if warmth not in taken]
                own = free[0] if free else max(left, key=lambda warmth: len(left[warmth]))
                self.at[lane] = own
            return own, left[own].popleft()


def in_lanes(
    programs: Sequence[Program], waiting: Waiting, processes: int, wall: Level
) -> Iterator[tuple[int, Outcome]]:
    """Every lane takes the next program when it has finished one, and keeps its warm parent as long as it fits."""
    results: queue.SimpleQueue[tuple[int, Outcome] | BaseException] = queue.SimpleQueue()
    stop, count = threading.Event(), waiting.count

    def lane(number: int) -> None:
        parent, warmth = None, None
        try:
            while not stop.is_set():
                following = waiting.next(number)
                if following is None:
                    return
                wanted, place = following
                if parent is None or wanted != warmth:
                    if parent is not None:
                        parent.close()
                    at, warmth = Place(wanted.interpreter, wanted.tree, number), wanted
                    parent = Parent(wall, at, wanted.modules)
                results.put((place, outcome(programs[place], parent)))
        except BaseException as error:
            results.put(error)
        finally:
            if parent is not None:
                parent.close()

    threads = [threading.Thread(target=lane, args=(number,), daemon=True) for number in range(min(processes, count))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(count):
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def outcome(program: Program, parent: Parent) -> Outcome:
    try:
        said = parent.judge(job(program, parent.place.interpreter))
    except Unready as error:
        return Outcome("import error", f"before the answer ran: {error}")
    except Died as error:
        return Outcome(error.verdict, str(error))
    if said["verdict"] == "passed" and program.accepts is not None and not program.accepts(said["output"]):
        return Outcome("failed", "wrote something else", said["seconds"], said["output"])
    return Outcome(said["verdict"], said["detail"], said["seconds"], said["output"])


def job(program: Program, python: Path) -> dict[str, Any]:
    command = [each.replace("{python}", str(python)) for each in program.command]
    return {
        "source": program.source,
        "check": program.check if program.check.strip() and not command else None,
        "tested": list(program.tested),
        "stdin": program.stdin.encode("utf-8", "surrogateescape"),
        "files": dict(program.files),
        "command": command or None,
        "pytest": "pytest" in program.command,
        "seconds": program.seconds,
        "memory": program.memory,
        "proof": secrets.token_bytes(16),
    }
