"""MBPP, as CodeRAG-Bench builds it (Wang et al., 2024, arXiv 2406.14497; Austin et al., 2021).

A query is the task's one sentence; its document is that sentence as a comment, a newline and the reference solution, so
the document holds the query whole. The title is what stands between the first `def` and its parenthesis. The 500 tasks
of the test split ask; what is searched is a choice. The paper's Table 1 says 500 documents, its script writes the train
and validation splits too, which makes 964, and its 98.6 is of these.

Every query is a problem, too (`answers/mbpp.py`). In `mbpp-974` all tasks ask. `mbpp-sanitized` is the authors' second
file, 427 tasks whose statements and asserts were mended by hand; it asks all of them over their own solutions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from coderet.corpora.released import json_array, json_lines
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

FILE = Released(
    "mbpp/mbpp.jsonl",
    "ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f",
    "url:https://raw.githubusercontent.com/deepseek-ai/DeepSeek-Coder/2f9fd85927c669dae3c0fbb2d607274023af243e"
    "/Evaluation/MBPP/data/mbpp.jsonl",
)
SANITIZED = Released(
    "mbpp/sanitized-mbpp.json",
    None,
    how="mbpp/sanitized-mbpp.json of github.com/google-research/google-research, as of commit "
    "30adf0ec5f35f9609c2f1d896005e184195d9146",
)
SPLITS = {"prompt": range(1, 11), "test": range(11, 511), "validation": range(511, 601), "train": range(601, 975)}
"""The task ids of each, as google-research/mbpp has them."""

_DEFINED = re.compile(r"def ([^(]*)\(")


@dataclass(frozen=True)
class Choices:
    """splits: whose solutions are searched; documents: how many they are; asked: whose tasks are the queries.

    sanitized: whether the tasks are those of the mended file.
    """

    splits: tuple[str, ...]
    documents: int
    asked: tuple[str, ...] = ("test",)
    queries: int = 500
    sanitized: bool = False

    def collect(self, folder: Path) -> Iterator[Draft]:
        """One dataset of the queries over the solutions of splits; every query is a problem too."""
        tasks = {task["task_id"]: task for task in (sanitized(folder) if self.sanitized else problems(folder))}
        asked, found = self._of(tasks, self.asked), self._of(tasks, self.splits)
        own = [solution_id(task) for task in asked]
        queries = [f"{task['task_id']}_doc" for task in asked]
        yield Draft(
            "mbpp-sanitized" if self.sanitized else "mbpp",
            [solutions(found)],
            queries_table(queries, [task["text"] for task in asked], withheld=[[each] for each in own]),
            qrels_table(queries, own),
            documents_expected=self.documents,
            queries_expected=self.queries,
            problems=problems_table([f"MBPP/{task['task_id']}" for task in asked], queries, asked),
            problems_expected=self.queries,
        )

    def _of(self, tasks: Mapping[int, dict[str, Any]], splits: Sequence[str]) -> list[dict[str, Any]]:
        return [tasks[number] for split in splits for number in SPLITS[split] if number in tasks]


def problems(folder: Path) -> Iterator[dict[str, Any]]:
    """The tasks of all splits, in the file's order; DataError if a record is none of MBPP's."""
    for task in json_lines(folder, FILE.name):
        if not task.keys() >= {"task_id", "text", "code"}:
            raise DataError(f"{folder / FILE.name}: a record has {sorted(task)}, wanted task_id, text and code of MBPP")
        yield {"test_setup_code": "", "test_list": [], **task}


def sanitized(folder: Path) -> Iterator[dict[str, Any]]:
    """The tasks of the mended file, their statement called as in the other; DataError if a record is none of these."""
    fields = {"task_id": int, "prompt": str, "code": str, "test_imports": list, "test_list": list}
    return ({**task, "text": task["prompt"]} for task in json_array(folder, SANITIZED.name, fields))


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
_ALL = Choices(tuple(SPLITS), 974, tuple(SPLITS), 974)
_SANITIZED = Choices(tuple(SPLITS), 427, tuple(SPLITS), 427, sanitized=True)


def _benchmark(
    name: str, choices: Choices, differs: str = "", answering: str = "ANSWERING", published: bool = True
) -> Benchmark:
    return Benchmark(
        name=name,
        collect=choices.collect,
        metrics=("ndcg@10", "mrr", "recall@10", "hit@1"),
        licence="CC-BY-4.0",
        source="google-research/mbpp, the mended tasks" if choices.sanitized else _SOURCE,
        files=(SANITIZED if choices.sanitized else FILE,),
        choices={"documents": f"solutions of the splits {', '.join(choices.splits)}", "title": "first defined name"},
        queries=f"the {choices.queries} tasks of the {_listed(choices.asked)}",
        documents=f"{choices.documents} solutions",
        defects=_DEFECTS,
        published=Published("coderag_bench", "mbpp", differs) if published else None,
        answering=f"coderet.benchmarks.answers.mbpp:{answering}",
    )


def _listed(splits: Sequence[str]) -> str:
    return f"{splits[0]} split" if len(splits) == 1 else f"splits {', '.join(splits)}"


_SOURCE = "google-research/mbpp, all four splits in one file"
_DEFECTS = (
    "The document holds its query word for word: kept, the protocol is so; the query's own solution is "
    "withheld from a generator's context.",
    "The paper says 500 documents and searched 964: mbpp has the 500, mbpp-paper the 964.",
)

BENCHMARKS = {
    "mbpp": _benchmark(
        "mbpp",
        _TEST,
        "500 documents, as Table 1 says; the printed figure is of 964, and fewer distractors score higher",
    ),
    "mbpp-974": _benchmark("mbpp-974", _ALL, published=False),
    "mbpp-paper": _benchmark(
        "mbpp-paper",
        _PAPER,
        "by exact scores BM25 has 98.56; the paper's searcher turns one tie round (query 248), as `scores: anserini` "
        "does, and has 98.64",
        "PAPER",
    ),
    "mbpp-sanitized": _benchmark("mbpp-sanitized", _SANITIZED, published=False),
}
