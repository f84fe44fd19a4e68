"""The CodeSearchNet Challenge: 99 queries of people, functions judged from 0 to 3 (Husain et al., 2019, 1909.09436).

The grade of a query and a URL is the mean of its annotations, a fraction; language and query are compared without
regard to case, URLs exactly. Every language has all 99 queries, those nobody judged a function for included: the
metrics leave them out and count them. A document's id is its URL. Two families of entries share this:

- `csn-challenge-<language>`: the official search corpus, all functions of the language after deduplication. Several
  functions of JavaScript and PHP have one URL; as predictions name URLs, the first of them is the document;
- `csn-judged-<language>`: the judged functions alone, as far as their code is to be had; on request among all other
  functions of the files that they come from.

An annotated URL without code is a document all the same, of empty text, that no query may have as a hit (it stands
among the excluded ones): so qrels and ideal ranking are whole, as in the official evaluation, and no retriever is paid
for an empty text. The report counts these as empty documents.
"""

import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coderet.corpora import challenge, codesearchnet, released, store, syntax
from coderet.metrics.challenge import relevances
from coderet.records import (
    DOCUMENTS,
    Benchmark,
    DataError,
    Draft,
    Published,
    Released,
    documents_batch,
    qrels_table,
    queries_table,
)

FOLDER = "codesearchnet_challenge"
QUERIES, ANNOTATIONS = f"{FOLDER}/queries.csv", f"{FOLDER}/annotationStore.csv"
FUNCTIONS = f"{FOLDER}/annotated_functions.jsonl"
CORPUS = "codesearchnet"
QUERY_COUNT = 99


# Queries and judgements


def queries(folder: Path, excluded: Collection[str] = ()) -> pa.Table:
    """The 99 queries; the id of each is its row number in the file, "01" to "99"."""
    texts = [row["query"] for row in released.csv_records(folder, QUERIES, ("query",))]
    ids = [_query_id(row) for row in range(len(texts))]
    return queries_table(ids, texts, excluded=[sorted(excluded)] * len(texts))


def judgements(folder: Path, language: str) -> pa.Table:
    """The qrels of one language: the mean grade of each query and URL."""
    texts = [row["query"].lower() for row in released.csv_records(folder, QUERIES, ("query",))]
    ids = {text: _query_id(row) for row, text in enumerate(texts)}
    grades = relevances(challenge.read_annotations(released.located(folder, ANNOTATIONS)))
    unknown = sorted(set(grades["query"].to_pylist()) - set(texts))
    if unknown:
        raise DataError(
            f"{folder / ANNOTATIONS} judges {unknown[0]!r}, which is no query of {QUERIES}; they are of two releases"
        )
    own = grades.filter(pc.equal(grades["language"], language))
    return qrels_table(
        [ids[query] for query in own["query"].to_pylist()], own["url"].to_pylist(), grades=own["relevance"].to_pylist()
    )


def _query_id(row: int) -> str:
    return f"{row + 1:02}"


# The judged pool


def judged_pool(folder: Path, language: str, counts: "Judged", distractors: bool) -> Iterator[Draft]:
    """The judged functions of one language as a corpus, among those of the same files if distractors."""
    qrels = judgements(folder, language)
    urls = dict.fromkeys(qrels["document_id"].to_pylist())
    judged = [each for each in released.json_lines(folder, FUNCTIONS) if _of_pool(each, folder)["language"] == language]
    unknown = [each["url"] for each in judged if each["url"] not in urls]
    if unknown:
        raise DataError(f"{folder / FUNCTIONS} has {unknown[0]}, which {ANNOTATIONS} does not judge; fetch both again")
    lacking = urls.keys() - {each["url"] for each in judged}
    titles = [_name(each["code"], language) for each in judged]
    pool = documents_batch([each["url"] for each in judged], titles, [each["code"] for each in judged])
    yield Draft(
        language,
        chain([pool, _empty(lacking)], _distractors(folder, language, urls) if distractors else ()),
        queries(folder, lacking),
        qrels,
        documents_expected=counts.judged + distractors * counts.distractors,
        queries_expected=QUERY_COUNT,
    )


def _of_pool(record: dict[str, Any], folder: Path) -> dict[str, Any]:
    fields = dict.fromkeys(("url", "language", "code"), str)
    released.check_fields(record, fields, f"a record of {folder / FUNCTIONS}")
    return record


