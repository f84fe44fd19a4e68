"""Documents cut into chunks, of which nothing is lost, and the ids that lead back.

A chunker finds spans of a text: windows of lines, whole lines up to so many tokens, or syntax nodes. Spans cover the
text from its first character to its last; joining those that do not overlap gives the text back, byte by byte. An empty
text is one empty chunk. Lines end at a line feed alone, with or without a carriage return, as in `syntax`.

A chunk of whole lines has the id `<document id>#L<first>-L<last>`, lines counted from 1. Where a chunk begins or ends
within a line, the column of its first or last character, counted from 1, stands behind the line: `#L3C81-L3C160`. So no
two chunks of a document share an id, and an id that itself ends in `#L1-L2` comes back whole: the last mark is ours.

Syntax chunks follow Zhang et al. (2025, cAST) in splitting a node that is too long into its children and joining small
neighbours again; definitions at the top of a file are not joined to one another.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coderet import registry
from coderet.corpora import store, syntax
from coderet.records import DOCUMENTS, NO_HIT, Corpus, DataError, check_schema, documents_batch

CHUNKERS = {
    "lines": "coderet.corpora.chunking:Lines",
    "tokens": "coderet.corpora.chunking:Tokens",
    "syntax": "coderet.corpora.chunking:Syntax",
}
DOCUMENTS_AT_A_TIME = 256
CHARACTERS_A_BATCH = 4_000_000

Span = tuple[int, int]  # places of characters in a text, end exclusive
Tokenize = Callable[[Sequence[str]], Iterable[Sequence[Span]]]  # texts to the spans of their tokens


class Chunker(Protocol):
    """settings: all that its chunks depend on, plain JSON. path is what a document is called, for its ending."""

    @property
    def settings(self) -> dict[str, Any]: ...

    def spans(self, text: str, path: str = "") -> list[Span]:
        """The chunks of text in order; at least one, none empty unless the text is."""
        ...


def chunker(settings: Mapping[str, Any], where: str = "chunking") -> Chunker:
    """The chunker of `kind` with its settings; UnknownName or BadValue says which of them cannot be meant."""
    if not isinstance(settings, Mapping):
        raise registry.BadValue(f"{where} is {settings!r}; wanted a mapping such as {{kind: lines, size: 50}}")
    given = dict(settings)
    made = registry.load(CHUNKERS, str(given.pop("kind", None)), "chunkings", f"{where}.kind")
    found: Chunker = made(**registry.fit_arguments(made, given, where))
    return found


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Windows of size lines, one every step lines until one reaches the end; without step they do not overlap."""

    size: int
    step: int | None = None

    def __post_init__(self) -> None:
        registry.check_range("chunking.size", self.size, 1)
        if self.step is not None:
            registry.check_range("chunking.step", self.step, 1, self.size)

    @property
    def settings(self) -> dict[str, Any]:
        return {"kind": "lines", "size": self.size, "step": self.step or self.size}

    def spans(self, text: str, path: str = "") -> list[Span]:
        bounds, step = line_bounds(text), self.step or self.size
        lines = len(bounds) - 1
        windows = 1 + max(0, -(-(lines - self.size) // step))
        return [(bounds[at * step], bounds[min(at * step + self.size, lines)]) for at in range(windows)]


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Whole lines up to size tokens; a line that alone has more is cut between tokens.

    tokenizer: `whitespace`, or the path of a tokenizer.json. A line's tokens are counted in that line alone.
    first_only: only the first chunk of a document is kept, as CodeRAG-Bench cuts what it retrieved; the rest is lost on
    purpose.
    """

    size: int
    tokenizer: str = "whitespace"
    first_only: bool = False

    def __post_init__(self) -> None:
        registry.check_range("chunking.size", self.size, 1)
        if self.tokenizer != "whitespace" and not Path(self.tokenizer).is_file():
            raise DataError(
                f"chunking.tokenizer is {self.tokenizer!r}; wanted whitespace or the path of a tokenizer.json, "
                f"and there is no file {Path(self.tokenizer).absolute()}"
            )

    @cached_property
    def settings(self) -> dict[str, Any]:
        """With the content of the tokenizer's file, which its path does not tell."""
        content = {}
        if self.tokenizer != "whitespace":
            content["tokenizer_sha256"] = hashlib.sha256(Path(self.tokenizer).read_bytes()).hexdigest()
        return {"kind": "tokens", **asdict(self), **content}

    def spans(self, text: str, path: str = "") -> list[Span]:
        found = token_spans(text, self.size, self._tokenize)
        return found[:1] if self.first_only else found

    @cached_property
    def _tokenize(self) -> Tokenize:
        return whitespace_tokens if self.tokenizer == "whitespace" else _tokens_by(Path(self.tokenizer))


@dataclass(frozen=True, kw_only=True)
class Syntax:
    """The functions and classes at the top of a source file, each with what stands before it, of at most size lines.

    Blank lines at a chunk's end are not counted. The tail of the file goes with its last definition. What is longer is
    split at the children of its syntax nodes, neighbours joined up to size again, and a node without children by lines.
    language: one of `syntax.LANGUAGES`, or None to go by the ending of a document's title or id; a text of no known
    language, or one that does not parse, is cut into windows of lines.
    """

    size: int
    language: str | None = None

    def __post_init__(self) -> None:
        registry.check_range("chunking.size", self.size, 1)
        if self.language is not None and self.language not in syntax.LANGUAGES:
            known = ", ".join(sorted(syntax.LANGUAGES))
            near = registry.nearest(self.language, syntax.LANGUAGES)
            raise registry.UnknownName(f"chunking.language is {self.language!r}; known languages: {known}.{near}")

    @property
    def settings(self) -> dict[str, Any]:
        return {"kind": "syntax", **asdict(self)}

    def spans(self, text: str, path: str = "") -> list[Span]:
        language = self.language or syntax.language_of(path)
        outline = syntax.outline(text.encode(), language) if language else None
        if outline is None:
            return Lines(size=self.size).spans(text)
        bounds = line_bounds(text)
        cuts = [*_syntax_cuts(outline, len(bounds) - 1, self.size), len(bounds) - 1]
        places = [bounds[cut] for cut, after in pairwise(cuts) if cut == 0 or text[bounds[cut] : bounds[after]].strip()]
        return list(pairwise([*places, len(text)]))


def whitespace_tokens(texts: Sequence[str]) -> Iterator[list[Span]]:
    """The runs of what is not white space."""
    return ([found.span() for found in _WORD.finditer(text)] for text in texts)


def token_spans(text: str, size: int, tokenize: Tokenize) -> list[Span]:
    """Spans of whole lines with at most size tokens; a longer line is cut before every size-th of its tokens.

    A character of more than size tokens stays whole.
    """
    bounds = line_bounds(text)
    lines = list(pairwise(bounds))
    cuts, held = [0], 0
    for (start, end), tokens in zip(lines, tokenize([text[a:b] for a, b in lines]), strict=True):
        if held + len(tokens) <= size:
            held += len(tokens)
            continue
        if held:
            cuts.append(start)
        held = len(tokens)
        for place, behind in _cuts_within(tokens, size, end - start):
            cuts.append(start + place)
            held = behind
    return list(pairwise([*cuts, len(text)]))


def line_bounds(text: str) -> list[int]:
    """Where each line begins, and the end of text: one more number than there are lines. An empty text is one line."""
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
    return starts if len(starts) > 1 and starts[-1] == len(text) else [*starts, len(text)]


# Ids


class Place(NamedTuple):
    """Where a chunk stands. A column is None where the chunk begins or ends with the line."""

    document_id: str
    first_line: int
    first_column: int | None
    last_line: int
    last_column: int | None


def chunk_id(document_id: str, span: Span, bounds: Sequence[int]) -> str:
    """The id of the chunk of document_id at span; bounds are `line_bounds` of its text."""
    start, end = span
    first = bisect_right(bounds, start, hi=len(bounds) - 1) - 1
    last = bisect_right(bounds, max(start, end - 1), hi=len(bounds) - 1) - 1
    first_column = "" if start == bounds[first] else f"C{start - bounds[first] + 1}"
    last_column = "" if end == bounds[last + 1] else f"C{end - bounds[last]}"
    return f"{document_id}#L{first + 1}{first_column}-L{last + 1}{last_column}"


def place_of(chunk_id: str) -> Place:
    """What a chunk's id says; DataError if it is none."""
    found = _CHUNK_ID.fullmatch(chunk_id)
    if found is None:
        raise DataError(f"{chunk_id!r} is no id of a chunk; wanted <document id>#L<first>-L<last>")
    first_column, last_column = (int(each) if each else None for each in (found[3], found[5]))
    return Place(found[1], int(found[2]), first_column, int(found[4]), last_column)


# Columns


def chunks(documents: Iterable[pa.RecordBatch], chunker: Chunker) -> Iterator[pa.RecordBatch]:
    """Batches of DOCUMENTS to batches of DOCUMENTS that are their chunks, each with its document's title.

    Holds some documents and a few megabytes of chunks at a time.
    """
    ids: list[str] = []
    titles: list[str] = []
    texts: list[str] = []
    held = 0
    for batch in documents:
        check_schema(batch, DOCUMENTS, "a batch of documents")
        for start in range(0, batch.num_rows, DOCUMENTS_AT_A_TIME):
            columns = (column.to_pylist() for column in batch.slice(start, DOCUMENTS_AT_A_TIME).columns)
            for document_id, title, text in zip(*columns, strict=True):
                title, text = title or "", text or ""
                bounds = line_bounds(text)
                path = title if syntax.language_of(title) else document_id
                for span in chunker.spans(text, path):
                    ids.append(chunk_id(document_id, span, bounds))
                    titles.append(title)
                    texts.append(text[slice(*span)])
                    held += len(document_id) + len(title) + span[1] - span[0]
                    if held >= CHARACTERS_A_BATCH:
                        yield documents_batch(ids, titles, texts)
                        ids, titles, texts, held = [], [], [], 0
    if ids:
        yield documents_batch(ids, titles, texts)


def chunk_corpus(corpus: Corpus, chunker: Chunker, path: Path) -> tuple[Corpus, np.ndarray]:
    """The chunks of corpus, written to path and memory-mapped, and the (N,) int64 row of each one's document."""
    store.write_corpus(path, chunks(corpus.table.to_batches(), chunker))
    cut = Corpus(corpus.name, store.read_table(path))
    return cut, owners(cut, corpus)


def owners(chunks: Corpus, corpus: Corpus) -> np.ndarray:
    """(N,) int64 rows in corpus of the documents that chunks were cut from; DataError if one is not there."""
    ids = pc.replace_substring_regex(chunks.ids, _MARK + "$", "")
    rows = corpus.rows_of(ids)
    if (rows == NO_HIT).any():
        stray = chunks.ids[int(np.argmax(rows == NO_HIT))].as_py()
        raise DataError(f"{stray!r} is no chunk of a document of corpus {corpus.name}; cut the corpus again")
    return rows


# Within a line


def _cuts_within(tokens: Sequence[Span], size: int, length: int) -> Iterator[tuple[int, int]]:
    """Where a line with these tokens is cut so that no part has more than size, and how many are left behind each cut.

    A place is the start of a token; several tokens may share a character, which is not cut.
    """
    starts = [start for start, _ in tokens]
    before, first = 0, 0  # the last cut, and the first token behind it
    while len(starts) - first > size:
        place = starts[first + size]
        if place <= before:
            place = next((start for start in starts[first:] if start > before), length)
        if place >= length:
            return
        first = next(at for at in range(first, len(starts)) if starts[at] >= place)
        before = place
        yield place, len(starts) - first


def _tokens_by(path: Path) -> Tokenize:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more special
        raise DataError(f"{path} is no tokenizer.json that the tokenizers library reads: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda texts: (each.offsets for each in tokenizer.encode_batch(list(texts), add_special_tokens=False))


# Syntax


def _syntax_cuts(outline: Sequence[syntax.Block], lines: int, size: int) -> list[int]:
    """The lines, from 0, that chunks begin at: 0 first, each once, in order."""
    cuts = [0]
    definitions = [at for at, block in enumerate(outline) if block.defines and block.first_line < lines]
    for number, at in enumerate(definitions):
        start = cuts[-1] if number == 0 else min(outline[definitions[number - 1]].last_line + 1, lines)
        end = lines if number + 1 == len(definitions) else min(outline[at].last_line + 1, lines)
        if number:
            cuts.append(start)
        cuts += _cuts_between(outline, start, end, size, _own_start(outline, at, start))
    if not definitions:
        cuts += _cuts_between(outline, 0, lines, size)
    return sorted(cut for cut in set(cuts) if cut < lines or cut == 0)


def _own_start(outline: Sequence[syntax.Block], at: int, start: int) -> int | None:
    """The line that a definition begins at, comments that end on the line before it included, no blank line between.

    None where nothing else stands between start and there.
    """
    while at and outline[at - 1].comment and outline[at - 1].last_line + 1 >= outline[at].first_line:
        at -= 1
    return outline[at].first_line if at and outline[at - 1].last_line >= start else None


def _cuts_between(
    outline: Sequence[syntax.Block], start: int, end: int, size: int, own_start: int | None = None
) -> Iterator[int]:
    """Cuts, start not among them, so that no part of the lines from start to end is longer than size.

    A stretch that fits is left whole; one that does not is cut at own_start in any case.
    """
    if end - start <= size:
        return
    steps = sorted(set(_starts(outline, start, end, size)))
    begun = start
    for line, after in pairwise([start, *steps, end]):
        # A part ends before the stretch [line, after) if it would grow too long with it, or must not join it.
        if line > begun and (after - begun > size or line == own_start):
            yield line
            begun = line
        while after - begun > size:  # a stretch that is too long alone and has no children
            begun += size
            yield begun


def _starts(outline: Sequence[syntax.Block], start: int, end: int, size: int) -> Iterator[int]:
    """The lines between start and end that a node begins at, those of the children of long nodes included."""
    waiting = list(outline)
    while waiting:
        block = waiting.pop()
        if block.last_line < start or block.first_line >= end:
            continue
        if start < block.first_line:
            yield block.first_line
        if block.last_line - block.first_line >= size:
            waiting += block.children


_WORD = re.compile(r"\S+")
_LINE_END = re.compile("\n")
_MARK = "#L[0-9]+(?:C[0-9]+)?-L[0-9]+(?:C[0-9]+)?"
_CHUNK_ID = re.compile("(.*)#L([0-9]+)(?:C([0-9]+))?-L([0-9]+)(?:C([0-9]+))?", re.DOTALL)
