"""Documentation to (query, code) pairs: what a reader is told just before a piece of example code, and the code.

A documented function is described by who wrote it; an example is led up to in the words of someone who wants something
done ("Read a file line by line:"), which is nearer to what people ask. Examples stand in Markdown and reStructuredText
files, in Python docstrings, and behind `@example` in the comments of JavaScript and TypeScript functions.

An example is a fenced block, a code directive or literal block of reStructuredText, or a run of doctest lines, of which
prompts and output are taken away. Its query is the last sentence of the paragraph right above it. Where that does not
stand by itself ("For example:", "This yields:"), it is the heading above, once; where that says nothing either
("Usage"), the summary of the docstring, once. In a docstring, whose sentences are mostly about the function, the
summary comes first, unless the sentence ends with a colon and so leads up to the example. Blocks that name another
language than those that `syntax` reads, or none and do not parse, are passed over: shell commands, output,
configuration.
"""

import ast
import contextlib
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
from tqdm import tqdm

from coderet.corpora import archives, mining, syntax
from coderet.records import PAIRS

PROSE = (".md", ".markdown", ".rst")


@dataclass(frozen=True, slots=True)
class Filters:
    """What makes an example a pair."""

    min_query_words: int = 3
    max_query_words: int = 40
    max_code_lines: int = 30  # blank ones not counted
    min_code_characters: int = 12


@dataclass(frozen=True, slots=True)
class Example:
    """A block of code in a text, and the text above it. Lines are counted from 1."""

    line: int
    language: str | None  # as the block names it; None where it names none
    code: str  # at the left margin
    paragraph: str  # right above it, on one line; empty if a heading or another block is
    heading: str  # the nearest above it, if no block has been under it before; else empty


def mine(
    sources: Mapping[str, Path],
    filters: Filters = Filters(),
    processes: int = 1,
    counts: Counter[str] | None = None,
) -> pa.Table:
    """The pairs of repositories (name -> folder or archive) as PAIRS, in the order given, by path in each.

    The name of a pair is that of the function, or of the class, whose documentation it stands in, else empty. counts is
    added to: why blocks were dropped, and those kept. DataError if a repository cannot be read. With several processes
    the calling script needs a `__main__` guard.
    """
    counts = Counter() if counts is None else counts
    tables = [PAIRS.empty_table()]
    jobs = [(name, path, filters) for name, path in sources.items()]
    with contextlib.ExitStack() as stack:
        mapped: Iterable[tuple[pa.Table, Counter[str]]] = map(_mine_one, jobs)
        if processes > 1:  # spawned as `mining` does it, and for its reason
            pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
            mapped = stack.enter_context(pool).map(_mine_one, jobs)
        for table, found in tqdm(mapped, desc="examples", unit="repository", total=len(jobs), disable=None):
            tables.append(table)
            counts.update(found)
    return pa.concat_tables(tables)


def examples(text: str) -> Iterator[Example]:
    """The blocks of code of a text in Markdown or reStructuredText, in order; marks of both are known everywhere."""
    lines = text.expandtabs(4).splitlines()
    paragraph: list[str] = []
    heading, ended, place = "", False, 0
    while place < len(lines):
        line = lines[place].rstrip()
        bare = line.lstrip()
        found: tuple[str | None, list[str], int] | None = None
        if fence := _FENCE.match(line):
            found = _fenced(lines, place, fence)
        elif bare.startswith(">>>"):
            found = _doctest(lines, place)
        elif directive := _DIRECTIVE.match(bare):
            found = _indented(lines, place, _before(line, bare), directive[1].strip() or None)
        elif paragraph and ended and paragraph[-1].endswith("::") and line and _before(line, bare) > 0:
            found = _indented(lines, place - 1, _before(line, bare) - 1, None)
        if found is not None:
            language, code, after = found
            told = " ".join(paragraph)
            yield Example(place + 1, language, "\n".join(code), told, heading)
            paragraph, heading, ended, place = [], "", True, after
            continue
        if not bare:
            ended = True
        elif _ADORNMENT.fullmatch(bare) and len(paragraph) == 1 and not ended:
            heading, paragraph = paragraph[0], []
        elif title := _TITLE.match(bare):
            heading, paragraph = title[1], []
        elif bare.startswith(_NO_PROSE):
            paragraph = []
        else:
            item = _ITEM.sub("", bare)
            paragraph = [item] if ended or item != bare else [*paragraph, item]
            ended = False
        place += 1


