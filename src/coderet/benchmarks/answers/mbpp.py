"""MBPP answered: a function is written from a sentence and its asserts, which are then run (Austin et al., 2021).

The asserts stand in the prompt, for only they name the function. A program is the answer, then the task's setup, then
the asserts: two setups use a class that the answer defines. `PAPER` has CodeRAG-Bench's layout and its reading, which
cuts at the stop strings before it looks for a fence.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from coderet.benchmarks import extraction
from coderet.benchmarks.answering import Answer, Answering, Document, Layout, Parts, Problem, Program
from coderet.benchmarks.extraction import line_feeds

STOP = ("\nprint(", "\nassert ", "\n>>>", "\n```", "\nif __name__", "\n# Task", "<file_sep>")
PAPER_STOP = ("\nprint", "\nclass", "\n>>>", "\n**", "# Write a", "# Test")
FENCE, FENCE_STOP = "```python\n", ("\n```",)


def prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """Chat: the task, its asserts in a fence and the answer begun with one. Base: all of it as comments and code."""
    tests = "\n".join(each.strip() for each in problem["test_list"])
    if layout == "base":
        commented = "\n".join(f"# {line}" for line in tests.splitlines())
        after = f"# {problem['text'].strip()}\n# It passes these tests:\n{commented}\n"
        shown = tuple(_text(each) for each in documents)
        return Parts("", shown, f"\n\n\n{after}" if documents else after, "\n\n\n", stop=STOP)
    ask = (
        f"{problem['text'].strip()}\nYour code must pass these tests:\n\n{FENCE}{tests}\n```\n\n"
        "Answer with the code in one code block, without the tests, nothing else."
    )
    if not documents:
        return Parts("", (), ask, start=FENCE, stop=FENCE_STOP)
    shown = tuple(_text(each) for each in documents)
    before, joiner = f"Here is code that may help.\n\n{FENCE}", f"\n```\n\n{FENCE}"
    return Parts(before, shown, f"\n```\n\n{ask}", joiner, start=FENCE, stop=FENCE_STOP)


def read(problem: Problem, completion: str, layout: Layout) -> Answer:
    text = extraction.clean(completion)
    if layout == "base" and not extraction.opens(text):
        body = extraction.until(text, STOP)
        return Answer(body, "continuation") if body.strip() else extraction.NOTHING
    return extraction.code(completion, wanted=tested(problem), start="" if layout == "base" else FENCE)


def tested(problem: Problem) -> str:
    """The function that the asserts call: the first called name that the reference defines; empty if there is none."""
    defined = extraction.defined(line_feeds(problem["code"]))
    called = re.findall(r"([A-Za-z_]\w*)\s*\(", " ".join(problem["test_list"]))
    return next((name for name in called if name in defined), "")


def programs(problem: Problem, answer: Answer) -> list[Program]:
    """One program: the answer; setup and asserts are its check. None where a task has no asserts.

    Task 126 asks for a function called `sum`: the tested name is the answer's, though it hides a builtin.
    """
    if not problem["test_list"]:
        return []
    tests = [*problem.get("test_imports", ()), line_feeds(problem.get("test_setup_code", "")), *problem["test_list"]]
    name = tested(problem)
    source = f"{answer.code}\n" if answer.code.strip() else ""
    return [Program(source, "\n".join(line_feeds(each) for each in tests), tested=(name,) if name else ())]


def reference(problem: Problem) -> str:
    return f"{FENCE}{line_feeds(problem['code'])}\n```"


def negative(problem: Problem) -> str:
    """The reference with its tested function put out of action."""
    idle = f"def {tested(problem) or 'main'}(*_, **__):\n    return object()"
    return f"{FENCE}{line_feeds(problem['code'])}\n\n\n{idle}\n```"


def paper_prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """Texts of the documents, the task as a comment, the asserts under a label, a label for the code."""
    tests = "\n".join(problem["test_list"])
    after = f"\n# {problem['text']}\n# Test cases:\n{tests}\n# Code:\n"
    return Parts("", tuple(each.text for each in documents), after, stop=PAPER_STOP)


def paper_read(problem: Problem, completion: str, layout: Layout) -> Answer:
    """Cut first, then the fence: an answer that prints or tests before its fence closes loses what follows."""
    cut = extraction.until(extraction.clean(completion), PAPER_STOP)
    return extraction.code(cut, wanted=tested(problem)) if cut.strip() else extraction.NOTHING


def _text(document: Document) -> str:
    return line_feeds(document.text).strip()


ANSWERING = Answering(
    prompt=prompt,
    read=read,
    programs=programs,
    reference=reference,
    negative=negative,
    choices={"layout": "documents in fences, then the task and its asserts; the answer is begun with a fence"},
)
PAPER = replace(
    ANSWERING,
    prompt=paper_prompt,
    read=paper_read,
    choices={
        "layout": "CodeRAG-Bench: texts of the documents, the task as a comment, its asserts; cut before the fence"
    },
)
