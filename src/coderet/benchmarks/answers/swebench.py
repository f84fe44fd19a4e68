"""SWE-bench Lite: an issue is answered with edits to the files that were retrieved (Jimenez et al., 2024).

The prompt is agentless (Xia et al., 2024): the issue, the files, and a form in which to say which lines become which
others. Answers come as such blocks or as a diff, whose line numbers models get wrong; both are read as edits, lines to
look for and lines to put there, and the patch is made here by `difflib` from the files as they are, so that it applies.
An edit whose lines stand nowhere, or in two places, makes no patch: it is counted, by cause.

Whether a patch resolves the issue is judged by the `swebench` package where Docker runs: `predictions` has its form.
Of several samples the patch that most of them make is taken (`majority`).
"""

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from coderet.benchmarks import extraction
from coderet.benchmarks.answering import Answer, Answering, Document, Layout, Parts, Problem

FIELDS = ("instance_id", "problem_statement", "patch")
"""What a problem is made of."""

SAMPLES = 21
"""As many answers as the paper votes among."""

SEARCH, MIDDLE, REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
_FENCE = "```python\n"
_EDIT = (
    r"[^\S\n]*<{5,9} ?SEARCH[^\n]*\n(?P<search>.*?)^[^\S\n]*={5,9}[^\S\n]*\n(?P<replace>.*?)^[^\S\n]*>{5,9} ?REPLACE"
)
_NAMED = (
    r"^[^\S\n]*(?:#+ *)?(?:\*\*)?`{0,2}(?P<path>[\w./+-]+\.\w+)`{0,2}(?:\*\*)?:?[^\S\n]*\n"
    r"(?:[^\S\n]*(?:`{3,}|~{3,})[^\n]*\n)?"
)
_BLOCK = re.compile(_NAMED + _EDIT, re.DOTALL | re.MULTILINE)
_MORE = re.compile("^" + _EDIT, re.DOTALL | re.MULTILINE)
_OLD = re.compile(r"^--- (?:a/)?(?P<path>[^\t\n]+)")


class Edit(NamedTuple):
    """The lines of search become those of replace in the file at path; an empty search makes a new file."""

    path: str
    search: str
    replace: str


class Patch(NamedTuple):
    """A patch in git's form; if it is empty, cause says why there is none."""

    text: str
    cause: str = ""


def prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """The issue, the files, and how edits are to be written."""
    before = f"An issue of a repository:\n\n{problem['problem_statement'].strip()}\n\n"
    if documents:
        before += f"Files of it:\n\n{_FENCE}"
    shown = tuple(f"# {each.title}\n{each.text.rstrip()}" for each in documents)
    form = f"### path/of/the/file.py\n{SEARCH}\nlines as they stand\n{MIDDLE}\nlines in their place\n{REPLACE}"
    ask = (
        "Find what has to change so that the issue is resolved, and answer with edits in this form alone:\n\n"
        f"```\n{form}\n```\n\nThe lines to look for must stand in the file once, so take in as many as that needs."
    )
    end = "\n\n" if layout == "base" else ""
    return Parts(before, shown, ("\n```\n\n" if documents else "") + ask + end, f"\n```\n\n{_FENCE}")


def paper_prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """As SWE-bench lays it out: issue, files with their lines counted from 0, an example of a patch, the request."""
    before = (
        "You will be provided with a partial code base and an issue statement explaining a problem to resolve.\n"
        f"<issue>\n{problem['problem_statement']}\n</issue>\n<code>\n"
    )
    shown = tuple(f"[start of {each.title}]\n{_numbered(each.text)}\n[end of {each.title}]" for each in documents)
    example = (
        "--- a/file.py\n+++ b/file.py\n@@ -1,3 +1,3 @@\n def area(width, height):\n-    return width + height\n"
        "+    return width * height\n \n"
    )
    after = (
        f"\n</code>\nHere is an example of a patch file:\n<patch>\n{example}</patch>\nI need you to solve the issue "
        "above by one patch file that I can apply with git apply. Respond below:\n"
    )
    return Parts(before, shown, after, stop=("\n<issue>",))


def read(problem: Problem, completion: str, layout: Layout) -> Answer:
    """The edits of an answer, in the form that was asked for."""
    text = extraction.clean(completion)
    found, form = list(blocks(text)), "search and replace"
    if not found:
        found, form = list(hunks(text)), "diff"
    return Answer("\n\n".join(map(written, found)), form) if found else extraction.NOTHING


def blocks(text: str) -> Iterator[Edit]:
    """The edits written as blocks; a block without a path is of the file before it."""
    path, place = "", 0
    while found := _MORE.search(text, place):
        named = _BLOCK.search(text, place)
        if named and named.start() <= found.start():
            path = named["path"]
            found = named
        if path:
            yield Edit(path, found["search"], found["replace"])
        place = found.end()


def hunks(text: str) -> Iterator[Edit]:
    """The edits of a diff: what a hunk keeps or takes out is looked for, what it keeps or puts in stands there then."""
    path, counted = "", False
    old: list[str] = []
    new: list[str] = []
    for line in [*text.split("\n"), "@@"]:
        named = _OLD.match(line)
        ends = line.startswith(("@@", "diff --git", "+++ ", "```", "</patch>")) or named is not None
        if ends:
            while old and new and old[-1] == new[-1] == "\n":  # blank lines behind a hunk may be the answer's own
                old.pop()
                new.pop()
            if path and counted and old != new:
                yield Edit(path, "".join(old), "".join(new))
            old, new, counted = [], [], line.startswith("@@")
            path = named["path"].strip() if named else path
        elif counted and line[:1] in (" ", "-", "+", ""):
            if line[:1] != "+":
                old.append(line[1:] + "\n")
            if line[:1] != "-":
                new.append(line[1:] + "\n")


