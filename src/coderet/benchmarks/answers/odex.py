"""ODEX: a function is to be completed so that it does what one sentence says (Wang et al., 2022, arXiv 2212.10481).

A task gives the head of a function, how its body begins (`return ` or nothing), and what comes behind the hole, its
`suffix`. A fifth of the tasks have one and fail without it; the paper's code leaves it out, here it is kept, under the
paper's prompt too. Tabs become four blanks, for a body that mixes both does not parse. The tests are the benchmark's
own: what `test_start` brings, the assertions, and their call.

A model that follows instructions is shown the function with its hole and asked for all of it; one that continues a text
goes on where the hole begins.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from coderet.benchmarks import extraction
from coderet.benchmarks.answering import Answer, Answering, Document, Layout, Parts, Problem, Program

FIELDS = ("intent", "prompt", "suffix", "canonical_solution", "test_start", "test", "entry_point", "library")
"""What a problem is made of; its id is its query's, for task ids are not unique."""

KNOWN_FAILURES = {
    "23_22676": "wants the network, and urllib.request imported",
    "24_22676": "wants the network, and urllib.request imported",
    "25_22676": "wants the network",
    "26_22676": "wants the network",
    "224_35622945": "a flag within a regular expression, which Python refuses since 3.11",
    "340_2805231": "wants the network",
    "395_7243750": "wants the network, and urllib.request imported",
}
"""Reference solutions of the English tasks that do not pass."""

WEAK = (
    *("9_8315209", "15_29784889", "29_41861705", "31_16344756", "40_13745648", "56_20211942", "61_17438096"),
    *("106_12842997", "122_299446", "139_8519922", "160_20546419", "192_3777301", "193_3777301", "306_24642040"),
    *("331_303200", "347_10960463", "414_6420361", "428_38081866"),
)
"""Tasks whose tests a function that returns None passes: they look at nothing else, or want None."""

MODULES = ("numpy", "pandas", "matplotlib.pyplot", "scipy.stats", "sqlalchemy", "requests", "bs4", "flask", "django")
"""What takes long to import."""

STOP = ("\nclass ", "\ndef ", "\n#", "\n@", "\nprint", "\nif ", "\n```")
PAPER_STOP = ("###", "\nclass", "\ndef", "\n#", "\n@", "\nprint", "\nif")
SECONDS = 10.0
MEMORY = 4 << 30  # NumPy and matplotlib reserve more than they use
ENVIRONMENT = "odex"

_TAB = 4
_MARGIN = re.compile(r"^[ \t]+", re.M)
_HOLE = "# your code"
_FENCE = "```python\n"


def prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """Documentation, then the function with its sentence as docstring."""
    head, begin = _head(problem)
    function = f'{head}\n    """{problem["intent"]}"""\n'
    if layout == "base":
        before = "# Documentation\n\n" if documents else ""
        texts = tuple(f"{each.title}\n{each.text.strip()}\n" for each in documents)
        after = "\n\n# Code\n\n" if documents else ""
        return Parts(before, texts, after, start=function + begin, stop=STOP)
    hole = f"{begin}...  {_HOLE}" if begin.strip() else f"    ...  {_HOLE}"
    return Parts(
        "Documentation that may be of use:\n\n" if documents else "",
        tuple(f"{each.title}\n{each.text.strip()}\n" for each in documents),
        ("\n\n" if documents else "")
        + "Complete this Python function so that it does what its docstring says. Answer with the whole function, and "
        f"what it imports, in one code block, nothing else.\n\n{_FENCE}{function}{hole}{_suffix(problem)}\n```",
        start=_FENCE,
        stop=("\n```",),
    )


def paper_prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """As CodeRAG-Bench lays it out, alike for all models: the documents by a line, the function where it breaks off."""
    head, begin = _head(problem)
    return Parts(
        "Please refer to the following documentation to generate the code:\n" if documents else "",
        tuple(each.text for each in documents),
        "\n" if documents else "",
        start=f'{head}\n    """{problem["intent"]}"""\n{begin}',
        stop=PAPER_STOP,
    )


def read(problem: Problem, completion: str, layout: Layout) -> Answer:
    """The whole function: as the answer brings it, or put together from prompt, body and suffix."""
    if layout == "base" and "```" not in completion:
        body = extraction.until(extraction.clean(completion), STOP)
        return Answer(completed(problem, body), "continuation") if body.strip() else extraction.NOTHING
    name = problem["entry_point"]
    found = extraction.code(completion, wanted=name, start=_FENCE if layout == "chat" else "")
    if not found.code.strip() or re.search(rf"^(async )?def {re.escape(name)}\b", found.code, re.M):
        return found
    return Answer(completed(problem, found.code), found.form)


