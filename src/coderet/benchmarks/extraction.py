"""The code in a completion, wherever it stands: in a fence of any label, in none, in one that never closes, in prose.

Nothing is guessed by offsets: fences are found as marks, whatever their label (CodeRAG-Bench cut ten characters, which
cost an unlabelled fence the beginning of its code). Where there are several blocks the wanted function decides, and
blocks with helpers that it calls come with it. What is no Python is given back as it stands, so that the judge calls it
a syntax error and not the reader.
"""

import ast
import builtins
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coderet.benchmarks.answering import Answer

END_TOKENS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|end|>",
    "<|EOT|>",
    "<end_of_turn>",
    "</s>",
    "<eos>",
    "<file_sep>",
    "<|file_separator|>",
)
"""What ends an answer in some vocabulary and comes out as text where a server or a template does not know it."""

NOTHING = Answer("", "nothing")
LINES_TRIED, STARTS_TRIED = 200, 10  # of a truncated answer's end, and of places where code may begin in prose
CHARACTERS_TRIED = 1_000_000  # parsed altogether of an answer, so that reading a long one stays quick


class Block(NamedTuple):
    """label: what stands behind the fence's opening mark; closed: whether its end does."""

    label: str
    code: str
    closed: bool


def code(completion: str, wanted: str = "", start: str = "") -> Answer:
    """The code of an answer. wanted: the name it should define; start: what the answer was made to begin with.

    A completion that opens a fence of its own does not go on from start, which is then left out.
    """
    text = clean(completion)
    if not text.strip("`~ \t\n"):  # start alone is the question
        return NOTHING
    text = _begun(text, start)
    own = blocks(text)
    python = [each for each in own if each.label in _PYTHON and each.code.strip()] or [
        each for each in own if each.code.strip()
    ]
    if not python:
        return NOTHING if own else _unfenced(text, wanted)
    chosen = _joined(python, wanted)
    if len(python) > 1:
        return Answer(chosen, "several fences")
    if not python[0].closed:
        return Answer(_whole_lines(chosen, wanted), "unclosed fence")
    return Answer(chosen, "fence" if python[0].label else "bare fence")


def closed(completion: str, stop: str, start: str) -> str:
    """The completion with the stop string that ended it, if that closes a fence which would stay open without it.

    Else completion: what another stop string begins is no part of the answer.
    """
    before, after = (blocks(_begun(each, start)) for each in (completion, completion + stop))
    return completion + stop if before and not before[-1].closed and after[-1].closed else completion


def clean(completion: str) -> str:
    """The completion up to its first end token, with line feeds alone as line ends."""
    return until(line_feeds(completion), END_TOKENS)


def opens(text: str) -> bool:
    """Whether text begins with a fence."""
    return text.lstrip().startswith(("```", "~~~"))


def line_feeds(text: str) -> str:
    """text with line feeds alone as line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def until(text: str, stops: Iterable[str]) -> str:
    """text up to the first of stops."""
    places = [place for each in stops if (place := text.find(each)) >= 0]
    return text[: min(places)] if places else text


def blocks(text: str) -> list[Block]:
    """All fenced blocks in order. A fence ends at the next mark of its kind that stands at a line's start or closes a
    block of one line; without one it goes on to the end."""
    found = []
    place = 0
    while opening := _OPENING.search(text, place):
        mark = opening["mark"]
        closing = re.compile(rf"^[ \t]*{re.escape(mark)}|{re.escape(mark)}[ \t]*$", re.MULTILINE).search(
            text, opening.end()
        )
        end = closing.start() if closing else len(text)
        found.append(Block((opening["label"] or "").lower(), _level(text[opening.end() : end]), closing is not None))
        place = closing.end() if closing else len(text)
    return found


def defined(source: str) -> set[str]:
    """The names that source defines at its top; empty if it is no Python."""
    tree = _parsed(source)
    return set() if tree is None else _bound(tree)


def is_python(source: str) -> bool:
    """Whether source parses."""
    return _parsed(source) is not None


def _begun(text: str, start: str) -> str:
    """text behind start, if that opens a fence and text none of its own."""
    opened = "```" in start or "~~~" in start
    return start + text if opened and not (blocks(text) and _stands_alone(text)) else text


def _stands_alone(text: str) -> bool:
    """Whether the first mark opens a block: something follows it that a closing mark would not have."""
    first = _OPENING.search(text)
    if first is None:
        return False
    if first["label"]:
        return True
    before = text[: first.start()].strip()
    return not before or (not is_python(before) and len(blocks(text)) > 0 and blocks(text)[0].closed)


def _joined(found: Sequence[Block], wanted: str) -> str:
    """The block that defines wanted, else the longest, behind those others that define what it uses."""
    names = [defined(each.code) for each in found]
    by_name = [place for place, each in enumerate(names) if wanted and wanted in each]
    sizes = [len(each.code) for each in found]
    chosen = by_name[0] if by_name else sizes.index(max(sizes))
    needed = _used(found[chosen].code) - names[chosen]
    parts = []
    for place, each in enumerate(found):
        if place != chosen and names[place] & needed and wanted not in names[place]:
            parts.append(each.code)
            needed |= _used(each.code)
    return "\n\n".join([*parts, found[chosen].code])


def _unfenced(text: str, wanted: str) -> Answer:
    """Code that stands in no fence: from the line that begins it, prose behind it left out."""
    if is_python(text):
        return Answer(text, "no fence")
    starts = [found.start() for found in _CODE_LINE.finditer(text)]
    for start in starts[:STARTS_TRIED]:
        whole = _whole_lines(text[start:], wanted)
        if is_python(whole):
            return Answer(whole, "no fence")
    return Answer(text[starts[0] :] if starts else text, "no fence")


def _whole_lines(source: str, wanted: str) -> str:
    """source less the lines at its end without which it parses; all of it if none of that helps, or loses wanted."""
    if is_python(source):
        return source
    lines = source.split("\n")
    tried = min(LINES_TRIED, CHARACTERS_TRIED // (len(source) + 1))
    for end in range(len(lines) - 1, max(0, len(lines) - tried), -1):
        part = "\n".join(lines[:end])
        tree = _parsed(part) if part.strip() else None
        if tree is not None:
            return part if tree.body and (not wanted or wanted in _bound(tree)) else source
    return source


def _level(block: str) -> str:
    """A block that is indented as a whole, in a list say, moved to the left."""
    lines = block.split("\n")
    first = next((line for line in lines if line.strip()), "")
    margin = len(first) - len(first.lstrip(" "))
    if margin and not is_python(block) and all(line[:margin].strip() == "" for line in lines):
        levelled = "\n".join(line[margin:] for line in lines)
        if is_python(levelled):
            return levelled
    return block


def _parsed(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an answer's escapes are its own matter
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _bound(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return names


def _used(source: str) -> set[str]:
    tree = _parsed(source)
    if tree is None:
        return set()
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)} - set(dir(builtins))


_OPENING = re.compile(
    r"(?P<mark>`{3,}|~{3,})[ \t]*(?:(?P<label>[A-Za-z][\w+#.-]*)[ \t]*(?:\{[^\n]*\}[ \t]*)?(?=\n|$)"
    r"|(?P<inline>(?:python3?|py)[ \t]+))?[^\S\n]*\n?"
)
_PYTHON = ("", "python", "python3", "py", "py3", "python2", "ipython", "pycon", "starlark", "code")
_CODE_LINE = re.compile(r"^(?=(?:async[ \t]+def|def|class|import|from)[ \t]|@\w)", re.MULTILINE)
