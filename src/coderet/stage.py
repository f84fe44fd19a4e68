"""What every stage script shares: its arguments, its params, the seed, a clock, and one way to fail.

A script's `main` says what a stage does; `run(main)` makes its parameters the command line and turns the errors that
this library raises into one message without a traceback. `CODERET_TRACEBACK=1` shows where it came from.
"""

import argparse
import contextlib
import dataclasses
import errno
import inspect
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coderet import params as parameters
from coderet.metrics import efficiency
from coderet.params import Params

FAILED = 1
INTERRUPTED = 130

_NO_SPACE = "the results of earlier runs are as they were; make room and run it again"
_NO_RIGHTS = "give this user the right to write there, or run in a folder of its own"
_IN_THE_WAY = "a file lies where a folder is wanted, or the other way round: move it away"
_TOO_LARGE = f"this user may write no file so large (ulimit -f); {_NO_SPACE.replace('make room', 'raise that limit')}"
_ADVICE = {errno.ENOSPC: _NO_SPACE, errno.EDQUOT: _NO_SPACE, errno.EFBIG: _TOO_LARGE} | dict.fromkeys(
    (errno.EROFS, errno.EACCES, errno.EPERM), _NO_RIGHTS
)
_OF_RUST = re.compile(r"\(os error (\d+)\)")
_ADVICE |= dict.fromkeys((errno.ENOTDIR, errno.EISDIR, errno.EEXIST), _IN_THE_WAY)


def run(main: Callable[..., None]) -> None:
    """Call main with the command line's positional arguments, which are its parameters, all text; those that have a
    default may be left out or be empty."""
    parser = argparse.ArgumentParser(description=(sys.modules[main.__module__].__doc__ or "").strip().split("\n")[0])
    taken = inspect.signature(main).parameters
    defaults = {name: each.default for name, each in taken.items() if each.default is not each.empty}
    for name in taken:
        parser.add_argument(name, nargs="?" if name in defaults else None)
    arguments = {name: given or defaults.get(name, given) for name, given in vars(parser.parse_args()).items()}
    # Threads that wait spin by default, which is three times slower where other work wants the cores too.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        main(**arguments)
    except KeyboardInterrupt:
        print(f"{_what(arguments)}: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except Exception as error:
        # Of the operating system's errors only those that a person can mend; the others are mistakes of ours.
        advice = _advice(error)
        if os.environ.get("CODERET_TRACEBACK") or not (advice or type(error).__module__.startswith("coderet.")):
            raise
        print(f"{_what(arguments)}: {error}{f'; {advice}' if advice else ''}", file=sys.stderr)
        sys.exit(FAILED)


def _advice(error: Exception) -> str:
    if not isinstance(error, OSError):
        of_rust = _OF_RUST.search(str(error))  # safetensors and tokenizers write files themselves
        return _ADVICE.get(int(of_rust[1]), "") if of_rust else ""
    if error.errno is None and str(error).endswith(" written"):  # NumPy's words for a disk that is full
        return _NO_SPACE
    return _ADVICE.get(error.errno or 0, "")


def _what(arguments: Mapping[str, str]) -> str:
    return " ".join([os.path.basename(sys.argv[0]).removesuffix(".py"), *filter(None, arguments.values())])


@dataclass
class Clock:
    """Seconds of wall time of a block, read once the block has ended."""

    seconds: float = 0.0


@dataclass(frozen=True)
class Job:
    """A stage at work: the params it was given, and a clock."""

    params: Params

    @property
    def machine(self) -> dict[str, Any]:
        """What the figures of this job were measured on, for its results file."""
        return {"threads": efficiency.threads(), "hardware": dataclasses.asdict(efficiency.hardware())}

    @contextlib.contextmanager
    def clock(self) -> Iterator[Clock]:
        """Time the block."""
        clock = Clock()
        start = time.perf_counter()
        yield clock
        clock.seconds = time.perf_counter() - start


@contextlib.contextmanager
def open(**item: Any) -> Iterator[Job]:
    """Read the params, seed Python and NumPy, and say at the end how long the stage took."""
    start = time.perf_counter()
    params = parameters.read()
    random.seed(params.seed)
    np.random.seed(params.seed)
    yield Job(params)
    what = " ".join([os.path.basename(sys.argv[0]), *(str(each) for each in item.values())])
    print(f"{what}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
