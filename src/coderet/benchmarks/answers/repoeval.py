"""RepoEval: a body, a line or a call is written where a file of a repository breaks off (Zhang et al., 2023).

A body is judged by the repository's own tests: it takes the place of the lines it stands for, and pytest runs the test
files that CodeRAG-Bench mapped to the task. A run that collects no test does not pass; in the paper's code it does, by
status 5. A line or a call is compared with the one that stood there: `exact_match`, and `edit_similarity`, one less
the share of characters to be changed; of an answer as many lines count as the reference has, blank ones aside.

An answer is cut where its lines come out of the body. One in a fence may be indented anyhow, or bring the function
whole: then its body is taken and moved under its head.
"""

import ast
import base64
import json
import textwrap
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from coderet.benchmarks import extraction
from coderet.benchmarks.answering import Answer, Answering, Document, Layout, Parts, Problem, Program

WEAK = (
    *("maxhumber_redframes/39", "maxhumber_redframes/40"),
    *(f"lucidrains_imagen-pytorch/{number}" for number in (0, 4, 8, 12, 23, 45, 52, 54, 57, 64, 66)),
)
"""Tasks whose tests pass with `return None` for a body: `_check_index`, `_check_keys`; eleven of which imagen's two
smoke tests ask no value."""

ENVIRONMENT = "repoeval"
ENVIRONMENTS = {"lucidrains_imagen-pytorch": "imagen"}
"""Environments of repositories that do not live in the common one."""

SECONDS_A_FILE = 200.0
MEMORY = 16 << 30  # address space: jax and torch reserve more than they use
STOP = ("\nclass ", "\ndef ", "\n#", "\n@", "\nprint(", "\nif ", "\n```", "<file_sep>")
PAPER_STOP = ("\nclass", "\ndef", "\n#", "\n@", "\nprint", "\nif", "\n```", "<file_sep>")

CONFTESTS = {
    "google_lightweight_mmm": textwrap.dedent(
        """
        import sys
        import types

        import jax
        import jax.numpy

        jax.numpy.DeviceArray = jax.Array
        tensorflow = types.ModuleType("tensorflow")
        tensorflow.io = types.ModuleType("tensorflow.io")
        tensorflow.io.gfile = types.SimpleNamespace(GFile=open)
        sys.modules |= {"tensorflow": tensorflow, "tensorflow.io": tensorflow.io}
        """
    ).lstrip(),
    "lucidrains_imagen-pytorch": textwrap.dedent(
        """
        import sys
        import types

        sys.modules.setdefault("torchvision._meta_registrations", types.ModuleType("torchvision._meta_registrations"))

        import torch
        import transformers


        class Config:
            d_model = 768

            @classmethod
            def from_pretrained(cls, *arguments, **named):
                return cls()


        class Encoder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.config, self.weight = Config(), torch.nn.Parameter(torch.zeros(1))

            @classmethod
            def from_pretrained(cls, *arguments, **named):
                return cls()

            def forward(self, input_ids, attention_mask):
                return types.SimpleNamespace(last_hidden_state=torch.zeros(*input_ids.shape, Config.d_model))


        class Tokenizer:
            @classmethod
            def from_pretrained(cls, *arguments, **named):
                return cls()

            def batch_encode_plus(self, texts, **named):
                ids = torch.ones(len(texts), max(len(each.split()) for each in texts), dtype=torch.long)
                return types.SimpleNamespace(input_ids=ids, attention_mask=torch.ones_like(ids))


        transformers.T5Config, transformers.T5EncoderModel, transformers.T5Tokenizer = Config, Encoder, Tokenizer
        """
    ).lstrip(),
}
"""What a repository's tests need beside it: names that newer libraries dropped, stand-ins for what is downloaded, and
for a library of which nothing but opening files is used."""

_FENCE = "```python\n"
_RULE = "# " + "-" * 50


def prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """Windows of the repository, then the file up to the hole."""
    file = problem["prompt"].rstrip("\n") + "\n"
    if layout == "base":
        shown = tuple(f"{_commented(_shown(each))}\n" for each in documents)
        before = "# Code of this repository:\n" if documents else ""
        return Parts(before, shown, ("\n\n" if documents else "") + file, stop=STOP)
    ask = (
        f"A file breaks off where the {_what(problem)} belongs:\n\n{_FENCE}{file}```\n\n"
        f"Write the {_what(problem)}, indented as it stands there, and nothing else. Answer in one code block."
    )
    if not documents:
        return Parts("", (), ask, start=_FENCE, stop=("\n```",))
    before, joiner = f"Here is code of the same repository.\n\n{_FENCE}", f"\n```\n\n{_FENCE}"
    return Parts(before, tuple(map(_shown, documents)), f"\n```\n\n{ask}", joiner, start=_FENCE, stop=("\n```",))


def paper_prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """As RepoCoder lays it out: windows as comments, each below its path between rules, then the file."""
    shown = tuple(
        "\n".join(
            ["# the below code fragment can be found in:", f"# {each.title}", _RULE, _commented(each.text), _RULE]
        )
        for each in documents
    )
    before = (
        "# Here are some relevant code fragments from other files of the repo:\n" + _RULE + "\n" if documents else ""
    )
    return Parts(before, shown, ("\n\n" if documents else "") + problem["prompt"] + "\n", stop=PAPER_STOP)


def read(problem: Problem, completion: str, layout: Layout) -> Answer:
    """The body, indented as it belongs; or, of a line or a call, the answer's first lines."""
    text = extraction.clean(completion)
    if layout == "base" and "```" not in text:
        found = Answer(text, "continuation" if text.strip() else "nothing")
    else:
        found = _fenced(problem, text, layout)
    if "path" not in problem:
        code = "\n".join(first_lines(found.code, len(first_lines(problem["ground_truth"]))))
        return Answer(code, found.form) if code else extraction.NOTHING
    body = until_dedent(found.code, _margin(problem["ground_truth"]))
    return Answer(body, found.form) if body.strip() else extraction.NOTHING


def until_dedent(body: str, margin: str) -> str:
    """The lines of body up to the first that stands further left than margin."""
    lines = []
    for line in body.strip("\n").split("\n"):
        if line.strip() and len(_margin(line)) < len(margin):
            break
        lines.append(line)
    return "\n".join(lines).rstrip()


def programs(problem: Problem, answer: Answer) -> list[Program]:
    """One: the repository with the answer in it, and pytest over the task's test files; none if they are not there."""
    if not problem["tests"]:
        return []
    repository = problem["repository"]
    environment = ENVIRONMENTS.get(repository, ENVIRONMENT)
    if not answer.code.strip():
        return [Program("", "pass", environment=environment)]
    files = dict(_tree(problem["tree"]))
    files[problem["path"]] = replaced(files[problem["path"]], problem["line"], problem["lines"], answer.code)
    if repository in CONFTESTS:
        files["conftest.py"] = CONFTESTS[repository]
    return [
        Program(
            "",  # it is among the files, so that answers which make the same file are run once
            files={path: text.encode("utf-8", "surrogatepass") for path, text in files.items()},
            command=("{python}", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *problem["tests"]),
            environment=environment,
            seconds=SECONDS_A_FILE * len(problem["tests"]),
            memory=MEMORY,
        )
    ]


def replaced(text: str, line: int, lines: int, body: str) -> str:
    """text with body for so many lines from line on, counted from 0."""
    whole = text.splitlines(keepends=True)
    return "".join([*whole[:line], body.rstrip("\n") + "\n", *whole[line + lines :]])


def packed(files: Mapping[str, str]) -> str:
    """A repository, texts by path, as a problem holds it."""
    content = json.dumps(dict(sorted(files.items())), ensure_ascii=False).encode()
    return base64.b64encode(zlib.compress(content, 9)).decode()


def near(tests: Sequence[str], path: str) -> list[str]:
    """Of a task's test files those of its own module, else those that are no integration tests, else all."""
    stem = path.rpartition("/")[2].removesuffix(".py")
    own = [each for each in tests if each.rpartition("/")[2] in (f"{stem}_test.py", f"test_{stem}.py")]
    return own or [each for each in tests if "integration" not in each] or list(tests)