def plain(text: str) -> str:
    """A line without the marks of Markdown, reStructuredText and HTML; of a link or a role, what a reader sees."""
    for pattern, kept in _MARKS:
        text = pattern.sub(kept, text)
    return " ".join(text.split())


def _mine_one(job: tuple[str, Path, Filters]) -> tuple[pa.Table, Counter[str]]:
    repository, path, filters = job
    counts: Counter[str] = Counter()
    rows: dict[str, list[object]] = {name: [] for name in PAIRS.names}
    seen: set[tuple[str, str]] = set()
    files = dict(archives.members(path, PROSE + _DOCUMENTED))
    languages = Counter(filter(None, map(syntax.language_of, files)))
    spoken = max(languages, key=languages.__getitem__, default="python")  # by blocks that name no language
    for name, data in files.items():
        if _PASSED_OVER.search(name.lower()) or mining.path_cause(name, mining.Filters()):
            continue
        for owner, first_line, title, text, unnamed in _texts(name, data, spoken):
            for example in examples(text):
                cause, query, code, language = _judged(example, title, unnamed, filters)
                title = ""
                if cause == "kept" and (query, code) in seen:
                    cause = "repeated"
                counts[cause] += 1
                if cause != "kept":
                    continue
                seen.add((query, code))
                line = first_line + example.line - 1
                pair_id = f"{repository}/{name}:{line}:example"
                values = (pair_id, repository, name, language, owner, query, code, line, line + code.count("\n"))
                for column, value in zip(rows.values(), values, strict=True):
                    column.append(value)
    return pa.table(rows, PAIRS), counts


def _texts(name: str, data: bytes, language: str) -> Iterator[tuple[str, int, str, str, str]]:
    """(owner, first line, title, text, language of unnamed blocks) of each documentation text in a file."""
    if name.endswith(PROSE):
        yield "", 1, "", data.decode("utf-8", "replace"), language
    elif name.endswith(".py"):
        for owner, line, docstring in _docstrings(data):
            yield owner, line, mining.summary(docstring), docstring, "python"
    elif b"@example" in data:
        written = syntax.language_of(name) or language
        try:
            functions = syntax.functions(data, written)
        except syntax.Unreadable:
            return
        for function in functions:
            raw = function.raw_docstring or ""
            comment = "\n".join(_STAR.sub("", line) for line in raw.splitlines())
            for tag in _EXAMPLE.finditer(comment):
                line = function.start_line - comment[tag.start() :].count("\n") - 1
                body = tag[1].removesuffix("*/").rstrip()
                text = body if "```" in body else f"```\n{body.strip(chr(10))}\n```"
                yield function.qualified_name, max(1, line), mining.summary(function.docstring or ""), text, written


def _docstrings(data: bytes) -> Iterator[tuple[str, int, str]]:
    """(name, first line, text) of the docstrings of a module, its classes and functions that may hold an example."""
    if b">>>" not in data and b"::" not in data and b"```" not in data:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield getattr(node, "name", ""), node.body[0].lineno, docstring


