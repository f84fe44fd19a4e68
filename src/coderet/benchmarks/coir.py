"""CoIR, all ten tasks (Li et al., 2024, arXiv 2407.02883), by its own tool's choices and by mteb's.

Each task is two benchmarks made from the same rows: `coir-<task>` gives the number of the tool (package coir-eval 0.7),
`mteb-<task>` that of mteb's task. What the two decide differently is said by `Choices` and written into every result.
The texts are made here, so that any retriever reads what the protocol reads, whatever its text_fields: a document's
title is empty in both, for it is ignored in one and part of the text in the other.

Common to both: the queries are those that the test split of the judgements names; the corpus is all partitions, so that
documents of train and valid are distractors; the two CodeSearchNet tasks are a dataset a language, and their figure is
the plain mean of the six. Prefixes, pooling and lengths belong to the retriever: the tool's own wrapper pools by the
mean, reads 512 tokens and puts `query: ` and `passage: ` in front for every model.

Two families of data sets of the hub hold the same rows and both are read: `<name>` with configs for judgements, queries
and corpus, which mteb pins, and the pair `<name>-queries-corpus` and `<name>-qrels`, which the tool reads, at no
revision.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from coderet.corpora import hub
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

HEADLINE = "ndcg@10"
TIES = tuple(f"{HEADLINE}-{reading}" for reading in ("expected", "best", "worst"))  # over the orders of equal scores
DEEPEST = 100  # of the cutoffs that are taken unless params ask for more: runs of 1,000 hits are ten times as large
_JUDGED = "test"  # the split of the judgements
_TOLD = 8  # names in a message


@dataclass(frozen=True)
class Choices:
    """What a protocol decides. titled: title, a space and the text are a document, stripped; if not, the text alone.

    own_id: whether a document whose id is the query's may be a hit. measures are taken at each of the cutoffs.
    """

    name: str
    family: str  # the first part of its benchmarks' names
    titled: bool
    own_id: bool
    measures: tuple[str, ...]
    cutoffs: tuple[int, ...]

    @property
    def told(self) -> dict[str, str]:
        """The choices in words, for the results."""
        return {
            "protocol": self.name,
            "document text": "title, one space, text; stripped" if self.titled else "text as released, title ignored",
            "own-id documents": "kept" if self.own_id else "removed",
            "cutoffs": f"{_listed(self.cutoffs)}; up to {DEEPEST} unless `cutoffs` in params says more",
            "queries": "those judged in the test split",
            "corpus": "all partitions",
            "languages": "plain mean of the datasets",
            "equal scores": "descending document id, scores in single precision",
        }

    def metrics(self, cutoffs: Sequence[int] = ()) -> tuple[str, ...]:
        """The names of the metrics at cutoffs, by default its own up to DEEPEST; the headline and its ties first."""
        taken = cutoffs or [each for each in self.cutoffs if each <= DEEPEST]
        return tuple(dict.fromkeys([HEADLINE, *TIES, *(f"{name}@{k}" for name in self.measures for k in taken)]))


COIR_2024 = Choices(
    name="coir-2024",
    family="coir",
    titled=False,
    own_id=False,
    measures=("ndcg", "map", "recall", "precision"),
    cutoffs=(1, 3, 5, 10, 100, 1000),
)
MTEB = Choices(
    name="mteb",
    family="mteb",
    titled=True,
    own_id=True,
    measures=("ndcg", "map", "recall", "precision", "mrr", "hit"),
    cutoffs=(1, 3, 5, 10, 20, 100, 1000),
)
PROTOCOLS = {each.name: each for each in (COIR_2024, MTEB)}


class Size(NamedTuple):
    """How many queries and documents a dataset must have."""

    queries: int
    documents: int


@dataclass(frozen=True)
class Task:
    """A task of CoIR. repository: its data set with configs; revision: the commit that mteb reads.

    sizes: by dataset; one called like the task, or several called like languages. mteb_repository: where mteb reads it,
    if from a copy of its own.
    """

    name: str
    mteb_name: str
    repository: str
    revision: str
    sizes: Mapping[str, Size]
    query: str
    document: str
    licence: str = "mit, as its mteb card says"
    mteb_repository: str = ""
    defects: tuple[str, ...] = field(default=())

    @property
    def languages(self) -> tuple[str, ...]:
        """Empty where the task is not told by language."""
        return () if list(self.sizes) == [self.name] else tuple(self.sizes)

    @property
    def mteb_place(self) -> str:
        return self.mteb_repository or self.repository


def collect(task: Task, choices: Choices, folder: Path, *, cutoffs: Sequence[int] = ()) -> Iterator[Draft]:
    """A dataset, or one a language. cutoffs: others than the protocol's up to 100."""
    for name, size in task.sizes.items():
        asked, searched, judged = _places(folder, task, choices, name if task.languages else "")
        qrels = _qrels(judged)
        yield Draft(
            name,
            _documents(searched, choices.titled),
            _queries(asked, pc.unique(qrels["query_id"]), choices.own_id),
            qrels,
            metrics=choices.metrics(cutoffs) if cutoffs else (),
            documents_expected=size.documents,
            queries_expected=size.queries,
        )


