"""Needles answered: the described function is looked for in the context and repeated (RepoQA, made sound).

An answer's functions are found by its language's grammar, wherever they stand: in a fence, one that never closes, none,
a class, behind a helper, one in the other. Each is compared with every function of the repository by `similarity` over
code tokens, so that layout costs nothing; the most similar is what it is a copy of, the needle where several are. The
answer is the function that is a copy of the needle, if there is one, else the best copy of any. More than MOST of them
side by side are no answer but a list: then the first one counts, and the form says so.

`match@t`: the needle was found, at a similarity of t or more; 0.8 is the headline, as in the paper.

A model can be asked to choose only, as a ranker does: then functions are shown as lines of path and name, the answer is
one of them, exactly, and counts as the function that it names.
"""

import textwrap
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast
from weakref import WeakKeyDictionary

from coderet.benchmarks import extraction, needles, windows
from coderet.benchmarks.answering import Answer, Answering, Choosing, Document, Layout, Parts, Problem
from coderet.benchmarks.needles import Repository
from coderet.corpora import syntax
from coderet.corpora.uncommenting import uncommented
from coderet.metrics.needles import TOLD, code_tokens, edit_similarity, similarity, token_f1

MOST = 5
CHARACTERS = 20_000  # read of an answer; needles have 2,000, and open brackets cost the grammars their square
ASK = (
    "One of the functions in this code does what the description says. Find it and write it down again, word for word "
    "and whole, in one code block and without anything else."
)
CHOOSE = (
    "One of the functions in this list does what the description says. Answer with its line, word for word, and "
    "without anything else."
)
LISTED = "many functions"
_CLASS = "class _ {\n{}\n}"
WRAPPINGS = {
    "java": (_CLASS,),
    "javascript": (_CLASS, "({\n{}\n})"),
    "php": ("<?php\n{}", f"<?php\n{_CLASS}"),
    "typescript": (_CLASS, "({\n{}\n})"),
}
"""What a method is put into, one after the other, where it stands alone and is not read as a function."""