def _judged(example: Example, title: str, spoken: str, filters: Filters) -> tuple[str, str, str, str]:
    """What an example is counted as; with query, code and language if that is "kept"."""
    named = (example.language or "").lower().split(",")[0].split()[:1]
    language = _LANGUAGES.get(named[0].strip("{}.")) if named else spoken
    if language is None or language not in syntax.LANGUAGES:
        return "other_language", "", "", ""
    code = textwrap.dedent(_without_prompts(example.code)).strip("\n")
    lines = sum(1 for line in code.splitlines() if line.strip())
    if not lines or len(code) < filters.min_code_characters:
        return "short_code", "", "", ""
    if lines > filters.max_code_lines:
        return "long_code", "", "", ""
    if not _is_code(code, language, sure=bool(named)):
        return "no_code", "", "", ""
    for query in _told(example, title):
        words = _WORD.findall(query)
        if sum(word.lower() not in _EMPTY_WORDS for word in words) >= 2:
            break
    else:
        return "no_text", "", "", ""
    if len(words) < filters.min_query_words:
        return "short_text", "", "", ""
    if len(words) > filters.max_query_words:
        return "long_text", "", "", ""
    return "kept", query, code, language


def _told(example: Example, title: str) -> list[str]:
    """What may be an example's query, the best first; each may be empty or say nothing."""
    sentence = _SENTENCES.split(plain(example.paragraph))[-1]
    leads_up = sentence.endswith(":")
    if _LEANS.match(sentence) or "://" in sentence:
        sentence = ""
    told = [sentence, plain(example.heading), plain(title)]
    return [each.rstrip(": ") for each in (told if leads_up or not title else [told[2], *told[:2]])]


def _is_code(code: str, language: str, sure: bool) -> bool:
    """Whether a block is code of the language that does something; sure: it names its language itself."""
    if language == "python":
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                body = ast.parse(code).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        return not all(
            isinstance(each, ast.Import | ast.ImportFrom)
            or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant | ast.Name | ast.Tuple | ast.BinOp))
            for each in body
        )
    if language in ("javascript", "typescript") and syntax.outline(code.encode(), language) is None:
        return False
    return sure or _ACTS.search(code) is not None


def _without_prompts(code: str) -> str:
    """A doctest or a console session without its prompts and its output; other code as it is."""
    lines = code.splitlines()
    if not any(_PROMPT.match(line) for line in lines):
        return code
    return "\n".join(line[match.end() :] for line in lines if (match := _PROMPT.match(line) or _MORE.match(line)))


def _fenced(lines: list[str], place: int, fence: re.Match[str]) -> tuple[str | None, list[str], int]:
    end = place + 1
    while end < len(lines) and not (
        lines[end].strip().startswith(fence[2]) and not lines[end].strip().strip(fence[2][0])
    ):
        end += 1
    return fence[3].strip() or None, lines[place + 1 : end], end + 1


def _doctest(lines: list[str], place: int) -> tuple[str, list[str], int]:
    """Doctest lines to the next prose: after a blank line only another prompt goes on."""
    end, found = place, []
    while end < len(lines):
        if lines[end].strip():
            found.append(lines[end].strip())
        elif not next((each for each in lines[end:] if each.strip()), "").lstrip().startswith(">>>"):
            break
        end += 1
    return "python", found, end


def _indented(
    lines: list[str], place: int, margin: int, language: str | None
) -> tuple[str | None, list[str], int] | None:
    """The block below line place that is indented by more than margin, without the directive's options."""
    start = place + 1
    while start < len(lines) and (_OPTION.match(lines[start]) or not lines[start].strip()):
        start += 1
    end = start
    while end < len(lines) and (not lines[end].strip() or _before(lines[end], lines[end].lstrip()) > margin):
        end += 1
    return (language, lines[start:end], end) if end > start else None


def _before(line: str, bare: str) -> int:
    return len(line) - len(bare)


