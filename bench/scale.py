"""Seconds and memory of every stage on a corpus of a million documents, which is made up here.

Documented functions are mined out of packages that are installed beside this Python and repeated until there are enough
of them, the names that a function binds changed in every copy, so that no two texts are equal. They are written as a
BEIR folder; then the stages of the pipeline run on it as they are, each a process of its own: `collect`, and for
bm25 (Lucene over white space), bm25s (code words) and nbow (of its usual size, trained briefly on the mined functions)
`index`, `search` to depth 100 and `score`. What is printed of a stage:

    seconds   from start to end of the process
    cpu s     of processor time, which other work on the machine does not stretch
    peak GB   the most memory that the process ever held resident (its children's too, if it has any)
    own GB    the most that was its own at a time; the rest is pages of memory-mapped files, which the operating
              system takes back when it needs them

A stage that peaks above the limit makes the bench fail at the end. A corpus of a tenth takes a tenth of the time:

    python bench/scale.py                                               # 100,000 documents, 1,000 queries
    nice python bench/scale.py --documents 1000000 --queries 10000      # wants 6 GB of disk
    python bench/scale.py --folder scratch --retrievers bm25s           # keeps the folder, and goes on in it
"""

import argparse
import ast
import builtins
import contextlib
import json
import keyword
import os
import re
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import yaml

from coderet import paths
from coderet.corpora import mining, store
from coderet.records import PAIRS, DataError
from coderet.words import code_words

ROOT = Path(__file__).parents[1]
BENCHMARK = "scale"
PACKAGES = ("lightning", "mlflow", "networkx", "pandas", "plotly", "scipy", "sqlalchemy", "sympy", "transformers")
RETRIEVERS = ("bm25", "bm25s", "nbow")
DEPTH = 100
VALID_SHARE = 10  # one in so many functions validates nbow's training
EPOCHS = 1
ODD = 0x9E3779B97F4A7C15  # a multiplier that spreads consecutive numbers over 64 bits: ids in no order
SECONDS_BETWEEN_SAMPLES = 0.1

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Stage:
    """What one process cost."""

    name: str
    seconds: float
    processor_seconds: float
    peak_gigabytes: float
    own_gigabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--retrievers", nargs="+", choices=RETRIEVERS, default=list(RETRIEVERS))
    parser.add_argument(
        "--packages", nargs="+", default=list(PACKAGES), help="installed ones; those missing are skipped"
    )
    parser.add_argument("--limit", type=float, default=8.0, help="gigabytes that no stage may go beyond")
    parser.add_argument("--folder", type=Path, help="to work in and to keep; without it a temporary one")
    options = parser.parse_args()
    if not 1 <= options.queries <= options.documents:
        parser.error(
            f"{options.queries} queries of {options.documents} documents; wanted at least 1 and no more queries"
        )
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coderet-scale-")))
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / paths.raw(BENCHMARK) / "qrels" / "test.tsv").exists():
            start = time.perf_counter()
            prepare(folder, options.packages, options.documents, options.queries)
            print(f"made {options.documents:,} documents in {time.perf_counter() - start:.0f} s", flush=True)
        done = []
        print(f"{'stage':<16}{'seconds':>9}{'cpu s':>9}{'peak GB':>9}{'own GB':>9}", flush=True)
        for command in commands(folder, options.retrievers):
            done.append(measured(command, folder))
            each = done[-1]
            times = f"{each.seconds:>9.1f}{each.processor_seconds:>9.1f}"
            print(f"{each.name:<16}{times}{each.peak_gigabytes:>9.2f}{each.own_gigabytes:>9.2f}", flush=True)
        used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e9
        times = f"{sum(each.seconds for each in done):>9.1f}{sum(each.processor_seconds for each in done):>9.1f}"
        print(f"{'all':<16}{times}   {used:.1f} GB on disk", flush=True)
    beyond = [f"{each.name} {each.peak_gigabytes:.2f}" for each in done if each.peak_gigabytes > options.limit]
    if beyond:
        sys.exit(f"over the limit of {options.limit:g} GB: {', '.join(beyond)}")


