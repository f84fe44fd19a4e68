"""DS-1000: what is missing of a script that uses a data library (Lai et al., 2022, arXiv 2211.11501).

A task is a prompt that breaks off where the solution belongs, at one of three marks, and a test of its own: a module
that puts the solution into a script at `[insert]`, runs it on inputs and compares what it leaves, and sometimes looks
at its words too. That module is the judge, as its authors wrote it; a task is judged by its own, where the paper's code
took the first one with the same reference solution, which for 38 is another's.

Some solutions go into a function's body. An answer without its indentation, or one that brings the function whole, is
moved there where it would not parse otherwise; nothing else of an answer is changed.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from coderet.benchmarks import extraction
from coderet.benchmarks.answering import Answer, Answering, Document, Layout, Parts, Problem, Program

FIELDS = ("prompt", "reference_code", "code_context")
"""What a problem is made of, and its `library`."""

KNOWN_FAILURES = {
    **dict.fromkeys(
        ("519_Matplotlib_8", "565_Matplotlib_54", "566_Matplotlib_54", "567_Matplotlib_54"), "loads seaborn's tips"
    ),
    "539_Matplotlib_28": "loads seaborn's planets",
    **dict.fromkeys(
        (
            *("577_Matplotlib_66", "598_Matplotlib_87", "624_Matplotlib_113", "629_Matplotlib_118"),
            *("650_Matplotlib_139", "661_Matplotlib_150"),
        ),
        "loads seaborn's penguins",
    ),
    **dict.fromkeys(("654_Matplotlib_143", "655_Matplotlib_143", "656_Matplotlib_143"), "loads seaborn's exercise"),
    "819_Sklearn_0": "fetches the houses of California",
}
"""Reference solutions that do not pass without files from the network."""

MODULES = {
    "Pandas": ("numpy", "pandas", "yaml"),
    "Numpy": ("numpy", "pandas", "scipy.stats", "sklearn.preprocessing"),
    "Matplotlib": (
        *("numpy", "pandas", "matplotlib.pyplot", "matplotlib.pylab", "matplotlib.backends.backend_agg", "seaborn"),
        *("PIL.Image", "PIL.ImageMath", "PIL.BmpImagePlugin", "PIL.GifImagePlugin", "PIL.JpegImagePlugin"),
        "PIL.PpmImagePlugin",
    ),
    "Tensorflow": ("numpy", "tensorflow"),
    "Scipy": (
        *("numpy", "pandas", "scipy.optimize", "scipy.stats", "scipy.spatial", "scipy.sparse.linalg"),
        *("scipy.integrate", "scipy.interpolate", "scipy.ndimage", "scipy.fft", "matplotlib.pyplot"),
    ),
    "Sklearn": (
        *("numpy", "pandas", "sklearn.datasets", "sklearn.ensemble", "sklearn.svm", "sklearn.pipeline"),
        *("sklearn.feature_extraction.text", "sklearn.model_selection", "sklearn.linear_model", "sklearn.cluster"),
        *("sklearn.decomposition", "xgboost.sklearn", "statsmodels.api"),
    ),
    "Pytorch": (
        *("numpy", "pandas", "torch", "torch.distributed.tensor", "torch._dynamo", "sklearn.datasets"),
        "gensim.models",
    ),
}
"""What takes long to import, by library: also what torch's comparisons and optimisers and matplotlib's pictures import
when first used, which would be half a second of each such program's own time."""

STOP = ("</code>", "# SOLUTION END", "\nEND SOLUTION", "### END SOLUTION", "\n```")
PAPER_STOP = ("</code>", "# SOLUTION END")
SECONDS = 60.0
MEMORY = 8 << 30  # address space: tensorflow and torch reserve more than they use
ENVIRONMENT = "ds1000"

_INDENTED_MARK = re.compile(r"\n[ \t]+### BEGIN SOLUTION\s*$")
_MARKS = ("# SOLUTION START", "### BEGIN SOLUTION", "BEGIN SOLUTION")
_CONTEXT = re.compile(r'^exec_context = r"""(.*?)"""', re.DOTALL | re.MULTILINE)
_INSERT = "[insert]"
_INDENT = "    "
_FENCE = "```python\n"


def prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """Documentation, then the task's own prompt, which ends where the solution begins."""
    texts = tuple(f"{each.title}\n{each.text.strip()}\n" for each in documents)
    if layout == "base":
        before, between = ("# Documentation\n\n", "\n\n") if documents else ("", "")
        return Parts(before, texts, between + problem["prompt"], stop=STOP)
    return Parts(
        "Documentation that may be of use:\n\n" if documents else "",
        texts,
        ("\n\n" if documents else "")
        + f"{problem['prompt'].rstrip()}\n\n---\nWrite what is missing there and nothing that stands above: your code "
        f"is put where the task breaks off{_where(problem)}. Answer with it in one code block, without explanation.",
        start=_FENCE,
        stop=("\n```",),
    )


def paper_prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """As CodeRAG-Bench lays it out, alike for all models."""
    return Parts(
        "Please refer to the following documentation to generate the code:\n" if documents else "",
        tuple(each.text for each in documents),
        ("\n\n\n" if documents else "") + problem["prompt"],
        stop=PAPER_STOP,
    )