# Where the rows are


class _Place(NamedTuple):
    """A split of a config of a data set in a folder."""

    folder: Path
    config: str
    split: str

    @property
    def columns(self) -> list[str]:
        return hub.columns(*self)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return hub.batches(*self, columns)


def _places(folder: Path, task: Task, choices: Choices, language: str) -> tuple[_Place, _Place, _Place]:
    """Where queries, corpus and judgements are, in either family; DataError if neither is whole."""
    repositories = [task.repository, task.mteb_place]
    for repository in dict.fromkeys(repositories[::-1] if choices is MTEB else repositories):
        own = _within(folder, repository)
        if own is not None:
            before = f"{language}-" if language else ""
            judged = f"{before}qrels" if before or hub.DEFAULT not in hub.configs(own) else hub.DEFAULT
            return _in_config(own, f"{before}queries"), _in_config(own, f"{before}corpus"), _Place(own, judged, _JUDGED)
    stem = f"{task.repository}-{language}" if language else task.repository
    texts, judgements = (_within(folder, f"{stem}-{part}") for part in ("queries-corpus", "qrels"))
    if texts is None or judgements is None:
        there = sorted(each.relative_to(folder).as_posix() for each in folder.glob("*")) if folder.is_dir() else []
        raise DataError(
            f"{folder} lacks {task.name} of CoIR: wanted a folder {task.mteb_place} (a data set with configs), or both "
            f"{stem}-queries-corpus and {stem}-qrels; there is: {_listed(there[:_TOLD]) or 'nothing'}"
        )
    return (
        _Place(texts, hub.DEFAULT, "queries"),
        _Place(texts, hub.DEFAULT, "corpus"),
        _Place(judgements, hub.DEFAULT, _JUDGED),
    )


def _within(folder: Path, repository: str) -> Path | None:
    """The folder of a repository, with or without that of its owner."""
    places = (folder / repository, folder / repository.rpartition("/")[2])
    return next((each for each in places if each.is_dir()), None)


def _in_config(folder: Path, config: str) -> _Place:
    """The split of texts, which is called after the config, or `test` in a copy."""
    return _Place(folder, config, hub.split_or_only(folder, config, _JUDGED))


# What they are


def _documents(place: _Place, titled: bool) -> Iterator[pa.RecordBatch]:
    there = place.columns
    id_name = "_id" if "_id" in there else "id"
    names = [id_name, "text", *(["title"] if titled and "title" in there else [])]
    for batch in place.batches(names):
        ids, texts = _strings(batch, id_name), _texts(batch, id_name, place)
        if titled:
            titles = _strings(batch, "title") if "title" in names else pa.nulls(len(texts), pa.large_string())
            texts = _joined(titles, texts)
        yield documents_batch(ids, pa.repeat(pa.scalar("", pa.large_string()), len(texts)), texts)


def _joined(titles: pa.Array, texts: pa.Array) -> pa.Array:
    """Title, a space and the text, the text alone where the title is empty; stripped in either case, as mteb does."""
    both = pc.binary_join_element_wise(pc.fill_null(titles, ""), texts, pa.scalar(" ", pa.large_string()))
    return pc.utf8_trim_whitespace(both)


def _queries(place: _Place, judged: pa.Array, own_id: bool) -> pa.Table:
    id_name = "_id" if "_id" in place.columns else "id"
    ids, texts = [pa.array([], pa.large_string())], [pa.array([], pa.large_string())]
    for batch in place.batches([id_name, "text"]):
        asked = batch.filter(pc.is_in(_strings(batch, id_name), value_set=judged))
        ids.append(_strings(asked, id_name))
        texts.append(_texts(asked, id_name, place))
    every = pa.concat_arrays(ids)
    return queries_table(every, pa.concat_arrays(texts), None if own_id else [[each] for each in every.to_pylist()])