def commands(folder: Path, retrievers: list[str]) -> Iterator[list[str]]:
    """The scripts to run, each with its arguments; what is trained already is not trained again."""
    yield ["eval/collect", BENCHMARK]
    for name in retrievers:
        if not (folder / paths.retriever(name)).exists():
            if name == "nbow":
                yield ["train/vocabulary"]
            yield ["train/fit" if name == "nbow" else "train/prepare", name]
        for stage in ("index", "search", "score"):
            yield [f"eval/{stage}", BENCHMARK, name]


def measured(command: list[str], folder: Path) -> Stage:
    """Run a script in folder to its end; SystemExit with what it said if it fails."""
    script, *arguments = command
    name = " ".join([script.split("/")[1], *(each for each in arguments if each != BENCHMARK)])
    quiet = {"PYTHONPATH": str(ROOT / "src"), "MLFLOW_TRACKING_URI": "", "TOKENIZERS_PARALLELISM": "false"}
    with tempfile.TemporaryFile("w+") as said:
        start, before = time.perf_counter(), processor_seconds()
        process = subprocess.Popen(
            [sys.executable, str(ROOT / f"{script}.py"), *arguments],
            cwd=folder,
            env=os.environ | quiet,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        peak = own = 0
        while process.poll() is None:
            total, theirs = resident(process.pid)
            peak, own = max(peak, total), max(own, theirs)
            time.sleep(SECONDS_BETWEEN_SAMPLES)
        seconds = time.perf_counter() - start
        if process.returncode:
            said.seek(0)
            sys.exit(f"{name} failed:\n{said.read()[-4000:]}")
    return Stage(name, seconds, processor_seconds() - before, peak / 1e9, own / 1e9)


def processor_seconds() -> float:
    """Of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def resident(pid: int) -> tuple[int, int]:
    """Bytes that a process and its children hold resident, and of these the ones that are no pages of files."""
    total = own = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                memory = each.memory_info()
                total += memory.rss
                own += memory.rss - getattr(memory, "shared", 0)
    return total, own


# What is measured on


def prepare(folder: Path, packages: list[str], documents: int, queries: int) -> None:
    """The BEIR folder, the pairs that nbow learns from, and params.yaml."""
    pairs = mined(packages)
    store.write_pairs(folder / paths.PAIRS / "train.parquet", [pairs.filter(_every(len(pairs), VALID_SHARE, False))])
    store.write_pairs(folder / paths.PAIRS / "valid.parquet", [pairs.filter(_every(len(pairs), VALID_SHARE, True))])
    write_params(folder)
    write_beir(folder / paths.raw(BENCHMARK), Copies(pairs), documents, queries)


def mined(packages: list[str]) -> pa.Table:
    """Pairs of the documented functions of installed packages, each text once."""
    place = Path(sysconfig.get_paths()["purelib"])
    there = {name: place / name for name in packages if (place / name).is_dir()}
    if not there:
        raise DataError(f"{place} has none of {', '.join(packages)}; name packages that are installed by --packages")
    pairs = pa.Table.from_batches(mining.mine(there, processes=2), PAIRS)
    first = dict(zip(reversed(pairs["code"].to_pylist()), range(len(pairs) - 1, -1, -1), strict=True))
    return pairs.take(sorted(first.values()))


def write_params(folder: Path) -> None:
    """The project's params with this benchmark and these retrievers, nbow trained briefly."""
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    raw["code"] = str(ROOT)
    raw["benchmarks"] = {BENCHMARK: {"kind": "beir", "depth": DEPTH, "source": []}}
    raw["retrievers"] = {name: raw["retrievers"][name] for name in RETRIEVERS}
    raw["retrievers"]["nbow"]["fit"]["training"]["epochs"] = EPOCHS
    raw["fusions"] = {}
    raw["compare"]["baseline"] = RETRIEVERS[0]
    names = list(RETRIEVERS)
    raw["grid"] |= {"benchmarks": [BENCHMARK], "trained": ["nbow"], "untrained": names[:2]}
    raw["grid"] |= {"retrievers": names, "fusions": [], "runs": names}
    (folder / "params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")


def write_beir(folder: Path, copies: "Copies", documents: int, queries: int) -> None:
    """Documents number 0, 1, ...: function by function, a copy after the other. Every so many of them has a query."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    with (
        (folder / "corpus.jsonl").open("w", encoding="utf-8") as corpus,
        (folder / "queries.jsonl").open("w", encoding="utf-8") as asked,
        (folder / "qrels" / "test.partial").open("w", encoding="utf-8") as qrels,
    ):
        qrels.write("query-id\tcorpus-id\tscore\n")
        for number, (name, code, query) in enumerate(copies.of(documents)):
            own = f"{number * ODD % 2**64:016x}"
            corpus.write(json.dumps({"_id": own, "title": name, "text": code}, ensure_ascii=False) + "\n")
            if number * queries // documents < (number + 1) * queries // documents:
                asked.write(json.dumps({"_id": f"q{number}", "text": query}, ensure_ascii=False) + "\n")
                qrels.write(f"q{number}\t{own}\t1\n")
    (folder / "qrels" / "test.partial").rename(folder / "qrels" / "test.tsv")


class Copies:
    """Copies of functions in which every name that the function binds ends in other words."""

    def __init__(self, pairs: pa.Table) -> None:
        self._pairs = pairs
        found = dict.fromkeys(word for query in pairs["query"].to_pylist() for word in code_words(query))
        self._words = [word for word in found if word.isascii() and word.isalpha() and not keyword.iskeyword(word)]

    def of(self, documents: int) -> Iterator[tuple[str, str, str]]:
        """Name, code and query of so many copies; of some functions one more than of others."""
        for place, (name, code, query) in enumerate(zip(*map(self._column, ("name", "code", "query")), strict=True)):
            first, last = (documents * each // len(self._pairs) for each in (place, place + 1))
            own = name.rpartition(".")[2]
            template, names = _template(code, own)
            for copy in range(last - first):
                changed = [f"{each}_{self._ending(copy, place * len(names) + i)}" for i, each in enumerate(names)]
                yield changed[0], template.format(*changed), f"{query} {' '.join(code_words(changed[0]))}"

    def _column(self, name: str) -> list[str]:
        column: list[str] = self._pairs[name].to_pylist()
        return column

    def _ending(self, copy: int, shift: int) -> str:
        """Another one for every copy, whatever the shift."""
        rounds, word = divmod(copy, len(self._words))
        return self._words[(word + shift) % len(self._words)] + (f"_{rounds}" if rounds else "")


def _template(code: str, own: str) -> tuple[str, list[str]]:
    """The code with a numbered gap at every name that it binds, and these names, the function's own first."""
    names = [own, *sorted(_bound(code) - {own})]
    places = {name: f"{{{place}}}" for place, name in enumerate(names)}
    pieces = []
    end = 0
    for found in _IDENTIFIER.finditer(code):
        pieces += [code[end : found.start()].replace("{", "{{").replace("}", "}}"), places.get(found[0], found[0])]
        end = found.end()
    text = "".join([*pieces, code[end:].replace("{", "{{").replace("}", "}}")])
    return (text, names) if "{0}" in text else ("# {0}\n" + text, names)


def _bound(code: str) -> set[str]:
    """Arguments and variables of a function, and the functions in it; none where Python cannot read it."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names = {each.arg for each in nodes if isinstance(each, ast.arg)}
    names |= {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    names |= {each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return {each for each in names if each not in ("self", "cls") and not hasattr(builtins, each)}


def _every(count: int, share: int, chosen: bool) -> pa.Array:
    return pa.array([(place % share == 0) == chosen for place in range(count)])


if __name__ == "__main__":
    main()
