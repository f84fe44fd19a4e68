"""LiveCodeBench: problems of programming contests, judged by what a program writes or a function returns.

A question has public tests, which its statement shows, and private ones (Jain et al., 2024, arXiv 2403.07974). Both
judge here; the paper's code runs the public ones alone, as `PAPER` does, so its figures are not the board's. A test is
of `stdin` style, an input and what is to be written, or of `functional` style, arguments and a value, both as JSON, for
a method of the class `Solution`, or a function, that the starter code names. Every test is a program of its own, so
that none sees what another left and each has its time.

What is written counts as right if its lines are, blanks around them aside, or if they are the same numbers.
"""

import base64
import binascii
import json
import pickletools
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from coderet.benchmarks import extraction
from coderet.benchmarks.answering import Answer, Answering, Document, Layout, Parts, Problem, Program
from coderet.records import DataError

FIELDS = ("question_content", "starter_code", "public_test_cases", "private_test_cases", "metadata")
"""What a problem is made of, as LiveCodeBench has it: tests and metadata as JSON, private tests packed."""

SECONDS = 6.0
STDIN, FUNCTIONAL = "stdin", "functional"
STOP = ("\n```",)
PRELUDE = (
    "import bisect, collections, copy, datetime, functools, heapq, itertools, json, math, operator, random, re, string"
    ", sys\nfrom bisect import *\nfrom collections import *\nfrom functools import *\nfrom heapq import *\n"
    "from itertools import *\nfrom math import ceil, comb, floor, gcd, inf, isqrt, log, log2, sqrt\n"
    "from typing import *\nsys.setrecursionlimit(50000)\n"
)
"""What the contests' own environment has at hand; in front of every answer."""

_FENCE = "```python\n"
_FUNCTION = re.compile(r"^[ \t]*def (?!__)(\w+)\(", re.MULTILINE)
_TEXT = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"}
_SILENT = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}


class Test(NamedTuple):
    """style: STDIN or FUNCTIONAL; given and wanted: texts, of a functional test JSON, an argument a line."""

    style: str
    given: str
    wanted: str


def prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """Solved problems, the question, and how an answer is to look; the answer is begun with a fence."""
    starter = problem["starter_code"].rstrip()
    how = (
        f"Complete this code so that it solves the problem:\n\n{_FENCE}{starter}\n```"
        if starter
        else "Write a Python program that reads from standard input and writes the answer to standard output."
    )
    after = f"{problem['question_content'].strip()}\n\n{how}\n\nAnswer with the whole code in one code block.\n"
    if not documents:
        return Parts("", (), after, start=_FENCE, stop=STOP)
    shown = tuple(each.text.strip() for each in documents)
    before, joiner = f"Here is code that may help.\n\n{_FENCE}", f"\n```\n\n{_FENCE}"
    return Parts(before, shown, f"\n```\n\n{after}", joiner, start=_FENCE, stop=STOP)


def paper_prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """As CodeRAG-Bench lays it out: documents by a line, LiveCodeBench's own order of question, format and answer."""
    starter = problem["starter_code"].strip("\n")
    form = (
        "### Format: Use the starter code below and put your solution into it."
        if starter
        else "### Format: Read the inputs from stdin, solve the problem and write the answer to stdout."
    )
    after = (
        "Solve the programming problem below with a correct Python program that passes all tests.\n\n"
        f"### Question:\n{problem['question_content']}\n\n{form}\n{_FENCE}{starter or '# YOUR CODE HERE'}\n```\n\n"
        "### Answer:\n"
    )
    return Parts("", tuple(each.text for each in documents), ("\n" if documents else "") + after)


def read(problem: Problem, completion: str, layout: Layout) -> Answer:
    """The code of whatever fence it stands in; the paper's code gave back one letter a line."""
    return extraction.code(completion, wanted=_wanted(problem), start=_FENCE)


def paper_read(problem: Problem, completion: str, layout: Layout) -> Answer:
    return extraction.code(completion, wanted=_wanted(problem))


def programs(problem: Problem, answer: Answer) -> list[Program]:
    """A program a test, public ones first."""
    return _programs(problem, answer, tests(problem))


def public_programs(problem: Problem, answer: Answer) -> list[Program]:
    return _programs(problem, answer, tests(problem, private=False))


def tests(problem: Problem, private: bool = True) -> list[Test]:
    """The public tests of a problem, and the private ones; DataError if they cannot be read."""
    found = _listed(problem["public_test_cases"])
    if private and problem["private_test_cases"]:
        found += _listed(_unpacked(problem["private_test_cases"]))
    try:
        return [Test(each["testtype"], each["input"], each["output"]) for each in found]
    except (KeyError, TypeError) as error:
        raise DataError(f"a test of LiveCodeBench lacks {error}; wanted testtype, input and output") from None


