"""MBPP, the retrieval part, as CodeRAG-Bench builds it (Wang et al., 2024, arXiv 2406.14497; Austin et al., 2021).

A query is the task's one sentence; its document is that sentence as a comment, a newline and the reference solution, so
the document holds the query whole. The title is what stands between the first `def` and its parenthesis. The 500 tasks
of the test split ask; what is searched is a choice. The paper's Table 1 says 500 documents, its script writes the train
and validation splits too, which makes 964, and its 98.6 is of these.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from coderet.corpora.released import json_lines
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

FILE = Released(
    "mbpp/mbpp.jsonl",
    "ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f",
    "url:https://raw.githubusercontent.com/deepseek-ai/DeepSeek-Coder/2f9fd85927c669dae3c0fbb2d607274023af243e"
    "/Evaluation/MBPP/data/mbpp.jsonl",
)
SPLITS = {"prompt": range(1, 11), "test": range(11, 511), "validation": range(511, 601), "train": range(601, 975)}
"""The task ids of each, as google-research/mbpp has them."""

_DEFINED = re.compile(r"def ([^(]*)\(")


@dataclass(frozen=True)
class Choices:
    """splits: whose solutions are searched; documents: how many they are."""

    splits: tuple[str, ...]
    documents: int

    def collect(self, folder: Path) -> Iterator[Draft]:
        """One dataset of the test split's queries over the solutions of splits."""
        searched = [task for split in self.splits for task in SPLITS[split]]
        tasks = {task["task_id"]: task for task in problems(folder)}
        asked = [tasks[number] for number in SPLITS["test"] if number in tasks]
        own = [solution_id(task) for task in asked]
        queries = [f"{task['task_id']}_doc" for task in asked]
        found = [tasks[number] for number in searched if number in tasks]
        yield Draft(
            "mbpp",
            [solutions(found)],
            queries_table(queries, [task["text"] for task in asked], withheld=[[each] for each in own]),
            qrels_table(queries, own),
            documents_expected=self.documents,
            queries_expected=len(SPLITS["test"]),
        )


def problems(folder: Path) -> Iterator[dict[str, Any]]:
    """The tasks of all splits, in the file's order; DataError if a record is none of MBPP's."""
    for task in json_lines(folder, FILE.name):
        if not task.keys() >= {"task_id", "text", "code"}:
            raise DataError(f"{folder / FILE.name}: a record has {sorted(task)}, wanted task_id, text and code of MBPP")
        yield task


def solutions(tasks: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """The document of every task."""
    return documents_batch([*map(solution_id, tasks)], [*map(title, tasks)], [*map(solution, tasks)])


def solution_id(task: dict[str, Any]) -> str:
    return f"{task['task_id']}_code"


def solution(task: dict[str, Any]) -> str:
    """The document of a task."""
    return f"# {task['text']}\n{task['code']}"


def title(task: dict[str, Any]) -> str:
    """The first name that the solution defines, with the blank that may follow it; empty if it defines none."""
    found = _DEFINED.search(task["code"])
    return found[1] if found else ""


_PAPER = Choices(("train", "validation", "test"), 964)
_TEST = Choices(("test",), 500)


def _benchmark(name: str, choices: Choices, differs: str = "") -> Benchmark:
    return Benchmark(
        name=name,
        collect=choices.collect,
        metrics=("ndcg@10", "mrr", "recall@10", "hit@1"),
        licence="CC-BY-4.0",
        source="google-research/mbpp, all four splits in one file",
        files=(FILE,),
        choices={"documents": f"solutions of the splits {', '.join(choices.splits)}", "title": "first defined name"},
        queries="the 500 tasks of the test split",
        documents=f"{choices.documents} solutions",
        defects=(
            "The document holds its query word for word: kept, the protocol is so; the query's own solution is "
            "withheld from a generator's context.",
            "The paper says 500 documents and searched 964: mbpp has the 500, mbpp-paper the 964.",
        ),
        published=Published("coderag_bench", "mbpp", differs),
    )


BENCHMARKS = {
    "mbpp": _benchmark(
        "mbpp",
        _TEST,
        "500 documents, as Table 1 says; the printed figure is of 964, and fewer distractors score higher",
    ),
    "mbpp-paper": _benchmark(
        "mbpp-paper",
        _PAPER,
        "by exact scores BM25 has 98.56; the paper's searcher turns one tie round (query 248), as `scores: anserini` "
        "does, and has 98.64",
    ),
}