_DOCUMENTED = (".py", *syntax.LANGUAGES["javascript"].extensions, *syntax.LANGUAGES["typescript"].extensions)
_PASSED_OVER = re.compile(
    r"(?:^|/)(?:changelog|changes|history|news|release|whats_?new|licen[cs]e|authors|migrat)[^/]*(?:/|$)"
    r"|(?:^|/)(?:dist|umd|fesm\d*|bundles?)/|[._-]min\.[cm]?js$"
)
_FENCE = re.compile(r"^([ ]*)(`{3,}|~{3,})([^`]*)$")
_DIRECTIVE = re.compile(r"\.\. (?:code-block|code|sourcecode|ipython|doctest|testcode|jupyter-execute)::(.*)")
_OPTION = re.compile(r"^\s+:[\w-]+:")
_ADORNMENT = re.compile(r"([=\-~^\"'`*+#.:_])\1{2,}")
_TITLE = re.compile(r"#{1,6}\s+(.*?)\s*#*$")
_NO_PROSE = ("|", "<", "..", ":", "[!", "![", "@", "+--")
_ITEM = re.compile(r"^(?:[-*+]|\d+[.)]|#\.)\s+")
_STAR = re.compile(r"^\s*(?:/\*\*?|\*(?!/)) ?")
_EXAMPLE = re.compile(r"@example\b[ \t]*(?:<caption>.*?</caption>)?(.*?)(?=^\s*@\w|\Z)", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^\s*>>> ?")
_MORE = re.compile(r"^\s*\.\.\.(?: |$)")
_ACTS = re.compile(r"[\w)\]]\s*\(|=|;\s*$", re.MULTILINE)
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_WORD = re.compile(r"[^\W_][\w'’.-]*")
_MARKS = tuple(
    (re.compile(pattern), kept)
    for pattern, kept in (
        (r"!\[[^\]]*\]\([^)]*\)", ""),
        (r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])", r"\1"),
        (r":[\w:+-]+:`(?:[^`<]*\.)?~?!?(?:[\w.]+\.)?([^`<]+?)\s*(?:<[^`>]*>)?`", r"\1"),
        (r"`+([^`<]+?)\s*(?:<[^`>]*>)?`+_{0,2}", r"\1"),
        (r"\{@\w+\s+([^}|]+?)(?:\|[^}]*)?\}", r"\1"),
        (r"\[#?\w+\]_", ""),
        (r"</?[A-Za-z][^>]*>", ""),
        (r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", r"\2"),
        (r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])", r"\1"),
        (r"\|(\w[\w .]*)\|", r"\1"),
        (r"::$", ":"),
    )
)
_LANGUAGES = {
    **{name: name for name in syntax.LANGUAGES},
    **dict.fromkeys(("py", "python3", "pycon", "ipython", "ipython3", "py3", "default"), "python"),
    **dict.fromkeys(("js", "jsx", "mjs", "node", "es6", "ecmascript"), "javascript"),
    **dict.fromkeys(("ts",), "typescript"),
    **dict.fromkeys(("rb",), "ruby"),
    **dict.fromkeys(("golang",), "go"),
}
# A sentence that begins so leans on the one before.
_LEANS = re.compile(
    r"(?:th(?:is|at|ese|ose|ey|en|us)|it|its|here|however|but|or|and|also|otherwise|instead|similarly|likewise"
    r"|alternatively|in (?:contrast|this|that|the|other)|by (?:default|design|contrast)|note|which|where|with this)\b",
    re.IGNORECASE,
)
# A sentence of these alone leads to an example without saying of what.
_EMPTY_WORDS = frozenset(
    """
    a above advanced after again all also an and any are as at basic be been before below but by can case cases code
    consider could demo do does doing done e.g each either else equivalent etc example examples few first following
    follows for from get getting give given gives has have here how however i i.e if in install installation instead
    into introduction is it its just let let's like look looks make may might more most need new next not note now of on
    once one only or other our output over overview own quick quickly quickstart result results same sample see should
    show shown shows simple simply snippet so some something start started syntax than that the their them then there
    these they this those thus to try tutorial two typical typically usage use used using very want was way we well what
    when where which while will with work works would write you your
    """.split()
)
