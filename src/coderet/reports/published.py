"""Papers' figures for the benchmarks of the grid, as rows of the summary; from the files in data/published.

Percentages become fractions. A figure that the paper does not print (a dash, a blank) gives no row.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from coderet.records import DataError

CODERAG_BENCH = "coderag_bench.yaml"
CODESEARCHNET = "codesearchnet.yaml"

Row = dict[str, Any]


def published_rows(folder: Path, benchmarks: Iterable[str]) -> list[Row]:
    """Every published figure for one of benchmarks, in the files' order; DataError if a file is missing."""
    wanted = set(benchmarks)
    found = [*_coderag_bench(_read(folder / CODERAG_BENCH)), *_codesearchnet(_read(folder / CODESEARCHNET))]
    return [row for row in found if row["benchmark"] in wanted]


def _coderag_bench(page: Any) -> Iterator[Row]:
    """Table 3: retrievers by benchmark. The columns bear the benchmarks' names, but for the printed average."""
    for system, cells in page["tables"]["t3"]["rows"].items():
        for benchmark, percent in cells.items():
            if percent is not None and benchmark != "avg":
                yield _row(system, benchmark, "all", "ndcg@10", percent / 100, "queries", "CodeRAG-Bench table 3")


def _codesearchnet(page: Any) -> Iterator[Row]:
    """MRR among 999 distractors, by language: the direction of the 2019 paper. Encoders of one name are one system.

    The last score is the run over all languages in one pool, which no dataset of ours is.
    """
    for entry in page["mrr_999_distractors"]:
        encoders = dict.fromkeys([entry["text_encoder"], entry["code_encoder"]])
        for language, score in zip(page["languages"], entry["scores"], strict=False):
            source = "CodeSearchNet MRR table"
            yield _row("+".join(encoders), "codesearchnet", language, "mrr-1000-paper", score, "queries", source)


def _row(system: str, benchmark: str, dataset: str, metric: str, value: float, mean: str, source: str) -> Row:
    return {
        "system": system,
        "benchmark": benchmark,
        "dataset": dataset,
        "metric": metric,
        "value": round(value, 6),
        "low": None,
        "high": None,
        "queries": None,
        "mean": mean,
        "source": f"published:{source}",
        "unit": "fraction",
    }


def _read(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} is missing; it lies in git: git checkout -- {path}") from None
