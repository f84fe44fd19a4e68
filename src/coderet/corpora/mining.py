"""Source files to (query, code) pairs: documented functions, their documentation taken out of the code.

The filters are those of CodeSearchNet (Husain et al., 2019, section 2.1), each a field of `Filters` and each counted in
the `Report`. The query is the first paragraph of the documentation on one line, cut before the first line that starts a
tag (`@param`, `:param x:`) or a doctest; the original also cuts at any `@`, an e-mail address included. Unlike the
original, test and vendored files are told by whole parts of their path, so `latest/` and `contest.py` stay, and special
methods by their own name, so `A.__init__` goes. A name that contains `test` anywhere goes, `latest` included, as there.

A repository is a folder or an archive, read as it is. Chunks of files go to worker processes and come back in order, a
few at a time: the pairs are the same for any number of processes, and memory does not grow with the sources.
"""

import hashlib
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from tqdm import tqdm

from coderet.corpora import archives, syntax
from coderet.corpora.unpacking import TARBALLS, ZIPS, is_archive
from coderet.records import PAIRS, DataError

FILES_A_CHUNK = 100
CHUNKS_A_PROCESS = 3  # waiting or done, so that no worker idles while the pairs of a slow chunk are awaited

SPECIAL_METHODS: dict[str, frozenset[str]] = {
    "java": frozenset(["toString", "hashCode", "equals", "finalize", "notify", "notifyAll", "clone"]),
    "javascript": frozenset(["constructor", "toString", "toLocaleString", "valueOf"]),
    "ruby": frozenset(
        [
            "initialize",
            "to_text",
            "display",
            "dup",
            "clone",
            "between?",
            "hash",
            "equal?",
            "eql?",
            "==",
            "===",
            "<=>",
            "<=",
            "<",
            ">",
            ">=",
        ]
    ),
}


@dataclass(frozen=True, slots=True)
class Filters:
    """What makes a function a pair; the defaults are the paper's, but for max_code_lines, which it lacks."""

    min_doc_tokens: int = 3  # of the query, punctuation included
    min_code_lines: int = 3  # without documentation and blank lines
    max_code_lines: int | None = None
    drop_tests: bool = True  # test files, and functions with `test` in their qualified name
    drop_special_methods: bool = True  # constructors and the methods a language calls by itself
    drop_vendored: bool = True  # files that belong to somebody else
    drop_built: bool = True  # JavaScript and TypeScript that a tool wrote


@dataclass
class Report:
    """What mining saw, dropped and kept; every file and function is in exactly one count of its kind."""

    files: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    decoded: Counter[str] = field(default_factory=Counter)  # files read, by encoding
    kept: Counter[str] = field(default_factory=Counter)  # pairs by repository

    def add(self, other: "Report") -> None:
        self.files.update(other.files)
        self.functions.update(other.functions)
        self.decoded.update(other.decoded)
        self.kept.update(other.kept)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: files and functions seen, dropped by cause in the order of the filters, and kept."""
        skipped = {cause: self.files[cause] for cause in _FILE_CAUSES}
        dropped = {cause: self.functions[cause] for cause in _FUNCTION_CAUSES}
        return {
            "files": {
                "seen": self.files.total() - self.files["with_errors"],
                "skipped": skipped,
                "read": self.files["read"],
                "with_errors": self.files["with_errors"],
                "by_encoding": dict(sorted(self.decoded.items())),
            },
            "functions": {
                "seen": self.functions.total(),
                "dropped": dropped,
                "kept": self.functions["kept"],
            },
            "kept_by_repository": dict(sorted(self.kept.items())),
        }


def repositories(*folders: Path) -> dict[str, Path]:
    """The folders and archives in folders by repository name: a package's normalised name, else the file's.

    DataError if a folder has none or two have the same name.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        before = len(found)
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if path.name.startswith(".") or not (path.is_dir() or is_archive(path.name)):
                continue
            name = _repository(path)
            inside = [each for each in path.iterdir() if is_archive(each.name)] if path.is_dir() else []
            if len(inside) == 1:  # as `sources.fetch` leaves a package: its archive in a folder of its name
                path = inside[0]
            if name in found:
                raise DataError(f"{folder} has {path.name}, {name} by name as is {found[name]}; keep one")
            found[name] = path
        if len(found) == before:
            raise DataError(f"{folder} has no folder and no archive to mine; run: dvc repro fetch gather")
    return found