@dataclass(frozen=True, slots=True)
class SameOutput:
    """What a program of stdin style must have written. Equal ones compare equal, so equal programs run once."""

    wanted: str

    def __call__(self, output: str) -> bool:
        return same_output(output, self.wanted)


def same_output(found: str, wanted: str) -> bool:
    """Whether the lines are equal, white space around them aside, or hold the same numbers."""
    own, other = ([line.strip() for line in text.strip().split("\n")] for text in (found, wanted))
    if own == other:
        return True
    return len(own) == len(other) and all(map(_same_line, own, other))


def _same_line(own: str, other: str) -> bool:
    if own == other:
        return True
    try:
        return [Decimal(each) for each in own.split()] == [Decimal(each) for each in other.split()]
    except InvalidOperation:
        return False


def _programs(problem: Problem, answer: Answer, found: Sequence[Test]) -> list[Program]:
    if not answer.code.strip():
        return [Program("", "pass")] if found else []
    source = answer.code if re.search(r"^from __future__ ", answer.code, re.MULTILINE) else PRELUDE + answer.code
    return [_program(problem, source, each) for each in found]


def _program(problem: Problem, source: str, test: Test) -> Program:
    if test.style == STDIN:
        return Program(source, stdin=test.given, accepts=SameOutput(test.wanted), seconds=SECONDS)
    return Program(source, "\n".join(_call(_function(problem), test)), seconds=SECONDS)


def _call(function: str, test: Test) -> Iterator[str]:
    """The check of a functional test: tuples count as lists, for JSON has no tuples."""
    arguments = [json.loads(line) for line in test.given.split("\n") if line.strip()]
    yield "import json"
    yield "def plain(value):"
    yield "    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value"
    yield f"arguments, wanted = json.loads({json.dumps([arguments, json.loads(test.wanted)])!r})"
    yield f"found = Solution().{function}(*arguments) if 'Solution' in globals() else {function}(*arguments)"
    yield "assert plain(found) == plain(wanted), 'returned something else'"
    yield ""


def _function(problem: Problem) -> str:
    """The name of the function that is called: metadata's, else the starter code's."""
    told: Any = json.loads(problem["metadata"] or "{}")
    name = told.get("func_name") if isinstance(told, dict) else None
    found = _FUNCTION.search(problem["starter_code"])
    if not name and not found:
        raise DataError("a problem of LiveCodeBench has a functional test and names no function; wanted func_name")
    return str(name or (found and found[1])).rpartition(".")[2]


def _wanted(problem: Problem) -> str:
    return "Solution" if "class Solution" in problem["starter_code"] else ""


def _listed(text: str) -> list[Any]:
    try:
        found = json.loads(text or "[]")
    except ValueError as error:
        raise DataError(f"the tests of a problem of LiveCodeBench are not JSON ({error}); fetch it again") from None
    if not isinstance(found, list):
        raise DataError(f"the tests of a problem of LiveCodeBench are {type(found).__name__}, wanted a list")
    return found


def _unpacked(text: str) -> str:
    """Private tests: JSON, or JSON pickled, deflated and in base 64. Nothing that a pickle says is run."""
    if text.lstrip().startswith("["):
        return text
    try:
        content = zlib.decompress(base64.b64decode(text))
        found = [(opcode.name, value) for opcode, value, _ in pickletools.genops(content)]
    except (binascii.Error, zlib.error, ValueError) as error:
        raise DataError(f"private tests of LiveCodeBench cannot be unpacked ({error}); fetch them again") from None
    texts = [value for name, value in found if name in _TEXT]
    if len(texts) != 1 or any(name not in _TEXT | _SILENT for name, _ in found):
        raise DataError("private tests of LiveCodeBench are a pickle of something else than one text; fetch them again")
    return str(texts[0])


_CHOICES = {"time": f"{SECONDS:g} s a test", "equal": "lines without blanks around them, or the same numbers"}
ANSWERING = Answering(
    prompt=prompt,
    read=read,
    programs=programs,
    choices={**_CHOICES, "tests": "public and private"},
)
PAPER = replace(
    ANSWERING,
    prompt=paper_prompt,
    read=paper_read,
    programs=public_programs,
    choices={**_CHOICES, "tests": "public alone, as the paper's code has it", "prompt": "as CodeRAG-Bench has it"},
)