def read(problem: Problem, completion: str, layout: Layout) -> Answer:
    """A fence, or `<code>`; else, for a model that continues, all up to a mark of the end."""
    text = extraction.clean(completion)
    if layout == "base" and "```" not in text:
        return _placed(problem, Answer(_continued(text, STOP), "continuation"))
    if "```" not in text and "<code>" in text:
        return _placed(problem, Answer(_continued(text.partition("<code>")[2], STOP), "code tag"))
    found = extraction.code(completion, start="" if layout == "base" else _FENCE)
    return _placed(problem, Answer(extraction.until(found.code, ("</code>",)).replace("<code>", ""), found.form))


def paper_read(problem: Problem, completion: str, layout: Layout) -> Answer:
    """What stands behind a solution's mark, cut at the stop strings, then a fence if there is one."""
    text = extraction.clean(completion)
    for mark in _MARKS:
        text = text.partition(mark)[2] or text
    text = extraction.until(text.replace("<code>", ""), PAPER_STOP)
    return extraction.code(text) if "```" in text else Answer(text, "continuation" if text.strip() else "nothing")


def programs(problem: Problem, answer: Answer) -> list[Program]:
    """One: the task's module, and its functions called on the answer."""
    context = problem["code_context"]
    calls = ["test_execution(solution)"]
    if "test_string(" in context:
        calls.append("test_string(solution)")
    if not answer.code.strip():
        return [Program("", context, environment=ENVIRONMENT)]
    return [
        Program(
            f"solution = {answer.code!r}\n",
            "\n".join([context, *calls, ""]),
            modules=MODULES[problem["library"]],
            environment=ENVIRONMENT,
            seconds=SECONDS,
            memory=MEMORY,
        )
    ]


def reference(problem: Problem) -> str:
    return f"{problem['reference_code']}\n```\n"


def negative(problem: Problem) -> str:
    """A statement that does nothing, indented as a body may be."""
    return f"{_INDENT if _enclosing(problem) else ''}pass\n```\n"


def _continued(text: str, stop: Sequence[str]) -> str:
    return extraction.until(text, stop)


def _where(problem: Problem) -> str:
    name = _enclosing(problem)
    return f", into the body of {name}, indented by four blanks" if name else ""


def _script(problem: Problem) -> str:
    """The script that a solution is put into; empty if the task has none of that form."""
    found = _CONTEXT.search(problem["code_context"])
    return found[1] if found else ""


def _enclosing(problem: Problem) -> str:
    """The function whose body a solution is, or goes on; empty if it stands outside of any."""
    before = _script(problem).partition(_INSERT)[0].rstrip().split("\n")
    first = next((line for line in reversed(before) if line.strip() and not line[0].isspace()), "")
    head = re.match(r"def (\w+)\(.*:$", first)
    goes_on = first is not before[-1]  # then the indented mark in the prompt says whether it does
    if head is None or (goes_on and not _INDENTED_MARK.search(problem["prompt"])):
        return ""
    return head[1]


def _placed(problem: Problem, answer: Answer) -> Answer:
    """The answer as it parses in its place: as it is, indented, or the body of the function that it brings."""
    if not answer.code.strip():
        return extraction.NOTHING
    answer = Answer(answer.code.rstrip(), answer.form)  # one script goes on in the same line
    name = _enclosing(problem)
    if not name:
        return answer
    script = _script(problem)
    # Behind a body that was begun an answer without blanks parses, too, and yet belongs into it.
    lies_in = (answer.code, _indented(answer.code))
    for code in (_body(answer.code, name), *(lies_in if _begins_indented(answer.code) else reversed(lies_in))):
        if not code:
            continue
        if extraction.is_python(script.replace(_INSERT, code)):
            return Answer(code, answer.form)
    return answer


def _begins_indented(code: str) -> bool:
    """Whether the first line that is no comment has blanks in front."""
    return bool(re.match(r"(?:[ \t]*(?:#.*)?\n)*[ \t]+[^\s#]", code))


def _indented(code: str) -> str:
    return textwrap.indent(textwrap.dedent(code.strip("\n")), _INDENT)


def _body(code: str, name: str) -> str:
    """The body of the function called name, with what stands before it, as lines of a body; empty if there is none."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return "\n".join(_indented(part) for part in _parts(code, tree, name)) if _defines(tree, name) else ""


def _defines(tree: ast.Module, name: str) -> bool:
    return any(isinstance(each, ast.FunctionDef) and each.name == name for each in tree.body)


def _parts(code: str, tree: ast.Module, name: str) -> Iterator[str]:
    lines = code.split("\n")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield textwrap.dedent("\n".join(lines[node.body[0].lineno - 1 : node.end_lineno]))
            return
        yield "\n".join(lines[node.lineno - 1 : node.end_lineno])


_CHOICES = {
    "test": "the task's own",
    "time": f"{SECONDS:g} s, imports not counted",
    "place": "an answer that parses only indented, or brings the function around it, is moved into its body",
}
ANSWERING = Answering(
    prompt=prompt,
    read=read,
    programs=programs,
    reference=reference,
    negative=negative,
    environment=ENVIRONMENT,
    known=KNOWN_FAILURES,
    choices={**_CHOICES, "prompt": "documentation, the task, the answer begun with a fence"},
)
PAPER = replace(
    ANSWERING,
    prompt=paper_prompt,
    read=paper_read,
    reference=lambda problem: problem["reference_code"],
    negative=lambda problem: _INDENT * bool(_enclosing(problem)) + "pass",
    choices={**_CHOICES, "prompt": "as CodeRAG-Bench has it, no chat"},
)