def _qrels(place: _Place) -> pa.Table:
    """The judgements of a split. The two families write the names of the columns with - and with _."""
    dash = "-" if "query-id" in place.columns else "_"
    names = [f"query{dash}id", f"corpus{dash}id", "score"]
    parts = [
        qrels_table(_strings(batch, names[0]), _strings(batch, names[1]), hub.column(batch, "score", pa.float32()))
        for batch in place.batches(names)
    ]
    return pa.concat_tables(parts).combine_chunks() if parts else qrels_table([], [])


def _strings(batch: pa.RecordBatch, column: str) -> pa.Array:
    return hub.column(batch, column, pa.large_string())


def _texts(batch: pa.RecordBatch, id_name: str, place: _Place) -> pa.Array:
    texts = _strings(batch, "text")
    if texts.null_count:
        first = _strings(batch, id_name).filter(pc.is_null(texts))[0].as_py()
        raise DataError(
            f"{place.folder}, config {place.config}: {texts.null_count} rows of a batch have no text, {first!r} among "
            "them; give them one, if only the empty one"
        )
    return texts


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(str, names))


# The tasks, in the order of the paper's table

_SIX = ("python", "javascript", "go", "ruby", "java", "php")
_CSN_QUERIES = (14_918, 3_291, 8_122, 1_261, 10_955, 14_014)
_CSN_DOCUMENTS = (280_310, 64_854, 182_440, 27_570, 180_866, 267_725)
_CCR_DOCUMENTS = (280_652, 65_201, 182_735, 27_588, 181_061, 268_237)


def _one(name: str, queries: int, documents: int) -> dict[str, Size]:
    return {name: Size(queries, documents)}


def _six(documents: Sequence[int]) -> dict[str, Size]:
    return {name: Size(*size) for name, *size in zip(_SIX, _CSN_QUERIES, documents, strict=True)}


_FOLDED = "the -folded figures take equal documents as one"

TASKS = {
    task.name: task
    for task in (
        Task(
            "apps",
            "AppsRetrieval",
            "CoIR-Retrieval/apps",
            "f22508f96b7a36c2415181ed8bb76f76e04ae2d5",
            _one("apps", 3_765, 8_765),
            query="problem statements",
            document="solutions in Python",
        ),
        Task(
            "cosqa",
            "CosQA",
            "CoIR-Retrieval/cosqa",
            "bc5efb7e9d437246ce393ed19d772e08e4a79535",
            _one("cosqa", 500, 20_604),
            query="web queries",
            document="Python functions, 6,267 different ones",
            defects=(
                f"Two of three documents are copies of others, of which one is judged; {_FOLDED}.",
                "A grading by a language model found 31 % of the queries of low quality; nothing is left out here.",
            ),
        ),
        Task(
            "synthetic-text2sql",
            "SyntheticText2SQL",
            "CoIR-Retrieval/synthetic-text2sql",
            "686b87296c3a0191b5d9415a00526c62db9fce09",
            _one("synthetic-text2sql", 5_851, 105_851),
            query="questions",
            document="SQL statements",
            defects=(
                "94 % of the answers stand in the train part of the corpus too, under an id that wins the tie: a "
                "perfect encoder scores 65.3 where equal texts get equal vectors, 82.7 where rounding decides; "
                f"{_FOLDED}.",
            ),
        ),
        Task(
            "codesearchnet",
            "COIRCodeSearchNetRetrieval",
            "CoIR-Retrieval/CodeSearchNet",
            "4adc7bc41202b5c13543c9c886a25f340634dab3",
            _six(_CSN_DOCUMENTS),
            query="functions without their docstrings",
            document="docstrings",
            defects=(
                "The direction is code to docstring; mteb's CodeSearchNetRetrieval is the other one and another set.",
                "Comments other than the docstring stay in the queries and now and then equal the answer.",
            ),
        ),
        Task(
            "codesearchnet-ccr",
            "CodeSearchNetCCRetrieval",
            "CoIR-Retrieval/CodeSearchNet-ccr",
            "6e1effa2c03723c5fde48ee912b5ee08d4f211e8",
            _six(_CCR_DOCUMENTS),
            query="first parts of functions",
            document="rests of functions",
            defects=(f"1 % of the documents are copies of others; {_FOLDED}.",),
        ),
        Task(
            "codetrans-contest",
            "CodeTransOceanContest",
            "CoIR-Retrieval/codetrans-contest",
            "20da4eb20a4b17300c0986ee148c90867a7f2a4d",
            _one("codetrans-contest", 221, 1_008),
            query="Python programs",
            document="C++ programs",
            licence="apache-2.0, as its mteb card says",
            defects=("The paper's table says 446 test queries; the data have 221, and these are expected.",),
        ),
        Task(
            "codetrans-dl",
            "CodeTransOceanDL",
            "CoIR-Retrieval/codetrans-dl",
            "281562cb8a1265ab5c0824bfa6ddcd9b0a15618f",
            _one("codetrans-dl", 180, 816),
            query="deep-learning programs, 50 different ones",
            document="programs in other frameworks, 266 different ones",
            licence="apache-2.0, as its mteb card says",
            defects=(
                "180 queries are 50 texts, and copies of one query have different single answers, so that no retriever "
                f"can be right for all; the report counts them, and {_FOLDED}.",
            ),
        ),
        Task(
            "stackoverflow-qa",
            "StackOverflowQA",
            "CoIR-Retrieval/stackoverflow-qa",
            "7b46f5ebd2365278c1bb025986dda2fee893bbf5",
            _one("stackoverflow-qa", 1_994, 19_931),
            query="questions with code",
            document="answers",
            mteb_repository="mteb/StackOverflowQA",
            defects=(
                "mteb reads a copy under its own name since a while; most published results are of CoIR's own upload.",
            ),
        ),
        Task(
            "codefeedback-st",
            "CodeFeedbackST",
            "CoIR-Retrieval/codefeedback-st",
            "d213819e87aab9010628da8b73ab4eb337c89340",
            _one("codefeedback-st", 31_306, 156_526),
            query="questions, 30,749 different ones",
            document="answers",
            defects=(f"8 % of the documents are copies of others and one is empty; {_FOLDED}.",),
        ),
        Task(
            "codefeedback-mt",
            "CodeFeedbackMT",
            "CoIR-Retrieval/codefeedback-mt",
            "b0f12fa0c0dd67f59c95a5c33d02aeeb4c398c5f",
            _one("codefeedback-mt", 13_277, 66_383),
            query="dialogues so far",
            document="last answers",
            defects=(
                "Queries have 4,400 characters on average: a model that reads 512 tokens is measured by what it cuts; "
                "the report counts what encoders cut of documents.",
            ),
        ),
    )
}