def mine(
    sources: Mapping[str, Path],
    languages: Sequence[str] = ("python",),
    filters: Filters = Filters(),
    processes: int = 1,
    report: Report | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of PAIRS from repositories (name -> folder or archive), in the order given and by path in each.

    Pair ids are `<repository>/<path>:<start line>:<qualified name>`. The report is filled as batches are taken.
    DataError if a repository cannot be read or has no file of the languages. With several processes the calling script
    needs a `__main__` guard.
    """
    report = Report() if report is None else report
    suffixes = tuple(suffix for language in languages for suffix in _extensions(language))
    chunks = _chunks(tqdm(sources.items(), desc="mine", unit="repository", disable=None), suffixes)
    for batch, counts in _mapped(chunks, suffixes, filters, processes):
        report.add(counts)
        if batch.num_rows:
            yield batch


def split_of(repository: str, seed: int, fractions: Mapping[str, float]) -> str:
    """The side a repository is on: the same for all its pairs, for any order and number of repositories.

    Each side gets its fraction of the 64-bit numbers that SHA-256 gives for seed and repository. ValueError unless the
    fractions are positive and sum to 1.
    """
    if any(fraction <= 0 for fraction in fractions.values()) or abs(sum(fractions.values()) - 1) > 1e-9:
        raise ValueError(f"fractions are {dict(fractions)}; wanted positive ones that sum to 1")
    digest = hashlib.sha256(f"{seed}:{repository}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    for side, fraction in fractions.items():
        if place < fraction:
            return side
        place -= fraction
    return side


def summary(docstring: str) -> str:
    """The first paragraph on one line, cut before a tag or a doctest; empty if nothing is left."""
    paragraph = _EMPTY_LINE.split(docstring.strip(), maxsplit=1)[0]
    return " ".join(_TAG.split(paragraph, maxsplit=1)[0].split())


def doc_tokens(text: str) -> list[str]:
    """CodeSearchNet's docstring tokens: words, pairs of brackets, runs of one mark; commas and quotes vanish."""
    return [match[0] for match in _DOC_TOKEN.finditer(text)]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some files of a repository; names is None for all of them."""

    repository: str
    path: Path
    names: tuple[str, ...] | None

    def __str__(self) -> str:
        part = "" if self.names is None else f", files {self.names[0]} to {self.names[-1]}"
        return f"{self.path}{part}"


def _extensions(language: str) -> tuple[str, ...]:
    if language not in syntax.LANGUAGES:
        raise DataError(f"mining.languages has {language!r}; known: {', '.join(sorted(syntax.LANGUAGES))}")
    return syntax.LANGUAGES[language].extensions


def _repository(path: Path) -> str:
    try:
        if path.name.endswith(".whl"):
            return str(parse_wheel_filename(path.name)[0])
        if path.name.endswith(".tar.gz"):
            return str(parse_sdist_filename(path.name)[0])
    except (InvalidWheelFilename, InvalidSdistFilename):
        pass
    for suffix in (*ZIPS, *TARBALLS):
        if path.is_file() and path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.name


def _chunks(sources: Iterable[tuple[str, Path]], suffixes: tuple[str, ...]) -> Iterator[_Chunk]:
    for repository, path in sources:
        if path.name.endswith(TARBALLS):
            # Any file of a tarball costs unpacking all before it, so it is read in one go.
            yield _Chunk(repository, path, None)
            continue
        names = archives.names(path, suffixes)
        if not names:
            raise DataError(f"{path} has no file ending in {', '.join(suffixes)}; mine other languages or drop it")
        for start in range(0, len(names), FILES_A_CHUNK):
            yield _Chunk(repository, path, tuple(names[start : start + FILES_A_CHUNK]))


def _mapped(
    chunks: Iterator[_Chunk], suffixes: tuple[str, ...], filters: Filters, processes: int
) -> Iterator[tuple[pa.RecordBatch, Report]]:
    """Each chunk's pairs and counts, in order, with a bounded number of chunks under way."""
    if processes <= 1:
        for chunk in chunks:
            yield _mine_chunk(chunk, suffixes, filters)
        return
    # Spawned, not forked: a fork of a process with threads (Arrow's, a progress bar's) may deadlock.
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    waiting: deque[tuple[_Chunk, Future[tuple[pa.RecordBatch, Report]]]] = deque()
    try:
        for chunk in chunks:
            waiting.append((chunk, pool.submit(_mine_chunk, chunk, suffixes, filters)))
            if len(waiting) >= CHUNKS_A_PROCESS * processes:
                yield _done(*waiting.popleft())
        while waiting:
            yield _done(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _done(chunk: _Chunk, future: "Future[tuple[pa.RecordBatch, Report]]") -> tuple[pa.RecordBatch, Report]:
    try:
        return future.result()
    except BrokenProcessPool:
        raise DataError(
            f"a mining process died, at or after {chunk}; set mining.processes to 1 to see where, or free some memory"
        ) from None


def _mine_chunk(chunk: _Chunk, suffixes: tuple[str, ...], filters: Filters) -> tuple[pa.RecordBatch, Report]:
    report = Report()
    rows: list[tuple[str, str, str, str, str, str, str, int, int]] = []
    seen = 0
    for path, data in archives.members(chunk.path, suffixes, chunk.names):
        seen += 1
        language = syntax.language_of(path)
        assert language is not None  # the suffixes are those of languages
        cause = path_cause(path, filters) or built_cause(path, data, language, filters)
        if cause is not None:
            report.files[cause] += 1
            continue
        try:
            source = syntax.decode(data, language)
            functions = syntax.functions(source, language)
        except syntax.Unreadable as error:
            report.files[error.cause] += 1
            continue
        report.files["read"] += 1
        report.decoded[source.encoding] += 1
        report.files["with_errors"] += bool(functions) and functions[0].file_has_error
        pair_ids: set[str] = set()
        for function in functions:
            cause, query, code = _judged(function, filters)
            report.functions[cause] += 1
            if cause != "kept":
                continue
            pair_id = f"{chunk.repository}/{path}:{function.start_line}:{function.qualified_name}"
            if pair_id in pair_ids:  # two of one name on one line
                pair_id = f"{pair_id}:{function.start}"
            pair_ids.add(pair_id)
            rows.append(
                (
                    pair_id,
                    chunk.repository,
                    path,
                    language,
                    function.qualified_name,
                    query,
                    code,
                    function.start_line,
                    function.end_line,
                )
            )
    if not seen:
        raise DataError(f"{chunk.path} has no file ending in {', '.join(suffixes)}; mine other languages or drop it")
    report.kept[chunk.repository] += len(rows)
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(PAIRS)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, PAIRS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PAIRS), report


def path_cause(path: str, filters: Filters) -> str | None:
    """Why a file is not even opened, None if it is."""
    lower = path.lower()
    if filters.drop_vendored and _VENDORED.search(lower):
        return "vendored"
    if filters.drop_tests and _TEST.search(lower):
        return "test"
    return None


def built_cause(path: str, data: bytes, language: str, filters: Filters) -> str | None:
    """Which kind of file that a tool wrote this is, None if it is source."""
    if not filters.drop_built or language not in _BUILT_LANGUAGES:
        return None
    if _BUNDLED.search(path.lower()):
        return "bundled"
    lines = data.count(b"\n") + 1
    if len(data) > _MINIFIED_MEAN * lines or len(max(data.split(b"\n"), key=len)) > _MINIFIED_LINE:
        return "minified"
    return "generated" if _GENERATED.search(data, 0, _HEAD_BYTES) else None


def _judged(function: syntax.Function, filters: Filters) -> tuple[str, str, str]:
    """What a function is counted as, with query and code if that is "kept"."""
    if not function.docs:
        return "no_docstring", "", ""
    if function.has_error:
        return "syntax_error", "", ""
    if filters.drop_special_methods and is_special(function):
        return "special_method", "", ""
    if filters.drop_tests and "test" in function.qualified_name.lower():
        return "test_name", "", ""
    query = summary(_DIRECTIVE.sub("", function.docstring or ""))
    if not query or len(doc_tokens(query)) < filters.min_doc_tokens:
        return "short_docstring", "", ""
    code = function.code
    lines = sum(1 for line in code.splitlines() if line.strip())
    if lines < filters.min_code_lines:
        return "short_code", "", ""
    if filters.max_code_lines is not None and lines > filters.max_code_lines:
        return "long_code", "", ""
    return "kept", query, code


def is_special(function: syntax.Function) -> bool:
    """Whether it is a constructor, or a method that its language calls by itself."""
    name = function.name
    match function.language:
        case "python":
            return name.startswith("__") and name.endswith("__")
        case "php":
            return name.startswith("__")
        case "java" if function.qualified_name.split(".")[-2:-1] == [name]:
            return True  # a constructor
    return name in SPECIAL_METHODS.get(function.language, ())


_FILE_CAUSES = ("vendored", "test", "bundled", "minified", "generated", syntax.BinaryFile.cause, syntax.TooDeep.cause)
_FUNCTION_CAUSES = (
    "no_docstring",
    "syntax_error",
    "special_method",
    "test_name",
    "short_docstring",
    "short_code",
    "long_code",
)
_VENDORED = re.compile(r"(?:^|/)(?:_?vendor(?:ed|s)?|_?vendored_packages|_?third_?party|node_modules|_?externals?)/")
_TEST = re.compile(
    r"(?:^|/)(?:_{0,2}tests?_{0,2}|_?testing|specs?)/"
    r"|(?:^|/)(?:tests?[_.]|conftest\.)[^/]*$"
    r"|[_.](?:tests?|spec)\.[a-z]+$"
    r"|tests?\.java$"
)
_BUILT_LANGUAGES = ("javascript", "typescript")
_BUNDLED = re.compile(r"(?:^|/)(?:dist|umd|fesm\d*|bundles?)/|[._-](?:min|bundle|bundled|umd|iife|prod)\.[cm]?js$")
_MINIFIED_MEAN, _MINIFIED_LINE = 200, 5000  # bytes a line on average, and of the longest; people write far below both
_HEAD_BYTES = 1000
_GENERATED = re.compile(rb"@generated|do not (?:edit|modify)|(?:auto-?|code |is )generated", re.IGNORECASE)
# A linter's line in a run of comments; a Python docstring has none, for its comments are no part of it.
_DIRECTIVE = re.compile(
    r"^[ \t]*(?:eslint-|tslint:|js[hl]int |(?:istanbul|c8|v8) ignore |prettier-ignore|noinspection |rubocop:|go:|nolint"
    r"|@ts-).*$",
    re.MULTILINE,
)
_EMPTY_LINE = re.compile(r"\n[ \t\r\f]*\n")
_TAG = re.compile(r"^[ \t]*(?:@\w|:\w[^:\n]*:(?!`)|>>>)", re.MULTILINE)
_DOC_TOKEN = re.compile(
    r"""[^\s,'"`.():\[\]=*;>{}+\-/\\]+   # a word
      | \(\) | \{\} | \[\]
      | ([.():\[\]=*;>{}+\-/\\])\1*      # one mark, repeated
    """,
    re.VERBOSE,
)