def written(edit: Edit) -> str:
    """An edit as a block."""
    return f"### {edit.path}\n{SEARCH}\n{edit.search}{MIDDLE}\n{edit.replace}{REPLACE}"


def patch(files: Mapping[str, str], answer: Answer) -> Patch:
    """The patch that an answer's edits make of files, texts by path."""
    edits = list(blocks(answer.code))
    if not edits:
        return Patch("", "no edit")
    changed: dict[str, str] = {}
    for edit in edits:
        if edit.path not in files:
            return Patch("", "unknown file")
        text = changed.get(edit.path, files[edit.path])
        places = _places(text, edit.search)
        if len(places) != 1:
            return Patch("", "lines found nowhere" if not places else "lines found in several places")
        start, end = places[0]
        changed[edit.path] = text[:start] + edit.replace + text[end:]
    made = "".join(difference(path, files[path], text) for path, text in changed.items() if text != files[path])
    return Patch(made) if made else Patch("", "nothing changed")


def difference(path: str, old: str, new: str) -> str:
    """What git would print of a change to one file."""
    lines = difflib.unified_diff(_lines(old), _lines(new), f"a/{path}", f"b/{path}")
    body = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return f"diff --git a/{path} b/{path}\n{body}"


def majority(patches: Sequence[Patch]) -> Patch:
    """The patch that most samples made, the earliest of equals; the first cause if none made one."""
    votes = Counter(each.text for each in patches if each.text)
    if not votes:
        return patches[0] if patches else Patch("", "no sample")
    most = max(votes.values())
    return next(each for each in patches if votes.get(each.text) == most)


def predictions(model: str, patches: Mapping[str, Patch]) -> list[dict[str, str]]:
    """What the `swebench` package judges: a record an instance, an empty patch where there is none."""
    return [
        {"instance_id": instance, "model_name_or_path": model, "model_patch": each.text}
        for instance, each in patches.items()
    ]


def lines(records: Sequence[Mapping[str, str]]) -> str:
    """Records as JSON lines, the form of a predictions file."""
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records)


def tally(ballots: Mapping[str, Sequence[Patch]], chosen: Mapping[str, Patch]) -> dict[str, Any]:
    """How many samples made a patch and what kept the others from it, and how many instances have one."""
    samples = [each for patches in ballots.values() for each in patches]
    return {
        "instances": len(chosen),
        "instances_with_patch": sum(bool(each.text) for each in chosen.values()),
        "samples": len(samples),
        "samples_with_patch": sum(bool(each.text) for each in samples),
        "without_patch": dict(sorted(Counter(each.cause for each in samples if each.cause).items())),
    }


def files(corpus: pa.Table) -> dict[str, str]:
    """The files of an instance by path, from its corpus: a table of DOCUMENTS whose titles are the paths."""
    return dict(zip(corpus["title"].to_pylist(), corpus["text"].to_pylist(), strict=True))


def grade(problem: Problem, answer: Answer) -> dict[str, float]:
    """Whether the first edited file is one that the reference changes, and whether there is an edit at all."""
    paths = [each.path for each in blocks(answer.code)]
    gold = {each.path for each in hunks(problem["patch"])}
    return {"right_file": float(bool(paths) and paths[0] in gold), "edited": float(bool(paths))}


def reference(problem: Problem) -> str:
    return str(problem["patch"])


def negative(problem: Problem) -> str:
    return "The issue is resolved by changing nothing."


def _places(text: str, search: str) -> list[tuple[int, int]]:
    """Where the lines of search stand in text, from the beginning of a line; blanks at line ends are overlooked if
    they do not stand there as they are."""
    if not search.strip():
        return []
    exact = [(found, found + len(search)) for found in _starts(text, search)]
    if exact:
        return exact
    lines = text.splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    wanted = [line.rstrip() for line in search.removesuffix("\n").split("\n")]
    bare = [line.rstrip() for line in lines]
    ends = (place for place in range(len(bare) - len(wanted) + 1) if bare[place : place + len(wanted)] == wanted)
    return [(offsets[place], offsets[place + len(wanted)]) for place in ends]


def _starts(text: str, search: str) -> Iterator[int]:
    place = text.find(search)
    while place >= 0:
        if place == 0 or text[place - 1] == "\n":
            yield place
        place = text.find(search, place + 1)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _numbered(text: str) -> str:
    return "\n".join(f"{number} {line}" for number, line in enumerate(text.split("\n")))


_CHOICES = {"patch": "made here from the edits, never taken as it was written", "judge": "the swebench package"}
ANSWERING = Answering(
    prompt=prompt,
    read=read,
    grade=grade,
    reference=reference,
    negative=negative,
    metrics=("right_file", "edited"),
    choices={**_CHOICES, "prompt": "issue, files, edits by search and replace"},
)
PAPER = replace(
    ANSWERING,
    prompt=paper_prompt,
    choices={**_CHOICES, "prompt": "as SWE-bench has it, lines counted from 0"},
)
