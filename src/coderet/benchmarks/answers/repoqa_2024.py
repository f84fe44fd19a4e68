"""RepoQA answered as its released code does it, faults included (evalplus/repoqa, 2024).

Four parts without anything between them. Of an answer the first function counts that any fenced block holds, by a
narrower idea of functions than ours; without one the first block, without a block all of it. A fence that is indented
or never closes is none. It is compared by BLEU over words with the whole lines of each of the repository's needles; the
first of the most similar wins, and it must bear the asked one's name. Its known faults, each shown by a test: a perfect
answer fails where a character of several bytes stands before the needle, where its lines hold more than the function
(`export`), where it has two or three words, and in a class or behind a helper.

Grammars are today's; the released code ran on those of 2023.
"""

import re
from collections.abc import Callable, Sequence

from coderet.benchmarks import needles, windows
from coderet.benchmarks.answering import Answer, Answering, Document, Layout, Parts, Problem
from coderet.benchmarks.answers import needles as sound
from coderet.corpora import syntax
from coderet.metrics.needles import TOLD, bleu, words
from coderet.records import DataError

FUNCTIONS = {
    "python": "(function_definition) @function",
    "java": "(method_declaration) @function",
    "typescript": "(function_declaration) @function",
    "rust": "(function_item) @function",
    "cpp": "(function_definition declarator: (function_declarator declarator: (identifier))) @function",
    "go": "(function_declaration) @function",
}


def prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    ask = problem["shared"]["instruction"]
    shown = tuple(each.text for each in documents)
    return Parts(ask, shown, f"\nFunction Description:{problem['description']}\n{ask}", "\n")


def window(problem: Problem, size: int, count: Callable[[str], int], comments: str = "kept") -> Document:
    """In CodeLlama's tokens, whatever count says. With comments only: the released code's way to remove them loses
    files, and is not repeated here."""
    if comments != "kept":
        raise DataError(f"comments are {comments!r} under contexts; repoqa-2024 keeps them, repoqa does all three")
    repository = needles.of_shared(problem["shared"])
    count = windows.counter(problem["shared"]["tokenizer"], codellama=True)
    found = windows.as_released(repository, problem["needle"], problem["depth"], size, count)
    return Document(repository.ids[problem["needle"]], "", found.text)


def read(problem: Problem, completion: str, layout: Layout) -> Answer:
    text = completion.strip()
    blocks = _BLOCK.findall(text)
    for block in blocks:
        function = first_function(block, problem["shared"]["language"])
        if function is not None:
            return Answer(function, "fence")
    form = "no function" if blocks else "no fence" if text else "nothing"
    return Answer(blocks[0] if blocks else text, form)


def first_function(code: str, language: str) -> str | None:
    """The text of the first function of a block; None without one."""
    utf8 = code[: sound.CHARACTERS].encode(errors="replace")
    matches = syntax.query(language, FUNCTIONS[language]).captures(syntax.parsed(utf8, language))
    found = [node for each in matches.values() for node in each]
    if not found:
        return None
    first = min(found, key=lambda node: (node.start_byte, -node.end_byte))
    return utf8[first.start_byte : first.end_byte].decode(errors="replace")


def grade(problem: Problem, answer: Answer) -> dict[str, float]:
    repository = needles.of_shared(problem["shared"])
    own = words(answer.code)
    found, name = 0.0, None
    for place in problem["shared"]["needles"]:
        span = repository.functions[place]
        value = bleu(own, words(lines(repository, place)))
        if value > found:
            found, name = value, span.name
    right = name == repository.functions[problem["needle"]].name
    return {f"match@{each}": float(right and found >= each) for each in TOLD} | {"similarity": found}


def lines(repository: needles.Repository, function: int) -> str:
    """The whole lines of a function, whatever else stands on them."""
    span = repository.functions[function]
    return "\n".join(repository.files[span.path].split("\n")[span.first_line : span.end_line])


_BLOCK = re.compile(r"^```\w*\s*\n(.*?)^```", re.DOTALL | re.MULTILINE)
ANSWERING = Answering(
    prompt=prompt,
    read=read,
    grade=grade,
    window=window,
    reference=sound.reference,
    negative=sound.negative,
    facts=sound.facts,
    metrics=(*(f"match@{each}" for each in TOLD), "similarity"),
    choices={
        "similarity": "BLEU of words",
        "candidates": "the repository's needles",
        "answer": "the first function",
    },
)