def benchmarks(tasks: Mapping[str, Task] = TASKS) -> dict[str, Benchmark]:
    """Both benchmarks of each task, by name."""
    return {
        (name := f"{choices.family}-{task.name}"): _benchmark(name, task, choices)
        for choices in PROTOCOLS.values()
        for task in tasks.values()
    }


def _benchmark(name: str, task: Task, choices: Choices) -> Benchmark:
    def collect_task(folder: Path, *, cutoffs: Sequence[int] = ()) -> Iterator[Draft]:
        return collect(task, choices, folder, cutoffs=cutoffs)

    queries, documents = (sum(counts) for counts in zip(*task.sizes.values(), strict=True))
    by_language = f" in {len(task.languages)} languages" if task.languages else ""
    mteb = choices is MTEB
    return Benchmark(
        name=name,
        collect=collect_task,
        metrics=choices.metrics(),
        mean="datasets",
        licence=task.licence,
        source=f"the data set {task.mteb_place if mteb else task.repository} of the Hugging Face hub",
        files=(_released(task, task.mteb_place if mteb else task.repository),),
        choices={"task": task.name, **({"mteb task": task.mteb_name} if mteb else {}), **choices.told},
        queries=f"{queries:,} {task.query}{by_language}",
        documents=f"{documents:,} {task.document}{by_language}",
        defects=task.defects,
        published=Published("coir", f"{choices.name}/{task.name}", _MTEB_DIFFERS if mteb else _TOOL_DIFFERS),
    )


_TOOL_DIFFERS = (
    "the page names no revision of data or models; its models pool by the mean, read 512 tokens and have the prefixes "
    "of the tool's wrapper, whatever their own are"
)
_MTEB_DIFFERS = (
    "results are of many versions of mteb, in which the effect of titles changed, and of models' own prompts"
)


def _released(task: Task, repository: str) -> Released:
    """A data set with configs; its commit where mteb pins one of it."""
    pair = f"{task.repository}-{'<language>-' if task.languages else ''}"
    other = (
        f"the pair {pair}queries-corpus and {pair}qrels, which the tool reads at no revision, is read too: give both "
        "as `source` in params, as hub: or file: lines"
    )
    if repository == task.mteb_place:
        return Released(f"{repository}/", None, f"hub:datasets/{repository}@{task.revision}", how=other)
    how = f"the data set {repository} of the hub; no revision of it is pinned, by the tool or by mteb; {other}"
    return Released(f"{repository}/", None, how=how)


BENCHMARKS = benchmarks()
