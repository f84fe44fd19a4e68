"""Open retrieval: the questions of one benchmark searched in any of CodeRAG-Bench's five sources.

One dataset a source, called after it. Where a document of a source is known to answer a question, it is judged so:
HumanEval's and MBPP's own solutions among the programming solutions, by their text, the gold of ODEX and DS-1000 in
library documentation, by its title. Anywhere else there is no judgement, and the run is for a generator: if that is so
in all the sources asked for, the kind is `open-unjudged`, which has no metrics. The question's own solution is withheld
from a generator's context; the paper left it in.

Missing: the paper's mixture, the first document of each source. Its runs can be put together from those of the sources.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import pyarrow as pa
import pyarrow.compute as pc

from coderet.benchmarks import ds1000, humaneval, livecodebench, mbpp, odex, open_sources
from coderet.corpora.released import json_lines
from coderet.records import Benchmark, DataError, Draft, qrels_table, queries_table
from coderet.registry import nearest

_DOCUMENTATION = ("library-documentation", "library-documentation-devdocs", "library-documentation-devdocs-pages")


@dataclass(frozen=True)
class Questions:
    """texts by query id; gold: what answers each query, by the field of a document that tells it, in some sources.

    own: whether gold is the query's own solution, to be kept from a generator.
    """

    texts: Mapping[str, str]
    gold: Mapping[str, Sequence[str]]
    field: Literal["title", "text"]
    sources: tuple[str, ...]
    own: bool


def judged(folder: Path, *, queries: str, corpora: Sequence[str]) -> Iterator[Draft]:
    """One dataset for each of corpora, names of `open_sources.SOURCES`; queries names one of QUESTIONS."""
    return _collect(folder, queries, corpora, True)


def unjudged(folder: Path, *, queries: str, corpora: Sequence[str]) -> Iterator[Draft]:
    """The same where no source holds gold."""
    return _collect(folder, queries, corpora, False)


def _collect(folder: Path, queries: str, corpora: Sequence[str], judged: bool) -> Iterator[Draft]:
    if queries not in QUESTIONS:
        raise DataError(f"queries is {queries!r}; known: {', '.join(QUESTIONS)}.{nearest(queries, QUESTIONS)}")
    if not corpora or len(set(corpora)) < len(corpora):
        raise DataError(
            f"corpora is {list(corpora)}; wanted one or several of {', '.join(open_sources.SOURCES)}, each once"
        )
    sources = [open_sources.source(name) for name in corpora]
    asked = QUESTIONS[queries](folder)
    drafts = list(_drafts(folder, asked, sources))
    if judged != any(draft.judged for draft in drafts):
        raise DataError(
            f"{'none' if judged else 'one'} of {', '.join(corpora)} has a document that is known to answer a question "
            f"of {queries}; take the kind {'open-unjudged' if judged else 'open'}"
        )
    yield from drafts


def _drafts(folder: Path, asked: Questions, sources: Sequence[open_sources.Source]) -> Iterator[Draft]:
    for source in sources:
        found = _found(asked, source.batches(folder)) if source.name in asked.sources else {}
        judged = [
            (query, found[answer]) for query, answers in asked.gold.items() for answer in answers if answer in found
        ]
        own = dict.fromkeys(asked.texts, ()) | ({query: (document,) for query, document in judged} if asked.own else {})
        yield Draft(
            source.name,
            source.batches(folder),
            queries_table(list(asked.texts), list(asked.texts.values()), withheld=own.values()),
            qrels_table([query for query, _ in judged], [document for _, document in judged]),
            judged=bool(judged),
        )


def _found(asked: Questions, batches: Iterator[pa.RecordBatch]) -> dict[str, str]:
    """The id of the first document that has each answer in the field that tells it."""
    answers = pa.array({each for answers in asked.gold.values() for each in answers}, pa.large_string())
    found: dict[str, str] = {}
    for batch in batches:
        hits = batch.filter(pc.is_in(batch[asked.field], value_set=answers))
        for answer, document in zip(hits[asked.field].to_pylist(), hits["id"].to_pylist(), strict=True):
            found.setdefault(answer, document)
    return found


def _solved(draft: Draft) -> Questions:
    """The questions of a draft whose gold is a solution that it brings itself."""
    texts: dict[str, str] = {}
    for batch in cast(Iterable[pa.RecordBatch], draft.documents):
        texts |= zip(batch["id"].to_pylist(), batch["text"].to_pylist(), strict=True)
    gold = {row["query_id"]: [texts[row["document_id"]]] for row in draft.qrels.to_pylist()}
    return Questions(_texts(draft), gold, "text", ("programming-solutions",), own=True)


def _texts(draft: Draft) -> dict[str, str]:
    return dict(zip(draft.queries["id"].to_pylist(), draft.queries["text"].to_pylist(), strict=True))


def _documented(
    folder: Path, name: str, query: str, ids: Callable[[Sequence[Mapping[str, object]]], list[str]]
) -> Questions:
    """The questions of a file of CodeRAG-Bench that names documentation by its title."""
    tasks = list(json_lines(folder, name))
    names = ids(tasks)
    gold = {
        own: list(dict.fromkeys(each["title"] for each in task["docs"])) for own, task in zip(names, tasks, strict=True)
    }
    texts = {own: task[query] for own, task in zip(names, tasks, strict=True)}
    return Questions(texts, gold, "title", _DOCUMENTATION, own=False)


def _unanswered(draft: Draft) -> Questions:
    return Questions(_texts(draft), {}, "text", (), own=False)


QUESTIONS: Mapping[str, Callable[[Path], Questions]] = {
    "humaneval": lambda folder: _solved(next(humaneval.collect(folder))),
    "mbpp": lambda folder: _solved(next(mbpp.BENCHMARKS["mbpp"].collect(folder))),
    "ds1000": lambda folder: _documented(folder, ds1000.FILE.name, "prompt", ds1000.every_task),
    "odex": lambda folder: _documented(folder, odex.FILE.name, "intent", odex.every_task),
    "livecodebench": lambda folder: _unanswered(next(livecodebench.BENCHMARKS["livecodebench"].collect(folder))),
    "livecodebench-873": lambda folder: _unanswered(
        next(livecodebench.BENCHMARKS["livecodebench-873"].collect(folder))
    ),
}


def _benchmark(name: str, collect: Callable[..., Iterator[Draft]], metrics: tuple[str, ...]) -> Benchmark:
    return Benchmark(
        name=name,
        collect=collect,
        metrics=metrics,
        mean="datasets",
        licence="of the benchmark asked and of each source",
        source="the questions of one benchmark; CodeRAG-Bench's five sources",
        choices={
            "judgements": "the benchmark's own gold, where a source holds it",
            "own solution": "withheld from a context",
        },
        queries="those of the benchmark that queries names",
        documents="1,138 solutions; 79,400 tutorials; 34,003 of documentation; 23.5 million posts; 1.7 million files",
        defects=(
            "The paper leaves a question's own solution in the context, hence 97.6 for HumanEval: here it is withheld.",
            "The mixture, the first document of each source, is not made here.",
        ),
    )


BENCHMARKS = {
    "open": _benchmark("open", judged, ("ndcg@10", "mrr", "recall@10", "hit@1")),
    "open-unjudged": _benchmark("open-unjudged", unjudged, ()),
}