def read_paper(problem: Problem, completion: str, layout: Layout) -> Answer:
    """The first fence if there is one, then cut at the paper's stop strings."""
    text = extraction.clean(completion)
    found = extraction.code(text) if "```" in text else Answer(text, "continuation")
    if re.match(rf"\s*def {re.escape(problem['entry_point'])}\b", found.code):
        return found
    body = extraction.until(found.code, PAPER_STOP)
    return Answer(completed(problem, body), found.form) if body.strip() else extraction.NOTHING


def completed(problem: Problem, body: str) -> str:
    """The function with body in its hole: a statement, an expression after `return`, or lines with their blanks."""
    head, begin = _head(problem)
    body = _without_tabs(body).rstrip()
    if begin.strip() == "return" and re.match(r"\s*(return\b|\w[\w.\[\]'\"]* = |import |from )", body):
        begin = ""  # the answer brings a body of its own, with its `return`
        body = "\n".join("    " + line for line in _flush(body).split("\n"))
    return f"{head}\n{begin}{body}{_suffix(problem)}\n"


def programs(problem: Problem, answer: Answer) -> list[Program]:
    """One, with all assertions; none for a task without. What the tests import stands behind the answer, which uses it.

    Where tests put mocks into modules, they are taken out again: else the sandbox holds the answer guilty of them.
    """
    if not problem["test"]:
        return []
    brought, _, head = problem["test_start"].rpartition("def check(")
    tests = f"def check({head}{''.join(problem['test'])}"
    mocked = _mocked(brought, tests)
    kept = "".join(f"_kept_{number} = {name}\n" for number, name in enumerate(mocked))
    back = "".join(f"    {name} = _kept_{number}\n" for number, name in enumerate(mocked))
    call = f"check({problem['entry_point']})\n"
    return [
        Program(
            f"{answer.code}\n{brought}" if answer.code.strip() else "",
            f"{kept}{tests}\ntry:\n    {call}finally:\n{back}" if mocked else f"{tests}\n{call}",
            modules=MODULES,
            environment=ENVIRONMENT,
            seconds=SECONDS,
            memory=MEMORY,
        )
    ]


def reference(problem: Problem) -> str:
    """The benchmark's own function, whole."""
    whole = _without_tabs(f"{problem['prompt']}{problem['canonical_solution']}{problem['suffix']}")
    return f"{_FENCE}{whole}\n```"


def negative(problem: Problem) -> str:
    """The same function with nothing in it."""
    return f"{_FENCE}{_head(problem)[0]}\n    return None\n```"


def _head(problem: Problem) -> tuple[str, str]:
    """The function's first line, and how its body begins."""
    head, _, begin = _without_tabs(problem["prompt"]).partition("\n")
    return head, begin


def _suffix(problem: Problem) -> str:
    return _without_tabs(problem["suffix"])


def _mocked(brought: str, tests: str) -> list[str]:
    """What tests assign to in the modules that were brought, such as `requests.get`, each once."""
    modules = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(ast.parse(brought))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    names = [
        ast.unparse(target)
        for node in ast.walk(ast.parse(tests))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    ]
    return list(dict.fromkeys(each for each in names if each.partition(".")[0] in modules))


def _without_tabs(text: str) -> str:
    """text with blanks for the tabs that indent its lines; those within a line may stand in a string."""
    return _MARGIN.sub(lambda margin: margin[0].expandtabs(_TAB), text)


def _flush(body: str) -> str:
    """body, its lines moved left by the blanks of the first one."""
    lines = body.strip("\n").split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[margin:] if not line[:margin].strip() else line.lstrip() for line in lines)


_CHOICES = {
    "suffix": "kept, where the paper's code leaves it out",
    "tabs": "four blanks",
    "time": f"{SECONDS:g} s, imports not counted",
}
ANSWERING = Answering(
    prompt=prompt,
    read=read,
    programs=programs,
    reference=reference,
    negative=negative,
    environment=ENVIRONMENT,
    known=KNOWN_FAILURES,
    weak=WEAK,
    choices={**_CHOICES, "prompt": "documentation, the function with its hole, the whole function asked for"},
)
PAPER = replace(
    ANSWERING,
    prompt=paper_prompt,
    read=read_paper,
    choices={**_CHOICES, "prompt": "as CodeRAG-Bench has it, no chat"},
)