def prompt(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """Instruction, code, description, instruction again; the answer begins with a fence.

    A function stands without its path, its lines as in its file: small models copy what they begin with, and a path
    is no part of the answer (docs/needles.md has figures).
    """
    repository = needles.of_shared(problem["shared"])
    language = repository.language
    ask = problem["shared"].get("instruction") or ASK
    described = f"Function description: {problem['description'].strip()}"
    fence = f"```{language}\n"
    if not documents:
        return Parts("", (), f"{described}\n\n{ask}\n", start=fence, stop=("\n```",))
    shown = tuple(_shown(each, repository) for each in documents)
    before = f"{ask}\n\n{fence}"
    return Parts(before, shown, f"\n```\n\n{described}\n\n{ask}\n", "\n\n", start=fence, stop=("\n```",))


def _shown(document: Document, repository: Repository) -> str:
    """A function as it is laid out; a piece of one and a window as they are."""
    place = repository.places.get(document.id)
    whole = place is not None and document.text == repository.texts[place]
    return (repository.laid_out(place) if whole and place is not None else document.text).strip("\n")


def choose(problem: Problem, documents: Sequence[Document], layout: Layout) -> Parts:
    """As prompt, with a line for each function, its path and its name; the answer begins with the first sign of one."""
    repository = needles.of_shared(problem["shared"])
    described = f"Function description: {problem['description'].strip()}"
    if not documents:
        return Parts("", (), f"{described}\n\n{CHOOSE}\n", start="- ", stop=("\n",))
    shown = tuple(f"- {_line(repository, repository.places[each.id])}" for each in documents)
    return Parts(f"{CHOOSE}\n\n", shown, f"\n\n{described}\n\n{CHOOSE}\n", "\n", start="- ", stop=("\n",))


def chosen(problem: Problem, completion: str, layout: Layout) -> Answer:
    """The function whose line the first line of the answer is, its name alone where one function is called so."""
    repository = needles.of_shared(problem["shared"])
    said = next((line for line in completion.splitlines() if line.strip()), "").strip().strip("-`*\"' ")
    whole = [place for place in range(len(repository.functions)) if _line(repository, place) == said]
    found = whole or [place for place, span in enumerate(repository.functions) if span.name == said]
    if not found or (not whole and len(found) > 1):
        return Answer(said, "several functions" if found else "no function") if said else extraction.NOTHING
    meant = next((place for place in found if place in problem["gold"]), found[0])
    return Answer(repository.text(meant), "line" if whole else "name")


def _line(repository: Repository, function: int) -> str:
    span = repository.functions[function]
    return f"{span.path}: {span.name}"


def window(problem: Problem, size: int, count: Callable[[str], int], comments: str = "kept") -> Document:
    """The needle where it stands, with its repository around it."""
    repository = needles.of_shared(problem["shared"])
    if problem["shared"].get("tokenizer"):
        count = windows.counter(problem["shared"]["tokenizer"])
    found = windows.window(repository, problem["needle"], problem["depth"], size, count, cast(Any, comments))
    return Document(repository.ids[problem["needle"]], "", found.text)


def read(problem: Problem, completion: str, layout: Layout) -> Answer:
    """The function that is meant; where there is none, the text as it stands, which is no code if no fence held it."""
    repository = needles.of_shared(problem["shared"])
    text = extraction.clean(completion)[:CHARACTERS]
    blocks = extraction.blocks(text)
    if not blocks or functions(text.partition("```")[0], repository.language)[0]:
        text = f"```{repository.language}\n{text}"  # goes on in the fence that the prompt opened
        blocks = extraction.blocks(text)
    codes = [each.code for each in blocks if each.code.strip()]
    found = [functions(code, repository.language) for code in codes]
    side_by_side = sum(outer for outer, _ in found)
    texts = [each for _, inner in found for each in inner]
    if not texts:
        return Answer(max(codes, key=len), "no function") if codes and blocks[0].closed else extraction.NOTHING
    if side_by_side > MOST:
        return Answer(texts[0], LISTED)
    form = "several fences" if len(codes) > 1 else "fence" if blocks[0].closed else "unclosed fence"
    gold = tuple(problem["gold"])
    ranked = [(*best(repository, text, gold), text) for text in texts]
    meant = [each for each in ranked if each[1] in gold] or ranked
    return Answer(max(meant, key=lambda each: each[0])[2], form)


@lru_cache(maxsize=512)
def functions(code: str, language: str) -> tuple[int, tuple[str, ...]]:
    """How many functions stand side by side, and the texts of all, those inside others too."""
    for wrapping in ("{}", *WRAPPINGS.get(language, ())):
        source = wrapping.replace("{}", textwrap.dedent(code)).encode(errors="replace")
        try:
            found = syntax.functions(source, language, nested=True)
        except syntax.Unreadable:
            return 0, ()
        if found:
            break
    end, outer = 0, 0
    for each in found:
        outer += each.start >= end
        end = max(end, each.end)
    return outer, tuple(text for each in found for text in dict.fromkeys((each.text, each.bare_text)))


@lru_cache(maxsize=512)
def best(repository: Repository, text: str, gold: tuple[int, ...]) -> tuple[float, int]:
    """The highest similarity with any function of the repository, and whose it is: one of gold where several have it,
    -1 where none has any."""
    own = tokens(text, repository)
    found, whose = 0.0, -1
    for place, other in enumerate(_candidates(repository)):
        value = similarity(own, other)
        if value > found or (value == found > 0 and place in gold and whose not in gold):
            found, whose = value, place
    return found, whose


def tokens(text: str, repository: Repository) -> tuple[str, ...]:
    """What is compared of a function: without comments where its repository's do not count."""
    if repository.ignores_comments:
        text = "\n".join(line for line in uncommented(text, repository.language) if line is not None)
    return code_tokens(text)


def _candidates(repository: Repository) -> list[tuple[str, ...]]:
    if repository not in _TOKENS:
        _TOKENS[repository] = [tokens(text, repository) for text in repository.texts]
    return _TOKENS[repository]


_TOKENS: "WeakKeyDictionary[Repository, list[tuple[str, ...]]]" = WeakKeyDictionary()


def grade(problem: Problem, answer: Answer) -> dict[str, float]:
    """`match@t` for every threshold, the headline first, and how alike answer and needle are."""
    repository = needles.of_shared(problem["shared"])
    found, whose = best(repository, answer.code, tuple(problem["gold"]))
    reached = found if whose in problem["gold"] else -1.0
    own, wanted = (tokens(each, repository) for each in (answer.code, repository.text(problem["needle"])))
    return {f"match@{each}": float(reached >= each) for each in TOLD} | {
        "similarity": similarity(own, wanted),
        "edit_similarity": edit_similarity(own, wanted),
        "token_f1": token_f1(own, wanted),
    }


def why(problem: Problem, answer: Answer) -> str:
    """Which function of the repository the answer is a copy of, and how good a one."""
    repository = needles.of_shared(problem["shared"])
    found, whose = best(repository, answer.code, tuple(problem["gold"]))
    if whose < 0:
        return "no function of the repository"
    right = whose in problem["gold"]
    kind = ("the needle" if found == 1 else "the needle with edits") if right else "another function"
    return f"{kind}, {found:.2f}: {repository.ids[whose]}"


PARTS = 10  # of a context, by which depths are told


def facts(problem: Problem, context: str) -> dict[str, str | float]:
    """The language, and where the whole needle is in it the `depth` of its middle in the context, in tenths.

    candidates: the functions that the needle is one of; shown: those that stand whole in the context.
    """
    repository = needles.of_shared(problem["shared"])
    function = problem["needle"]
    found: dict[str, str | float] = {"language": repository.language, "candidates": float(len(repository.functions))}
    written = (repository.text(function), repository.laid_out(function), _plain(repository, function))
    text = next((each for each in written if each in context), "")
    if text:
        middle = (context.find(text) + len(text) / 2) / len(context)
        found["depth"] = f"{int(middle * PARTS) / PARTS:.1f}"
    shown = (each in context or repository.laid_out(place) in context for place, each in enumerate(repository.texts))
    return found | {"shown": float(sum(shown))}


def _plain(repository: Repository, function: int) -> str:
    """A function as it stands in a window whose comments are taken out."""
    text = repository.text(function)
    return "\n".join(line for line in uncommented(text, repository.language) if line is not None)


def reference(problem: Problem) -> str:
    """The needle's own lines in a fence."""
    repository = needles.of_shared(problem["shared"])
    span = repository.functions[problem["needle"]]
    lines = repository.contents[span.path].split(b"\n")
    last = span.first_line + repository.contents[span.path].count(b"\n", span.start, span.end) + 1
    return f"```{repository.language}\n" + b"\n".join(lines[span.first_line : last]).decode() + "\n```"


def negative(problem: Problem) -> str:
    """A function that is none of the needle's copies."""
    repository = needles.of_shared(problem["shared"])
    other = next((place for place in range(len(repository.functions)) if place not in problem["gold"]), None)
    return "I cannot find it." if other is None else f"```\n{repository.text(other)}\n```"


ANSWERING = Answering(
    prompt=prompt,
    read=read,
    grade=grade,
    window=window,
    why=why,
    facts=facts,
    choosing=Choosing(choose, chosen),
    reference=reference,
    negative=negative,
    metrics=(*(f"match@{each}" for each in TOLD), "similarity", "edit_similarity", "token_f1"),
    choices={
        "similarity": "BLEU of code tokens, 1 for equal ones",
        "candidates": "all functions of the repository",
        "answer": f"the function that is a copy of the needle, of at most {MOST} side by side",
    },
)
