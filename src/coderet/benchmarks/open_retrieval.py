"""Open retrieval: the questions of one benchmark searched in any of CodeRAG-Bench's five sources.

One dataset a source, called after it. Where a document of a source is known to answer a question, it is judged so:
HumanEval's and MBPP's own solutions among the programming solutions, by their text, the gold of ODEX and DS-1000 in
library documentation, by its title. Anywhere else there is no judgement, and the run is for a generator: if that is so
in all the sources asked for, the kind is `open-unjudged`, which has no metrics. The question's own solution is withheld
from a generator's context; the paper left it in.

The benchmark's problems are those of every dataset, so that each source, and the mixture, can be a generator's context.

`mixed: true` adds the dataset `mixed`, the paper's "All": its documents are those of all sources, with ids such as
`stackoverflow-posts/17`, its run is put together from theirs (`retrievers/mixing.py`), and it is judged wherever a
source is. `chunking` cuts the documents of every source before they are searched; of a document that is gold, or is
withheld, every chunk then is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.compute as pc

from coderet.benchmarks import ds1000, humaneval, livecodebench, mbpp, odex, open_sources
from coderet.corpora import chunking as chunks
from coderet.corpora.chunking import Chunker
from coderet.corpora.released import json_lines
from coderet.records import Benchmark, DataError, Draft, Released, qrels_table, queries_table
from coderet.registry import nearest

MIXED = "mixed"
_DOCUMENTATION = ("library-documentation", "library-documentation-devdocs", "library-documentation-devdocs-pages")


@dataclass(frozen=True)
class Questions:
    """texts by query id; gold: what answers each query, by the field of a document that tells it, in some sources.

    own: whether gold is the query's own solution, to be kept from a generator. problems: what a generator is asked, if
    anything, and answering how.
    """

    texts: Mapping[str, str]
    gold: Mapping[str, Sequence[str]]
    field: Literal["title", "text"]
    sources: tuple[str, ...]
    own: bool
    problems: pa.Table | None = None
    answering: str = ""


def judged(
    folder: Path,
    *,
    queries: str,
    corpora: Sequence[str],
    chunking: Mapping[str, Any] | None = None,
    mixed: bool = False,
) -> Iterator[Draft]:
    """One dataset for each of corpora, names of `open_sources.SOURCES`; queries names one of QUESTIONS.

    chunking: kind and settings of a chunker (`coderet.corpora.chunking`). mixed: whether the mixture is one more.
    """
    return _collect(folder, queries, corpora, chunking, mixed, True)


def unjudged(
    folder: Path,
    *,
    queries: str,
    corpora: Sequence[str],
    chunking: Mapping[str, Any] | None = None,
    mixed: bool = False,
) -> Iterator[Draft]:
    """The same where no source holds gold."""
    return _collect(folder, queries, corpora, chunking, mixed, False)


def files(*, queries: str, corpora: Sequence[str], **_: Any) -> tuple[Released, ...]:
    """The files of the questions and of the sources."""
    sources = [open_sources.source(name) for name in corpora]
    return (*_asked(queries).files, *(file for source in sources for file in source.files))


def _collect(
    folder: Path,
    queries: str,
    corpora: Sequence[str],
    chunking: Mapping[str, Any] | None,
    mixed: bool,
    judged: bool,
) -> Iterator[Draft]:
    if not corpora or len(set(corpora)) < len(corpora):
        raise DataError(
            f"corpora is {list(corpora)}; wanted one or several of {', '.join(open_sources.SOURCES)}, each once"
        )
    if mixed and len(corpora) < 2:
        raise DataError(f"mixed is true and corpora {list(corpora)}; wanted two or more to mix")
    sources = [open_sources.source(name) for name in corpora]
    asked = _asked(queries).read(folder)
    drafts = list(_drafts(folder, asked, sources, None if chunking is None else chunks.chunker(chunking)))
    if judged != any(draft.judged for draft in drafts):
        raise DataError(
            f"{'none' if judged else 'one'} of {', '.join(corpora)} has a document that is known to answer a question "
            f"of {queries}; take the kind {'open-unjudged' if judged else 'open'}"
        )
    yield from drafts
    if mixed:
        yield _mixture(drafts)


def _asked(queries: str) -> "Asked":
    if queries not in QUESTIONS:
        raise DataError(f"queries is {queries!r}; known: {', '.join(QUESTIONS)}.{nearest(queries, QUESTIONS)}")
    return QUESTIONS[queries]


def _drafts(
    folder: Path, asked: Questions, sources: Sequence[open_sources.Source], chunker: Chunker | None
) -> Iterator[Draft]:
    for source in sources:
        found = _found(asked, source.batches(folder), chunker) if source.name in asked.sources else {}
        gold = {
            query: [each for answer in asked.gold.get(query, ()) for each in found.get(answer, ())]
            for query in asked.texts
        }
        judged = [(query, document) for query, documents in gold.items() for document in documents]
        yield Draft(
            source.name,
            source.batches(folder, chunker),
            queries_table(
                list(asked.texts), list(asked.texts.values()), withheld=list(gold.values()) if asked.own else None
            ),
            qrels_table([query for query, _ in judged], [document for _, document in judged]),
            judged=bool(judged),
            problems=asked.problems,
            answering=asked.answering,
        )


def _found(asked: Questions, batches: Iterator[pa.RecordBatch], chunker: Chunker | None) -> dict[str, list[str]]:
    """The id of the first document that has each answer in the field that tells it, or the ids of its chunks."""
    answers = pa.array({each for answers in asked.gold.values() for each in answers}, pa.large_string())
    found: dict[str, list[str]] = {}
    for batch in batches:
        hits = batch.filter(pc.is_in(batch[asked.field], value_set=answers))
        for row, answer in enumerate(hits[asked.field].to_pylist()):
            if answer not in found:
                document = [hits.slice(row, 1)]
                parts = document if chunker is None else chunks.chunks(document, chunker)
                found[answer] = [each for part in parts for each in part["id"].to_pylist()]
    return found


def _mixture(drafts: Sequence[Draft]) -> Draft:
    """The dataset of all sources together: what is judged or withheld in one of them is so here."""
    first = drafts[0].queries
    withheld: list[list[str]] = [[] for _ in range(len(first))]
    for draft in drafts:
        for ids, own in zip(withheld, draft.queries["withheld"].to_pylist(), strict=True):
            ids += [f"{draft.name}/{each}" for each in own]
    judged = [
        (row["query_id"], f"{draft.name}/{row['document_id']}") for draft in drafts for row in draft.qrels.to_pylist()
    ]
    return Draft(
        MIXED,
        (),
        queries_table(first["id"].combine_chunks(), first["text"].combine_chunks(), withheld=withheld),
        qrels_table([query for query, _ in judged], [document for _, document in judged]),
        judged=bool(judged),
        mixed_of=tuple(draft.name for draft in drafts),
        problems=drafts[0].problems,
        answering=drafts[0].answering,
    )


def _solved(draft: Draft, answering: str) -> Questions:
    """The questions of a draft whose gold is a solution that it brings itself."""
    texts: dict[str, str] = {}
    for batch in cast(Iterable[pa.RecordBatch], draft.documents):
        texts |= zip(batch["id"].to_pylist(), batch["text"].to_pylist(), strict=True)
    gold = {row["query_id"]: [texts[row["document_id"]]] for row in draft.qrels.to_pylist()}
    sources = ("programming-solutions",)
    return Questions(_texts(draft), gold, "text", sources, own=True, problems=draft.problems, answering=answering)


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


def _livecodebench(name: str) -> Callable[[Path], Questions]:
    return lambda folder: _unanswered(next(livecodebench.BENCHMARKS[name].collect(folder)))


def _of(record: Benchmark) -> Callable[[Path], Questions]:
    return lambda folder: _solved(next(record.collect(folder)), record.answering)


@dataclass(frozen=True)
class Asked:
    """files: where the questions are read from, and how."""

    files: tuple[Released, ...]
    read: Callable[[Path], Questions]


QUESTIONS: Mapping[str, Asked] = {
    "humaneval": Asked((humaneval.RELEASED,), _of(humaneval.BENCHMARKS["humaneval"])),
    "mbpp": Asked((mbpp.FILE,), _of(mbpp.BENCHMARKS["mbpp"])),
    "ds1000": Asked((ds1000.FILE,), lambda folder: _documented(folder, ds1000.FILE.name, "prompt", ds1000.every_task)),
    "odex": Asked((odex.FILE,), lambda folder: _documented(folder, odex.FILE.name, "intent", odex.every_task)),
    "livecodebench": Asked((livecodebench.OFFICIAL,), _livecodebench("livecodebench")),
    "livecodebench-873": Asked((livecodebench.GIVEN,), _livecodebench("livecodebench-873")),
}


def _benchmark(name: str, collect: Callable[..., Iterator[Draft]], metrics: tuple[str, ...]) -> Benchmark:
    return Benchmark(
        name=name,
        collect=collect,
        metrics=metrics,
        mean="datasets",
        licence="of the benchmark asked and of each source",
        source="the questions of one benchmark; CodeRAG-Bench's five sources",
        chosen_files=files,
        choices={
            "judgements": "the benchmark's own gold, where a source holds it; if that is cut, each of its chunks",
            "own solution": "withheld from a context",
            "mixture": "the first hits of all sources in the order listed, then the second ones; in no mean",
        },
        queries="those of the benchmark that queries names",
        documents="1,138 solutions; 79,400 tutorials; 34,003 of documentation; 23.5 million posts; 1.7 million files",
        defects=(
            "The paper leaves a question's own solution in the context, hence 97.6 for HumanEval: here it is withheld.",
            "The paper gives no order for its mixture, the first document of each source: here it is the one listed.",
        ),
    )


BENCHMARKS = {
    "open": _benchmark("open", judged, ("ndcg@10", "mrr", "recall@10", "hit@1")),
    "open-unjudged": _benchmark("open-unjudged", unjudged, ()),
}
