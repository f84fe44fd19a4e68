"""A needle where it stands: so many tokens of its repository around it, the needle at a depth of them.

The files lie one after the other in dependency order, each below a line that names its path. A window is whole lines
of that, without a gap: before the needle its share of the tokens, after it the rest; where the repository ends, what
is left goes to the other side. So the needle's text is the file's own, byte by byte, and the depth that came of it is
told. A file that the window begins within has its path above it.

RepoQA's own windows are otherwise (`as_released`): a cut file shows its head and not what is next to the needle, what
is left over is lost, and the needle is cut out of the text by offsets of bytes, which moves it by every character that
has more than one.

A line's tokens are counted once a repository and not once a window, each line for itself, as RepoQA does.

Comments are kept, removed, which lets more of the repository in, or padded: then the window is that with comments, and
what they took is filled by lines of numbers at its two ends, so that the needle keeps its place.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

from coderet.benchmarks.needles import Repository, Span
from coderet.corpora.uncommenting import uncommented
from coderet.records import DataError

MARKS = {"python": "#", "ruby": "#"}
"""What a comment of one line begins with, where it is not `//`."""

CODELLAMA = {"▁<PRE>": 32007, "▁<SUF>": 32008, "▁<MID>": 32009, "▁<EOT>": 32010}
"""The tokens that CodeLlama's vocabulary of 32,016 has beyond Llama 2's, by which it is told."""

CUT = "..."
Count = Callable[[str], int]
Comments = Literal["kept", "removed", "padded"]


class Window(NamedTuple):
    """prefix, needle and suffix make the text; tokens: those of the three, by lines. lines: of the repository's, where
    it begins and ends, exclusive; nothing is said of a released one."""

    prefix: str
    needle: str
    suffix: str
    tokens: tuple[int, int, int]
    lines: tuple[int, int] = (0, 0)

    @property
    def text(self) -> str:
        return self.prefix + self.needle + self.suffix

    @property
    def depth(self) -> float:
        """Where the needle's middle is, from 0 to 1."""
        before, own, _ = self.tokens
        return (before + own / 2) / sum(self.tokens)


@lru_cache(maxsize=4)
def counter(tokenizer: str, codellama: bool = False) -> Count:
    """What counts the tokens of a text, by a tokenizer.json; DataError if it cannot be read, or is not CodeLlama's
    where that is wanted."""
    from tokenizers import Tokenizer

    if not Path(tokenizer).is_file():
        raise DataError(f"there is no tokenizer {tokenizer}; wanted the path of a tokenizer.json")
    try:
        read = Tokenizer.from_file(tokenizer)
    except Exception as error:  # tokenizers raises nothing narrower
        raise DataError(f"{tokenizer} is no whole tokenizer.json: {error}") from None
    if codellama and (lacking := [each for each, own in CODELLAMA.items() if read.token_to_id(each) != own]):
        raise DataError(
            f"{tokenizer} has {read.get_vocab_size():,} tokens, and {lacking[0]} is number "
            f"{read.token_to_id(lacking[0])} of them, wanted {CODELLAMA[lacking[0]]}: it is not CodeLlama-7b-Instruct's"
        )
    return lambda text: len(read.encode(text, add_special_tokens=False).ids)


def header(path: str, language: str) -> str:
    """The line above a file."""
    return f"{MARKS.get(language, '//')} Path: {path}\n"


@dataclass(frozen=True)
class Lines:
    """A repository's lines in order, with their headers. sums: tokens of all lines before each, and of all."""

    lines: list[str]
    sums: list[int]
    starts: dict[str, int]  # where a file's header is
    paths: list[str]  # of each line

    @classmethod
    def of(cls, repository: Repository, count: Count, comments: bool = True) -> "Lines":
        """Without comments a line that held one alone is empty and has no tokens."""
        lines: list[str] = []
        starts: dict[str, int] = {}
        paths: list[str] = []
        for path, text in repository.files.items():
            starts[path] = len(lines)
            text = text.removesuffix("\n")
            kept = text.split("\n") if comments else uncommented(text, repository.language)
            own = [header(path, repository.language), *("" if line is None else f"{line}\n" for line in kept)]
            lines += own
            paths += [path] * len(own)
        tokens = (count(line) if line else 0 for line in lines)
        return cls(lines, list(accumulate(tokens, initial=0)), starts, paths)

    def place(self, repository: Repository, span: Span) -> tuple[int, int]:
        """The first line of a function and the one after its last."""
        content = repository.contents[span.path]
        first = self.starts[span.path] + 1 + content.count(b"\n", 0, span.start)
        return first, first + content.count(b"\n", span.start, span.end) + (not content[: span.end].endswith(b"\n"))