def grade(problem: Problem, answer: Answer) -> dict[str, float]:
    """How near a line or a call comes to the one that stood there, each 0 to 1."""
    wanted = first_lines(problem["ground_truth"])
    own, other = "\n".join(first_lines(answer.code, len(wanted))), "\n".join(wanted)
    longest = max(len(own), len(other))
    similarity = 1.0 - edit_distance(own, other) / longest if longest else 1.0
    return {"exact_match": float(own == other), "edit_similarity": similarity}


def first_lines(text: str, count: int | None = None) -> list[str]:
    """The first count lines that are not blank, without white space around them."""
    return [line.strip() for line in text.splitlines() if line.strip()][:count]


def edit_distance(own: str, other: str) -> int:
    """Characters to put in, take out or exchange until one is the other (Levenshtein, 1966)."""
    if len(own) < len(other):
        own, other = other, own
    row = list(range(len(other) + 1))
    for place, letter in enumerate(own, 1):
        above, row[0] = row[0], place
        for column, each in enumerate(other, 1):
            above, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, above + (letter != each))
    return row[-1]


def reference(problem: Problem) -> str:
    return f"{problem['ground_truth']}```"


def negative(problem: Problem) -> str:
    return f"{_margin(problem['ground_truth'])}return None\n```"


def _fenced(problem: Problem, text: str, layout: Layout) -> Answer:
    """The answer's code moved under the function's head, less the head if it brings it."""
    # A body is no Python by itself, so the fence is taken as it stands.
    start = _FENCE if layout == "chat" and not extraction.opens(text) else ""
    found = extraction.blocks(start + text)
    block = max(found, key=lambda each: len(each.code), default=None)
    if block is None or not block.code.strip():
        return extraction.NOTHING
    form = "fence" if block.closed else "unclosed fence"
    if "path" not in problem:
        return Answer(block.code, form)
    margin = _margin(problem["ground_truth"])
    body = _body_of(block.code, problem["function_name"])
    if body is None and _margin(block.code) == margin:
        return Answer(block.code, form)
    code = block.code if body is None else body
    first = _margin(code)  # what lies left of the first line is no part of the body
    return Answer(textwrap.indent(textwrap.dedent(until_dedent(code, first)), margin), form)


def _body_of(code: str, name: str) -> str | None:
    """The lines of the body of the function called name, wherever it is defined; None if it is not."""
    try:
        tree = ast.parse(textwrap.dedent(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            lines = textwrap.dedent(code).split("\n")[node.body[0].lineno - 1 : node.end_lineno]
            if node.body[0].lineno == node.lineno:  # all in one line
                return ast.unparse(node.body[0])
            return "\n".join(lines)
    return None


@lru_cache(maxsize=8)
def _tree(text: str) -> tuple[tuple[str, str], ...]:
    return tuple(json.loads(zlib.decompress(base64.b64decode(text))).items())


def _what(problem: Problem) -> str:
    return f"body of {problem['function_name']}" if "path" in problem else "next line"


def _shown(document: Document) -> str:
    return f"# {document.title}\n{document.text}"


def _commented(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.split("\n"))


def _margin(text: str) -> str:
    """The white space before the first line that is not blank."""
    line = next((each for each in text.split("\n") if each.strip()), "")
    return line[: len(line) - len(line.lstrip())]


_CHOICES = {"cut": "an answer ends where its lines come out of the body", "no test collected": "no pass"}
ANSWERING = Answering(
    prompt=prompt,
    read=read,
    programs=programs,
    reference=reference,
    negative=negative,
    environment=ENVIRONMENT,
    weak=WEAK,
    choices={**_CHOICES, "prompt": "windows in fences, the file up to the hole"},
)
PAPER = replace(
    ANSWERING,
    prompt=paper_prompt,
    choices={**_CHOICES, "prompt": "as RepoCoder has it, no chat"},
)
COMPARED = Answering(
    prompt=prompt,
    read=read,
    grade=grade,
    reference=reference,
    negative=lambda problem: "pass\n```",
    metrics=("exact_match", "edit_similarity"),
    choices={"lines": "as many as the reference has, blank ones aside"},
)
