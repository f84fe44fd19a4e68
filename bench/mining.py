"""Source bytes a second: our extraction against Python's own `ast`, side by side on the same files.

Both give, for every documented function that lies in no other function: name, first and last line, source text,
docstring and the code without its docstring. The peer is `ast.parse` + `ast.walk` as a careful user writes it: one walk
a file, each file split into lines once (`ast.get_source_segment` splits it again for each function, about ten times
slower), nothing unparsed. Each side gets the same chunks of files and the same number of processes; rounds alternate,
so that a busy machine slows both, and the median of the rounds' ratios is printed.

    python bench/mining.py [--folder site-packages] [--files 2000] [--processes 2] [--rounds 5]
"""

import argparse
import ast
import json
import multiprocessing
import random
import statistics
import sysconfig
import textwrap
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from coderet.corpora import syntax

Extracted = tuple[str, int, int, str, str, str]
Count = tuple[int, int]  # functions, characters of their code


def by_ast(data: bytes) -> list[Extracted]:
    """Documented functions of one Python file by Python's own parser; none if it refuses the file."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lines = data.split(b"\n")
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    nodes.sort(key=lambda node: node.lineno)
    taken = 0  # the last line of the last function that is inside no other
    found: list[Extracted] = []
    for node in nodes:
        if node.lineno <= taken:
            continue
        last = taken = node.end_lineno or node.lineno
        docstring = ast.get_docstring(node)
        if docstring is None:
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        text = b"\n".join(lines[first - 1 : last])
        statement = node.body[0]
        row = statement.lineno - 1
        before = [*lines[first - 1 : row], lines[row][: statement.col_offset]]
        if len(node.body) == 1:
            before[-1] += b"pass"
            code = b"\n".join(before)
        else:
            following = node.body[1]
            before[-1] += lines[following.lineno - 1][following.col_offset :]
            code = b"\n".join(before + lines[following.lineno : last])
        found.append(
            (
                node.name,
                first,
                last,
                text.decode("utf-8", "replace"),
                docstring,
                textwrap.dedent(code.decode("utf-8", "replace")),
            )
        )
    return found


def by_syntax(data: bytes) -> list[Extracted]:
    """Documented functions of one Python file by `coderet.corpora.syntax`; none if the file is binary."""
    try:
        functions = syntax.functions(data, "python")
    except syntax.BinaryFile:
        return []
    return [
        (
            function.name,
            function.start_line,
            function.end_line,
            function.text,
            function.docstring or "",
            function.code,
        )
        for function in functions
        if function.docs
    ]


def ast_chunk(paths: Sequence[Path]) -> Count:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _count(by_ast, paths)


def syntax_chunk(paths: Sequence[Path]) -> Count:
    return _count(by_syntax, paths)


def _count(extract: Callable[[bytes], list[Extracted]], paths: Sequence[Path]) -> Count:
    functions = characters = 0
    for path in paths:
        found = extract(path.read_bytes())
        functions += len(found)
        characters += sum(len(code) for *_, code in found)
    return functions, characters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(sysconfig.get_paths()["purelib"]))
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    paths = sorted(arguments.folder.rglob("*.py"))
    random.Random(0).shuffle(paths)
    paths = paths[: arguments.files]
    if not paths:
        parser.error(f"found no .py file below {arguments.folder}")
    total = sum(len(path.read_bytes()) for path in paths)
    chunks = [paths[start : start + 25] for start in range(0, len(paths), 25)]
    speeds: dict[str, list[float]] = {"ast": [], "syntax": []}
    counts: dict[str, Count] = {}
    sides = {"ast": ast_chunk, "syntax": syntax_chunk}
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for side in sides.values():  # warm: imports, grammars, file cache
            pool.map(side, chunks[: 4 * arguments.processes], chunksize=1)
        for _ in range(arguments.rounds):
            for name, side in sides.items():
                start = time.perf_counter()
                parts = pool.map(side, chunks, chunksize=1)
                speeds[name].append(total / (time.perf_counter() - start) / 1e6)
                counts[name] = (sum(part[0] for part in parts), sum(part[1] for part in parts))
    ratios = [ours / peer for ours, peer in zip(speeds["syntax"], speeds["ast"], strict=True)]
    result = {
        "files": len(paths),
        "megabytes": round(total / 1e6, 1),
        "processes": arguments.processes,
        "rounds": arguments.rounds,
        "functions": {name: count[0] for name, count in counts.items()},
        "code_characters": {name: count[1] for name, count in counts.items()},
        "megabytes_per_second": {name: round(statistics.median(values), 2) for name, values in speeds.items()},
        "ratio_median": round(statistics.median(ratios), 2),
        "ratio_lowest": round(min(ratios), 2),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
