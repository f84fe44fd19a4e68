"""ODEX, the retrieval part, as CodeRAG-Bench builds it (Wang et al., 2024; Wang et al., 2022, arXiv 2212.10481).

A query is the intent of one of the 439 English tasks, what is searched the documentation of Python libraries. Relevant
are the documents that people left of those whose names the reference code calls: 232 of 201 tasks. The other tasks have
none; they are asked, counted and not scored, where the paper's loader did not ask them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from coderet.benchmarks import library_docs
from coderet.benchmarks.answers.odex import FIELDS
from coderet.benchmarks.library_docs import Documentation
from coderet.corpora.released import json_lines
from coderet.records import (
    QRELS,
    Benchmark,
    DataError,
    Draft,
    Published,
    Released,
    problems_table,
    qrels_table,
    queries_table,
)

FILE = Released(
    "coderag_bench/canonical/odex_docs.json",
    "38d671e66fdf70e82f5ffa9238e53e32c68945940609b23347e1f7d9a8d1b525",
    "url:https://raw.githubusercontent.com/code-rag-bench/code-rag-bench/f9e100ca9ed94b8f1983b356ae81966e30210cf4"
    "/retrieval/datasets/canonical/odex_docs.json",
)
TASKS = 439
LANGUAGES = {"es": ("Spanish", 90), "ja": ("Japanese", 164), "ru": ("Russian", 252)}
"""The languages that have no gold, and their tasks."""

HARD = (
    *("15_29784889", "20_3108285", "27_15405636", "32_40133826", "33_4490961", "51_23164058", "54_14026704"),
    *("61_17438096", "64_4172131", "106_12842997", "117_3880399", "173_4454298", "195_8908287", "197_7856296"),
    *("201_14950260", "211_4383082", "229_9323159", "231_24189150", "243_16193578", "248_8171751", "267_35420052"),
    *("270_4530069", "299_22799300", "321_26441253", "331_303200", "373_493386", "375_3964681", "387_6375343"),
    "414_6420361",
)
"""Tasks with a library outside the twenty most frequent ones, ties by first appearance.

