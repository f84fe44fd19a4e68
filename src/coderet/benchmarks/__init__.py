"""Questions with answers: one file a benchmark, each a `Benchmark` record named in this table.

To add one, write the file and its line here; its entry in params.yaml says where its files come from. A module with
several records, made from one reader by different choices, keeps them in a mapping by name.
"""

from collections.abc import Mapping

from coderet.records import Benchmark
from coderet.registry import load

BENCHMARKS = {
    "beir": "coderet.benchmarks.beir:BENCHMARK",
    "humaneval": "coderet.benchmarks.humaneval:BENCHMARK",
    "pypi": "coderet.benchmarks.pypi:BENCHMARK",
}


def benchmark(kind: str, where: str = "") -> Benchmark:
    """The benchmark of that kind; UnknownName offers the nearest."""
    found: Benchmark | Mapping[str, Benchmark] = load(BENCHMARKS, kind, "benchmarks", where)
    return found[kind] if isinstance(found, Mapping) else found
