"""What a benchmark that wants an answer says about it: how to ask, how to read the answer, how to judge it.

A problem is a JSON object of the benchmark's own fields. `prompt` turns problem and context into the parts of a prompt,
which `prompts.pack` fits into a generator's window; `read` takes the answer out of a completion; `program` makes of an
answer what the sandbox runs, or `grade` scores it without running anything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from coderet.records import DataError

Problem = Mapping[str, Any]

Verdict = Literal[
    "passed",
    "failed",
    "timeout",
    "memory",
    "import error",
    "syntax error",
    "no code",
    "refused",
    "no tests",
    "judge error",
]


class Document(NamedTuple):
    """A document of a context."""

    id: str
    title: str
    text: str


class Parts(NamedTuple):
    """A prompt in four parts: packing cuts documents only. before: what stands before the documents, after: behind.

    documents: as they are to stand in the prompt, best first; joiner stands between them. system: for chat models, may
    be empty. start: what the answer is made to begin with (an open fence, a function's head), part of the prompt.
    stop: strings at which a completion ends.
    """

    before: str
    documents: tuple[str, ...]
    after: str
    joiner: str = "\n"
    system: str = ""
    start: str = ""
    stop: tuple[str, ...] = ()


class Program(NamedTuple):
    """What the sandbox runs for one answer.

    source: the answer as it is run. check: the code that tests it, run in the same process after it, in a name space
    that holds the answer's names; the sandbox makes sure that an answer which ends early or touches the check does not
    pass. stdin: what it reads. files: written beside it before. modules: imported before its clock starts.
    environment: the name of a pinned environment of `make env`, empty for the suite's own. command: instead of source
    and check, a command that is run in the folder of files and passes with status 0 (`pytest`); {python} stands for
    the environment's interpreter; where it is pytest, its session must have come to its end with all tests passed, and
    plugins that are installed take part only where the command names them (`-p`).
    tree: a folder that is copied under files before each, for repositories.
    tested: names that the check takes from the answer although builtins are called so (`sum`); all others that hide a
    builtin are hidden from the check. accepts: what the program has written must satisfy it, instead of a check or
    beside it; without a check the program runs as `__main__` and may end by sys.exit(0).
    seconds, memory: limits, seconds of processor time (wall time may be three times that) and bytes beyond what the
    imported modules hold.
    """

    source: str
    check: str = ""
    stdin: str = ""
    files: Mapping[str, bytes] = {}
    modules: tuple[str, ...] = ()
    environment: str = ""
    command: tuple[str, ...] = ()
    seconds: float = 10.0
    memory: int = 2 << 30
    tree: Path | None = None
    tested: tuple[str, ...] = ()
    accepts: Callable[[str], bool] | None = None


class Outcome(NamedTuple):
    """What became of a program. detail: the last lines of its error, what was refused, or what it lacked. seconds: of
    processor time. output: what it wrote to its standard output."""

    verdict: Verdict
    detail: str = ""
    seconds: float = 0.0
    output: str = ""


class Answer(NamedTuple):
    """An answer read out of a completion. form: how it stood there, counted in the report (`fence`, `unclosed fence`,
    `bare fence`, `no fence`, `several fences`, `nothing`, ...); code is empty only for `nothing`."""

    code: str
    form: str


Layout = Literal["chat", "base"]


class Choosing(NamedTuple):
    """As prompt and read of an Answering."""

    prompt: Callable[[Problem, Sequence[Document], Layout], Parts]
    read: Callable[[Problem, str, Layout], Answer]


@dataclass(frozen=True)
class Answering:
    """prompt(problem, documents, layout): layout is `chat` for models that follow instructions, `base` for those that
    continue a text. read(problem, completion, layout): the completion without the prompt's `start`, and with the stop
    string that ended it where that closes a fence. programs: an answer passes if all of its programs do; a problem
    without tests gives none. grade: metrics in 0 to 1 instead of running (`exact_match`, `edit_similarity`).
    reference: the benchmark's own answer as a completion would give it, for the self-check and for what the leak
    detector looks for; negative: an answer that must fail. metrics: the first is the headline. environment: as in
    Program. known: problems whose reference fails, by id, and why; weak: those whose tests an answer that does
    nothing passes. window: for contexts with `window`, what stands around the answer where it is to be found, in so
    many tokens, counted by a function of a text, comments `kept`, `removed` or `padded`. why: what became of an answer
    that is graded, in words, kept as its detail. facts: of a problem and the context it was shown, texts that figures
    are told by and numbers that are told beside them (`metrics.grouping`). choosing: how documents are asked for that
    are shown by place and name alone, and how the answer, one of these, is read.
    """

    prompt: Callable[[Problem, Sequence[Document], Layout], Parts]
    read: Callable[[Problem, str, Layout], Answer]
    programs: Callable[[Problem, Answer], Sequence[Program]] | None = None
    grade: Callable[[Problem, Answer], Mapping[str, float]] | None = None
    reference: Callable[[Problem], str] | None = None
    negative: Callable[[Problem], str] | None = None
    window: Callable[[Problem, int, Callable[[str], int], str], Document] | None = None
    why: Callable[[Problem, Answer], str] | None = None
    facts: Callable[[Problem, str], Mapping[str, str | float]] | None = None
    choosing: "Choosing | None" = None
    metrics: tuple[str, ...] = ("pass@1",)
    environment: str = ""
    choices: Mapping[str, str] = field(default_factory=dict, compare=False)
    known: Mapping[str, str] = field(default_factory=dict, compare=False)
    weak: tuple[str, ...] = ()

    def showing(self, shows: str) -> "Answering":
        """This one where documents are shown by their `text`; where by their `names`, with what is said then. DataError
        if nothing is."""
        if shows == "text":
            return self
        if self.choosing is None:
            raise DataError(f"a context shows {shows}, and these problems do not ask for one; wanted shows: text")
        return replace(self, prompt=self.choosing.prompt, read=self.choosing.read)
