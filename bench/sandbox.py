"""What the sandbox costs a program, beside a plain `subprocess.run([python, file])`, for each wall this machine allows.

Programs are one line and its check, so that all time is overhead; the second part runs HumanEval's references, if the
file is at hand, as often as an evaluation with four contexts does.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from coderet.benchmarks import sandbox
from coderet.benchmarks.answering import Program

ROOT = Path(__file__).parents[1]
SOURCE, CHECK = "def plus(a, b):\n    return a + b\n", "assert plus(1, 2) == 3\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--processes", type=int, default=2)
    sizes = parser.parse_args()
    report(
        "plain processes, no wall, no proof, one at a time", plain(min(100, sizes.programs)), min(100, sizes.programs)
    )
    for level in sandbox.LEVELS:
        if lack := sandbox.available(level):
            print(f"{level}: not here: {lack}")
            continue
        for modules in ((), ("numpy",), ("numpy", "pandas")):
            name = f"{level}, {' and '.join(modules) or 'nothing'} warm"
            programs = [Program(SOURCE, CHECK, modules=modules)] * sizes.programs
            try:
                report(f"{name}, one at a time", passed(programs, 1, level), len(programs))
                report(f"{name}, {sizes.processes} at a time", passed(programs, sizes.processes, level), len(programs))
            except sandbox.SandboxError as error:
                print(f"{level}: {error}")
                break
    data = Path(os.environ.get("CODERET_DATA", ROOT.parent / "shared" / "data")) / "humaneval" / "HumanEval.jsonl.gz"
    if data.exists():
        rows = [json.loads(line) for line in gzip.decompress(data.read_bytes()).splitlines()]
        programs = [
            Program(row["prompt"] + row["canonical_solution"], f"{row['test']}\ncheck({row['entry_point']})")
            for row in rows
        ] * 4
        report("HumanEval, 164 references, four times", passed(programs, sizes.processes, None), len(programs))


def plain(programs: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.py"
        file.write_text(SOURCE + CHECK)
        began = time.perf_counter()
        for _ in range(programs):
            subprocess.run([sys.executable, str(file)], check=True)
        return time.perf_counter() - began


def passed(programs: Sequence[Program], processes: int, level: sandbox.Level | None) -> float:
    """Seconds from the first program, when the warm parents are there, to the last."""
    results = sandbox.run(programs, processes, level=level)
    outcomes = [next(results)[1] for _ in range(processes)]
    began = time.perf_counter()
    outcomes += [outcome for _, outcome in results]
    seconds = time.perf_counter() - began
    assert {outcome.verdict for outcome in outcomes} == {"passed"}, {outcome.verdict for outcome in outcomes}
    return seconds


def report(name: str, seconds: float, programs: int) -> None:
    print(f"{name:70} {1000 * seconds / programs:7.1f} ms a program {programs / seconds:8.0f} programs/s")


if __name__ == "__main__":
    main()
