"""HumanEval answered: a function is completed, and OpenAI's tests are run on it (Chen et al., 2021).

An answer is the whole function or, where it does not define it, what follows the prompt. In both cases the prompt comes
first, for its imports and helpers. `PAPER` has the layout of CodeRAG-Bench: raw text, an open fence, the prompt at the
end; of an answer it takes the first block.
"""

from collections.abc import Sequence
from dataclasses import replace

from coderet.benchmarks import extraction
from coderet.benchmarks.answering import Answer, Answering, Document, Layout, Parts, Problem, Program

STOP = ("\nclass ", "\ndef ", "\nprint(", "\nif __name__", "\n#", "\n```", "\nassert ", "<file_sep>")
PAPER_STOP = ("\nclass", "\ndef", "\nprint(", "\nif __name__", "<file_sep>")
FENCE, FENCE_STOP = "```python\n", ("\n```",)


def prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """Chat: the function in a fence and the answer begun with it, so that what is left to say is the body.

    Base: the documents as code, then the prompt.
    """
    asked = problem["prompt"].strip("\n")
    if layout == "base":
        shown = tuple(each.text.strip() for each in documents)
        return Parts("", shown, f"\n\n\n{asked}\n" if documents else f"{asked}\n", "\n\n\n", stop=STOP)
    ask = (
        f"Complete this Python function:\n\n{asked}\n\n"
        "Answer with the whole function, its body written out, in one code block and nothing else."
    )
    start = f"{FENCE}{asked.rstrip()}"  # a line feed at the end would be read as one that no blanks follow
    if not documents:
        return Parts("", (), ask, start=start, stop=FENCE_STOP)
    shown = tuple(each.text.strip() for each in documents)
    before, joiner = f"Here is code that may help.\n\n{FENCE}", f"\n```\n\n{FENCE}"
    return Parts(before, shown, f"\n```\n\n{ask}", joiner, start=start, stop=FENCE_STOP)


def read(problem: Problem, completion: str, layout: Layout) -> Answer:
    """Base: what follows the prompt, up to the first line of something else, unless it opens a fence of its own."""
    text = extraction.clean(completion)
    if layout == "base" and not extraction.opens(text):
        body = extraction.until(text, STOP)
        return Answer(body, "continuation") if body.strip() else extraction.NOTHING
    start = "" if layout == "base" else f"{FENCE}{problem['prompt'].strip()}"
    return extraction.code(completion, wanted=problem["entry_point"], start=start)


def programs(problem: Problem, answer: Answer) -> list[Program]:
    """One program: the prompt, the answer, the tests called with the function."""
    return [Program(source(problem, answer.code), f"{problem['test']}\n\ncheck({problem['entry_point']})\n")]


def source(problem: Problem, code: str) -> str:
    """The prompt, which is a function without a body, and behind it the whole one or the body."""
    apart = "\n\n\n" if problem["entry_point"] in extraction.defined(code) else "\n"
    return f"{problem['prompt'].rstrip()}{apart}{code}\n"


def reference(problem: Problem) -> str:
    return f"{FENCE}{problem['prompt']}{problem['canonical_solution']}\n```"


def negative(problem: Problem) -> str:
    return f"{FENCE}{problem['prompt']}    return None\n```"


def paper_prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """Texts of the documents, a blank line, an instruction, an open fence, the prompt without outer white space."""
    lead = "Please complete the following function based on the example above:\n" if documents else ""
    after = f"{lead}{FENCE}{problem['prompt'].strip()}"
    shown = tuple(each.text for each in documents)
    return Parts("", shown, f"\n\n{after}" if documents else after, stop=PAPER_STOP)


def paper_read(problem: Problem, completion: str, layout: Layout) -> Answer:
    """Cut at the stop strings and put behind the prompt; if that holds a fence of its own, what is in it.

    In chat layout the first Python block. A fence that only closes ends the code: the released code left it in, which
    made a syntax error of every answer that stopped properly.
    """
    cleaned = extraction.clean(completion)
    if layout == "chat":
        return extraction.code(cleaned, wanted=problem["entry_point"], start=FENCE + problem["prompt"].strip() + "\n")
    body = extraction.until(cleaned, PAPER_STOP)
    if "```python" in body:
        return extraction.code(body, wanted=problem["entry_point"])
    body = extraction.until(body, ("\n```", "```"))
    return Answer(body, "continuation") if body.strip() else extraction.NOTHING


ANSWERING = Answering(
    prompt=prompt,
    read=read,
    programs=programs,
    reference=reference,
    negative=negative,
    choices={"layout": "documents in fences, then the function, with which the answer is begun"},
)
PAPER = replace(
    ANSWERING,
    prompt=paper_prompt,
    read=paper_read,
    choices={"layout": "CodeRAG-Bench: texts of the documents, then an open fence and the function"},
)