def window(
    repository: Repository, function: int, depth: float, size: int, count: Count, comments: Comments = "kept"
) -> Window:
    """At most size tokens around a function; the whole repository where it has fewer. DataError if the function alone
    has more."""
    span = repository.functions[function]
    counted = _counted(repository, count, comments != "removed")
    sums = counted.sums
    first, end = counted.place(repository, span)
    own = sums[end] - sums[first]
    room = size - own
    if room < 0:
        raise DataError(
            f"{repository.name}: {span.name} has {own} tokens and the window {size}; wanted a window that holds it"
        )
    before = max(0, min(sums[first], round(size * depth - own / 2)))
    after = room - before
    left = sums[-1] - sums[end]
    if after > left:
        before, after = min(sums[first], room - left), left
    elif after < 0:
        before, after = room, 0
    start = bisect_left(sums, sums[first] - before)
    stop = bisect_right(sums, sums[end] + after) - 1
    prefix, extra = counted.lines[start:first], 0
    while start < first and counted.starts[counted.paths[start]] < start:  # within a file: its path stands above it
        path_above = [counted.lines[counted.starts[counted.paths[start]]], f"{CUT}\n"]
        extra = sum(map(count, path_above))
        if sums[first] - sums[start] + extra <= before:
            prefix = path_above + counted.lines[start:first]
            break
        start, extra = start + 1, 0
        prefix = counted.lines[start:first]
    tokens = (sums[first] - sums[start] + extra, own, sums[stop] - sums[end])
    if comments == "padded":
        plain = _counted(repository, count, False)
        own = plain.sums[end] - plain.sums[first]
        upper = plain.sums[first] - plain.sums[start] + extra
        below = plain.sums[stop] - plain.sums[end]
        ends = [_padding(tokens[0] - upper, repository, count), _padding(tokens[2] - below, repository, count)]
        heading = prefix[: len(prefix) - (first - start)]
        return Window(
            "".join([*ends[0], *heading, *plain.lines[start:first]]),
            "".join(plain.lines[first:end]),
            "".join([*plain.lines[end:stop], *ends[1]]),
            (upper + sum(map(count, ends[0])), own, below + sum(map(count, ends[1]))),
            (start, stop),
        )
    needle, suffix = (counted.lines[slice(*each)] for each in ((first, end), (end, stop)))
    return Window("".join(prefix), "".join(needle), "".join(suffix), tokens, (start, stop))


def inside(repository: Repository, function: int, depth: float, size: int, count: Count) -> list[int]:
    """The functions that stand whole in the window around one."""
    counted = _counted(repository, count, True)
    start, stop = window(repository, function, depth, size, count).lines
    places = (counted.place(repository, span) for span in repository.functions)
    return [place for place, (first, end) in enumerate(places) if start <= first and end <= stop]


def _padding(tokens: int, repository: Repository, count: Count) -> list[str]:
    """Comments of one number each, as many as fit."""
    mark = MARKS.get(repository.language, "//")
    lines: list[str] = []
    while tokens > 0:
        line = f"{mark} {len(lines) + 1}\n"
        tokens -= count(line)
        if tokens >= 0:
            lines.append(line)
    return lines


def _counted(repository: Repository, count: Count, comments: bool) -> Lines:
    known = _KNOWN.setdefault(repository, {})
    key = (id(count), comments)
    if key not in known:
        known[key] = (count, Lines.of(repository, count, comments))
    return known[key][1]


_KNOWN: "WeakKeyDictionary[Repository, dict[tuple[int, bool], tuple[Count, Lines]]]" = WeakKeyDictionary()


def as_released(repository: Repository, function: int, depth: float, size: int, count: Count) -> Window:
    """The window of the released code, its faults included: see the module."""
    span = repository.functions[function]
    paths = list(repository.files)
    place, text = paths.index(span.path), repository.files[span.path]
    needle = text[span.start : span.end]  # bytes taken for characters
    own = count(needle)
    before = int(size * depth - own / 2)
    after = size - own - before
    head = _head(repository, span.path)

    prefix, spent, cut = _from_below(head + text[: span.start].split("\n"), before, count)
    room, tokens_before = before - spent, spent
    for path in reversed(paths[:place]):
        if cut or room <= 0:
            break
        piece, spent, cut = _from_above(_head(repository, path) + repository.files[path].split("\n"), room, count)
        prefix, room, tokens_before = piece + prefix, room - spent, tokens_before + spent

    suffix, spent, cut = _from_above(text[span.end :].split("\n"), after, count)
    room, tokens_after = after - spent, spent
    for path in paths[place + 1 :]:
        if cut or room <= 0:
            break
        piece, spent, cut = _from_above(_head(repository, path) + repository.files[path].split("\n"), room, count)
        suffix, room, tokens_after = suffix + piece, room - spent, tokens_after + spent
    return Window(prefix, needle, suffix, (tokens_before, own, tokens_after))


def _head(repository: Repository, path: str) -> list[str]:
    return [header(path, repository.language).rstrip("\n")]


def _from_above(lines: list[str], room: int, count: Count) -> tuple[str, int, bool]:
    """The first lines that fit, their tokens, and whether there are more, which a mark then says beyond the room."""
    taken, spent, cut = _fitting(lines, room, count)
    if cut:
        taken.append(f"{CUT}\n")
        spent += count(taken[-1])
    return "".join(taken), spent, cut


def _from_below(lines: list[str], room: int, count: Count) -> tuple[str, int, bool]:
    """The last lines that fit, their tokens, and whether there are more."""
    taken, spent, cut = _fitting(lines[::-1], room, count)
    return "".join(taken[::-1]), spent, cut


def _fitting(lines: list[str], room: int, count: Count) -> tuple[list[str], int, bool]:
    taken: list[str] = []
    spent = 0
    for line in lines:
        tokens = count(f"{line}\n")
        if spent + tokens > room:
            return taken, spent, True
        taken.append(f"{line}\n")
        spent += tokens
    return taken, spent, False