def _name(code: str, language: str) -> str:
    """The name of the function that code is, empty where it cannot be read alone."""
    functions = syntax.functions(code.encode(), language)
    first = functions[0] if functions else None
    return first.name if first and not first.source.utf8[: first.start].strip() else ""


def _empty(urls: Collection[str]) -> pa.RecordBatch:
    return documents_batch(sorted(urls), [""] * len(urls), [""] * len(urls))


def _distractors(folder: Path, language: str, judged: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """The functions of the same files that overlap the lines of no judged URL, a batch a file."""
    taken: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for url in judged:
        place, _, lines = url.partition("#L")
        first, _, last = lines.partition("-L")
        taken[place].append((int(first), int(last)))
    name = f"{FOLDER}/source_files.{language}.jsonl"
    for file in released.json_lines(folder, name):
        released.check_fields(file, dict.fromkeys(("repo", "sha", "path", "text"), str), f"a record of {folder / name}")
        place = f"https://github.com/{file['repo']}/blob/{file['sha']}/{file['path']}"
        found: dict[str, syntax.Function] = {}
        for each in syntax.functions(file["text"].encode(), language):
            if not any(start <= each.end_line and each.start_line <= end for start, end in taken[place]):
                found.setdefault(f"{place}#L{each.start_line}-L{each.end_line}", each)
        yield documents_batch(found, [each.name for each in found.values()], [each.text for each in found.values()])


# The official search corpus


def official_corpus(folder: Path, language: str, functions: int, tokens: bool) -> Iterator[Draft]:
    """All functions of one language as a corpus, titles their qualified names.

    tokens: a document is the function's tokens joined by a space, as the reference models read it; otherwise its text.
    """
    qrels = judgements(folder, language)
    with tempfile.TemporaryDirectory(prefix="coderet-") as scratch:
        # Reading the pickle takes minutes, and which judged URLs it lacks is known at its end only.
        path = Path(scratch, "documents.arrow")
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, DOCUMENTS) as writer:
            for batch in _definitions(folder / CORPUS, language, functions, tokens):
                writer.write_batch(batch)
        documents = store.read_table(path)
        judged = qrels["document_id"].combine_chunks()
        there = documents["id"].filter(pc.is_in(documents["id"], value_set=judged))
        lacking = set(judged.to_pylist()) - set(there.to_pylist())
        yield Draft(
            language,
            chain(documents.to_batches(), [_empty(lacking)]),
            queries(folder, lacking),
            qrels,
            queries_expected=QUERY_COUNT,
        )


def _definitions(folder: Path, language: str, expected: int, tokens: bool) -> Iterator[pa.RecordBatch]:
    seen = np.empty(0, np.uint64)
    rows = 0
    for batch in codesearchnet.definitions(folder, language):
        rows += len(batch)
        hashes = np.array([_hash(url.as_py()) for url in batch["url"]], np.uint64)
        first = np.zeros(len(hashes), bool)
        first[np.unique(hashes, return_index=True)[1]] = True
        kept = batch.filter(pa.array(first & ~np.isin(hashes, seen)))
        seen = np.union1d(seen, hashes)
        text = pc.binary_join(kept["code_tokens"], pa.scalar(" ", pa.large_string())) if tokens else kept["code"]
        yield pa.RecordBatch.from_arrays([kept["url"], kept["name"], text], schema=DOCUMENTS)
    if rows != expected:
        raise DataError(f"{folder} holds {rows} functions of {language}, expected {expected}; fetch the pickle again")


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


# Records


@dataclass(frozen=True)
class Judged:
    """What the judged pool of a language consists of: URLs, those that lack code, and functions of the same files."""

    judged: int
    lacking: int
    distractors: int
    files: str  # SHA-256 of the source files


