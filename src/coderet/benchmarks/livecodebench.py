"""LiveCodeBench as CodeRAG-Bench asks it: problem statements over the programming solutions, with no judgements.

The questions are the 400 of release_v1 (Jain et al., 2024, arXiv 2403.07974). No document is known to answer one, so a
run can be searched, and given to a generator, but not scored; the paper prints no retrieval figure either.
`livecodebench-873` asks the 873 statements from May 2023 to December 2024 that stand beside a published evaluation.

Answers to the 400 are judged by their tests (`answers/livecodebench.py`); the 873 came without, so none of them is
posed. `livecodebench-paper` runs the public tests alone, as the paper's code does.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from coderet.benchmarks import open_sources
from coderet.benchmarks.answers.livecodebench import FIELDS
from coderet.corpora import hub
from coderet.corpora.released import check_fields, json_lines
from coderet.records import QRELS, Benchmark, DataError, Draft, Released, problems_table, queries_table

HUB = "livecodebench/code_generation"
_SPLIT = "test"
OFFICIAL = Released(
    f"{HUB}/",
    None,
    how=f"the data set {HUB} of the hub, release_v1: 400 rows, JSON lines or Parquet, split {_SPLIT}",
)
GIVEN = Released(
    "livecodebench/problems_2023-05_2024-12.jsonl",
    "d0debdb80165b68ba8cb0ec2e45e529265ac33dd6501cabd517773ce7ecb2dc9",
    how="question_title, question_content, platform, question_id, contest_id, contest_date, starter_code and "
    "difficulty of every record of output/Qwen2.5-Ins-7B-ZeroShotCoT/Scenario.codegeneration_1_0.2_eval_all.json in "
    "LiveCodeBench/LiveCodeBench, added in commit 8a7b1b44c42921dbed2dce1a453aa0000b6f5a91 and no longer at its head",
)
_FIELDS = ("question_id", "contest_id", "question_content")

Question = dict[str, str]


@dataclass(frozen=True)
class Choices:
    """questions: where they are read; count: how many there are; tested: whether they come with tests."""

    questions: Callable[[Path, tuple[str, ...]], Iterator[Question]]
    count: int
    tested: bool

    def collect(self, folder: Path) -> Iterator[Draft]:
        """One dataset of questions, unjudged, over the programming solutions."""
        asked = list(self.questions(folder, _FIELDS))
        ids = [f"{each['question_id']}__{each['contest_id']}" for each in asked]
        yield Draft(
            "livecodebench",
            open_sources.source("programming-solutions").batches(folder),
            queries_table(
                ids,
                [each["question_content"] for each in asked],
            ),
            QRELS.empty_table(),
            documents_expected=open_sources.SOLUTIONS,
            queries_expected=self.count,
            judged=False,
            problems=problems_table(ids, ids, self.questions(folder, FIELDS)) if self.tested else None,
            problems_expected=self.count if self.tested else None,
        )


def _of_hub(folder: Path, fields: tuple[str, ...]) -> Iterator[Question]:
    """Tests are hundreds of megabytes, so they are read when they are wanted, in a pass of their own."""
    place = folder / HUB
    configs = hub.configs(place)
    config = configs[0] if len(configs) == 1 else hub.DEFAULT
    for batch in hub.batches(place, config, hub.split_or_only(place, config, _SPLIT), fields):
        columns = [hub.column(batch, name, pa.large_string()) for name in fields]
        if any(each.null_count for each in columns):
            raise DataError(f"{place}: a question lacks one of {', '.join(fields)}; fetch the data set again")
        yield from pa.RecordBatch.from_arrays(columns, names=list(fields)).to_pylist()


def _given(folder: Path, fields: tuple[str, ...]) -> Iterator[Question]:
    for record in json_lines(folder, GIVEN.name):
        check_fields(record, dict.fromkeys(fields, str), f"a record of {folder / GIVEN.name}")
        yield record


def _benchmark(name: str, choices: Choices, file: Released, queries: str, answering: str = "") -> Benchmark:
    return Benchmark(
        name=name,
        collect=choices.collect,
        metrics=(),
        licence="MIT (LiveCodeBench); statements of LeetCode, AtCoder and Codeforces",
        source="LiveCodeBench; HumanEval and MBPP",
        files=(file, *open_sources.source("programming-solutions").files),
        choices={"judgements": "none", "documents": "solutions of HumanEval and of all four splits of MBPP"},
        queries=queries,
        documents="1,138 solutions of HumanEval and MBPP",
        defects=(
            "No document is known to answer a question: runs are searched and not scored.",
            "The paper's loader runs no query without judgements, so its own script finds nothing: here all are asked.",
        ),
        answering=answering and f"coderet.benchmarks.answers.livecodebench:{answering}",
    )


BENCHMARKS = {
    **{
        name: _benchmark(
            name, Choices(_of_hub, 400, tested=True), OFFICIAL, "the 400 questions of release_v1", answering
        )
        for name, answering in (("livecodebench", "ANSWERING"), ("livecodebench-paper", "PAPER"))
    },
    "livecodebench-873": _benchmark(
        "livecodebench-873", Choices(_given, 873, tested=False), GIVEN, "873 questions, May 2023 to December 2024"
    ),
}
