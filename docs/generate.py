"""Write docs/benchmarks.md from the records of the benchmarks."""

from pathlib import Path

from coderet.benchmarks import BENCHMARKS, benchmark
from coderet.reports.catalogue import catalogue

if __name__ == "__main__":
    page = catalogue({name: benchmark(name) for name in BENCHMARKS})
    Path(__file__).with_name("benchmarks.md").write_text(page, encoding="utf-8")