The paper's own list is not released. Its figures are multiples of 1/29, and this rule gives 29 tasks, yet two of the
three libraries that it names as rare, sqlite3 and flask, are then among the twenty: so the rule is a guess.
"""


def every_task(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """An id for each task: its row and number."""
    return [f"{row}_{task['task_id']}" for row, task in enumerate(tasks)]


@dataclass(frozen=True)
class Choices:
    """documentation: the corpus that is searched."""

    documentation: Documentation

    def collect(self, folder: Path, *, posed: Literal["odex", "odex-hard"] = "odex") -> Iterator[Draft]:
        """One dataset. posed: the problems that a generator is asked, all or the hard ones."""
        tasks = _tasks(folder, FILE.name, ("docs",))
        ids = every_task(tasks)
        chosen = {own: task for own, task in zip(ids, tasks, strict=True) if posed == "odex" or own in HARD}
        judged = [(own, each["title"]) for own, task in zip(ids, tasks, strict=True) for each in task["docs"]]
        judged = list(dict.fromkeys(judged))
        found = self.documentation.ids_by_title(folder, {title for _, title in judged})
        yield Draft(
            "odex",
            self.documentation.batches(folder),
            queries_table(ids, [task["intent"] for task in tasks]),
            qrels_table([query for query, _ in judged], [found[title] for _, title in judged]),
            documents_expected=self.documentation.count,
            queries_expected=TASKS,
            problems=_problems(list(chosen), list(chosen.values())),
            problems_expected=TASKS if posed == "odex" else len(HARD),
            posed=posed,
        )


@dataclass(frozen=True)
class Unjudged:
    """The tasks of a language without gold. documentation: the corpus that is searched."""

    language: str
    documentation: Documentation

    def collect(self, folder: Path) -> Iterator[Draft]:
        """One dataset of questions."""
        tasks = _tasks(folder, _file_of(self.language).name)
        ids = every_task(tasks)
        yield Draft(
            "odex",
            self.documentation.batches(folder),
            queries_table(ids, [task["intent"] for task in tasks]),
            QRELS.empty_table(),
            documents_expected=self.documentation.count,
            queries_expected=LANGUAGES[self.language][1],
            judged=False,
            problems=_problems(ids, tasks),
            problems_expected=LANGUAGES[self.language][1],
        )


def _tasks(folder: Path, name: str, further: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    tasks = list(json_lines(folder, name))
    wanted = {"task_id", *FIELDS, *further}
    for row, task in enumerate(tasks):
        if lacks := sorted(wanted - task.keys()):
            raise DataError(f"{folder / name} is not the file of ODEX that is wanted: record {row} lacks {lacks[0]}")
    return tasks


def _problems(ids: Sequence[str], tasks: Sequence[Mapping[str, Any]]) -> pa.Table:
    return problems_table(ids, ids, [{field: task[field] for field in FIELDS} for task in tasks])


def _file_of(language: str) -> Released:
    return Released(
        f"odex/{language}_test.jsonl",
        None,
        how=f"data/{language}_test.jsonl of zorazrw/odex@b4fdf8b723d31e4cfdb720adf5b67a021dc3a2bb on GitHub",
    )


def _benchmark(name: str, documentation: Documentation, differs: str = "", answering: str = "ANSWERING") -> Benchmark:
    return Benchmark(
        name=name,
        collect=Choices(documentation).collect,
        metrics=("ndcg@10", "mrr", "recall@10", "recall@100", "hit@1"),
        licence="CC-BY-SA-4.0 (ODEX); documentation under each library's own licence",
        source="CodeRAG-Bench's file of ODEX with its gold, and the documentation of Python libraries",
        files=(FILE, *documentation.files),
        choices={
            "documents": documentation.name,
            "queries": "all English tasks; those without gold are not scored",
            "odex-hard": "tasks with a library outside the twenty most frequent: the paper's list is not known",
        },
        queries="439 English intents, 201 of them with gold",
        documents=f"{documentation.count:,} pages and entries of library documentation",
        defects=(
            "Gold is what the reference code calls: another function that does the same counts as wrong. Left so.",
            "The paper counts 945 tasks in four languages; its scores are of the 439 English ones, as here.",
        ),
        published=Published("coderag_bench", "odex", differs),
        answering=f"coderet.benchmarks.answers.odex:{answering}",
    )


def _unjudged(language: str, ending: str, documentation: Documentation) -> Benchmark:
    spoken, count = LANGUAGES[language]
    return Benchmark(
        name=f"odex-{language}{ending}",
        collect=Unjudged(language, documentation).collect,
        metrics=(),
        licence="CC-BY-SA-4.0 (ODEX); documentation under each library's own licence",
        source="ODEX, and the documentation of Python libraries",
        files=(_file_of(language), *documentation.files),
        choices={"documents": documentation.name, "judgements": "none, answers alone are judged"},
        queries=f"{count} {spoken} intents",
        documents=f"{documentation.count:,} pages and entries of library documentation",
        defects=("No document is known to help: runs are searched and not scored.",),
        answering="coderet.benchmarks.answers.odex:ANSWERING",
    )


_LINES = (
    "35,728 documents of three lines at most, not 34,003 whole ones: 349 bytes a record, the hub's file has 1,825. "
    "Shown: 3.1 as it is, 8.0 with whole texts, 3.5 with the gold alone whole, 4.8 with the others alone whole; 14 "
    "queries have gold in the first ten with three lines, 27 with whole texts; the gold of 24 holds no word of the "
    "query, of 9 with whole texts. 1,725 documents fewer, by chance, change 0.3 at most, ties 0.1. So it is the cut "
    "texts that lower the figure. Not known: which documents are too many and where the paper's texts end."
)
_PAGES = (
    "35,728 documents, whole where their page was at hand (29,372 grew), not 34,003: 2,033 bytes a record, the hub's "
    "file has 1,825. 8.0, where three lines a document give 3.1: the printed 6.7 lies between. 1,725 documents fewer, "
    "by chance, change 0.2 at most, ties less than 0.1. Not known: which documents are too many; where a text ends on "
    "its page and marks such as back quotes may differ."
)

BENCHMARKS = {
    each.name: each
    for each in (
        _benchmark("odex", library_docs.OFFICIAL),
        _benchmark("odex-devdocs", library_docs.LINES, _LINES),
        _benchmark("odex-devdocs-pages", library_docs.PAGES, _PAGES),
        _benchmark("odex-paper", library_docs.OFFICIAL, answering="PAPER"),
        _benchmark("odex-devdocs-paper", library_docs.LINES, _LINES, answering="PAPER"),
        *(
            _unjudged(language, ending, documentation)
            for language in LANGUAGES
            for ending, documentation in (("", library_docs.OFFICIAL), ("-devdocs", library_docs.LINES))
        ),
    )
}