JUDGED = {
    "python": Judged(974, 20, 17387, "85f56fd8675328de0160e77e625d252fae5d864ecc25474f1b8bbafcfba7737b"),
    "java": Judged(799, 25, 14187, "e2220b13899724dcf3f7357e0c7de8b3fc5c730a7f990d957a285491250791e7"),
    "javascript": Judged(318, 12, 2597, "e54c530b66c502bbd41e9d5f10859211d8f84bc1be23edf5cb853968bc99b7c0"),
    "ruby": Judged(305, 9, 4368, "221d20326242f93d029b918047e7c6296e90ae248c2cdf79ce55c085131fd93f"),
}
FUNCTION_COUNTS = {
    "go": 726_768,
    "java": 1_569_889,
    "javascript": 1_857_835,
    "php": 977_821,
    "python": 1_156_085,
    "ruby": 164_048,
}
PLACE = "url:https://raw.githubusercontent.com/github/CodeSearchNet/106e827405c968597da938f6b373d30183918869/resources/"
ASKED = (
    Released(QUERIES, "037509c717c2e164721f0fd3ea45cb05f36669551af643f53930a92b76b146cf", f"{PLACE}queries.csv"),
    Released(
        ANNOTATIONS,
        "0340af32b551ceadb74fec147f97642b7fedf3ff039e38fb86baff49ee899846",
        f"{PLACE}annotationStore.csv",
    ),
)
METRICS = ("ndcg-all", "ndcg-within", "ndcg-reranked", "ndcg-exp@10", "judged@10", "judged@100", "mrr", "recall@100")
LICENCE = "MIT (queries, annotations), of each repository (code)"
CHOICES = {
    "grade": "the mean of a pair's annotations",
    "annotated URLs without code": "documents of empty text, in the ideal ranking but never a hit",
}
SOURCE = "queries and annotations of github.com/github/CodeSearchNet"
_COPY = "github.com/sourcegraph-testing/codesearchnet at b75b1a7146d094211039493ef001be80725149a5, files/<sha>_<path>"


def _judged(language: str, counts: Judged) -> Benchmark:
    def collect(folder: Path, *, distractors: bool = False) -> Iterator[Draft]:
        return judged_pool(folder, language, counts, distractors)

    return Benchmark(
        name=f"csn-judged-{language}",
        collect=collect,
        metrics=METRICS,
        licence=LICENCE,
        source=f"{SOURCE}, over the judged functions alone",
        files=(
            *ASKED,
            Released(
                FUNCTIONS,
                "60a6343cd05fd0e289446cf222de9884cc13d84d71cf2828957d9ebbae14d2ef",
                how=f"the annotated functions, cut at the lines of their URLs out of {_COPY}: JSON lines with url, "
                "language, repo, sha, path, start_line, end_line, code",
            ),
            Released(
                f"{FOLDER}/source_files.{language}.jsonl",
                counts.files,
                how=f"the files up to 60 kB that hold an annotated function of {language}, from {_COPY}: JSON lines "
                "with language, repo, sha, path, text",
            ),
        ),
        choices={**CHOICES, "corpus": "the judged functions; with `distractors: true` those of the same files too"},
        queries=str(QUERY_COUNT),
        documents=f"{counts.judged}, or {counts.judged + counts.distractors:,} with distractors",
        defects=(
            f"The code of {counts.lacking} judged functions is not to be had, so the best score is below 1.",
            "The pool is what retrievers of 2019 found for these queries: scores tell how a system orders it.",
        ),
    )


def _challenge(language: str, functions: int) -> Benchmark:
    def collect(folder: Path, *, tokens: bool = False) -> Iterator[Draft]:
        return official_corpus(folder, language, functions, tokens)

    return Benchmark(
        name=f"csn-challenge-{language}",
        collect=collect,
        metrics=METRICS,
        licence=LICENCE,
        source=f"{SOURCE}, over its deduplicated definitions",
        files=(
            *ASKED,
            Released(
                f"{CORPUS}/{language}_dedupe_definitions_v2.pkl",
                None,
                how=f"out of {language}.zip of Zenodo record 7857872 (closed at its first place), by this name",
            ),
        ),
        choices={
            **CHOICES,
            "corpus": "all functions; of several with one URL the first",
            "document": "the function's text; with `tokens: true` its tokens, as the reference models read it",
            "search": "exact, or by the params of the index; the reference's was approximate",
        },
        queries=str(QUERY_COUNT),
        documents=f"{functions:,} functions, fewer where URLs repeat",
        defects=(
            "Nobody judged what the systems of 2019 did not find: ndcg-all counts it as irrelevant, judged@k tells it.",
            "Go has two judged functions a query and Ruby, PHP and JavaScript three: look at the intervals.",
            "Functions of fewer than 10 identifiers that are no keywords were dropped from the corpus.",
        ),
        published=Published(
            "codesearchnet",
            f"challenge-{language}",
            "The paper's systems were searched by an approximate index, which alone moves a score by up to half.",
        ),
    )


BENCHMARKS = {
    **{f"csn-challenge-{language}": _challenge(language, count) for language, count in FUNCTION_COUNTS.items()},
    **{f"csn-judged-{language}": _judged(language, counts) for language, counts in JUDGED.items()},
}
