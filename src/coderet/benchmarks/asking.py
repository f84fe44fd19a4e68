"""A set of problems with their contexts, as prompts that fit a generator: what `generate` asks."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from coderet.benchmarks import prompts
from coderet.benchmarks.answering import Answering, Document, Layout
from coderet.benchmarks.contexts import Taken, contexts
from coderet.benchmarks.prompts import Counter, Packed
from coderet.records import DataError, Dataset, Problems, Run


class Completion(Protocol):
    """What a generator gives."""

    @property
    def text(self) -> str: ...

    @property
    def finish(self) -> str: ...

    @property
    def stop(self) -> str: ...

    @property
    def prompt_tokens(self) -> int: ...

    @property
    def completion_tokens(self) -> int: ...


class Question(NamedTuple):
    """A problem, put into words."""

    problem_id: str
    query_id: str
    packed: Packed


def questions(
    answering: Answering,
    dataset: Dataset,
    run: Run,
    problems: Problems,
    taken: Taken,
    layout: Layout,
    counter: Counter,
    *,
    window: int,
    budget: int,
    relevant: Run | None = None,
) -> list[Question]:
    """Every problem with its context of run, in a window of so many tokens, at most budget of them for documents.

    relevant: the judgements as a run, for contexts with distractors. A context that is a window of its own, of problems
    that have one, is shown whole: DataError if it does not fit.
    """
    around = answering.window if taken.window else None
    shown: Iterable[Sequence[Document]]
    if around is None:
        shown = contexts(dataset, run, problems, taken, relevant)
    else:
        shown = ([around(problem, taken.window, counter, taken.comments)] for problem in problems.contents)
    queries = problems.table["query_id"].to_pylist()
    pack = partial(prompts.pack, window=window, budget=budget if around is None else None, order=taken.order)
    asked = [
        Question(own, query, pack(answering, own, problem, documents, layout, counter))
        for own, query, problem, documents in zip(problems.ids, queries, problems.contents, shown, strict=True)
    ]
    if around is not None and (cut := [each for each in asked if each.packed.truncated]):
        needed = max(sum(shown.tokens for shown in each.packed.shown) for each in cut)
        raise DataError(
            f"{len(cut)} of {len(asked)} windows of {taken.window} tokens do not fit the generator, which leaves "
            f"question and context {window}; the longest context has {needed}; take a smaller window, or "
            "a generator with a longer one"
        )
    return asked


def prompt(asked: Question) -> dict[str, Any]:
    """What a generator is given: the parts of the prompt, and the documents that it shows."""
    packed = asked.packed
    parts = {"user": packed.user, "system": packed.system, "start": packed.start, "stop": packed.stop}
    return parts | {"documents": packed.texts}


def answers(asked: Sequence[Question], completions: Sequence[Sequence[Completion]]) -> list[dict[str, Any]]:
    """The rows of a table of COMPLETIONS, from the completions of each problem."""
    return [
        {
            "problem_id": question.problem_id,
            "sample": sample,
            "text": each.text,
            "finish": each.finish,
            "stop": each.stop,
            "prompt_tokens": each.prompt_tokens,
            "completion_tokens": each.completion_tokens,
        }
        for question, made in zip(asked, completions, strict=True)
        for sample, each in enumerate(made)
    ]


def rows(asked: Sequence[Question]) -> list[dict[str, Any]]:
    """The rows of a table of PROMPTS."""
    return [
        {
            "problem_id": each.problem_id,
            "query_id": each.query_id,
            "system": each.packed.system,
            "user": each.packed.user,
            "start": each.packed.start,
            "context": each.packed.context,
            "documents": [shown._asdict() for shown in each.packed.shown],
            "tokens": each.packed.tokens,
        }
        for each in asked
    ]


def tally(asked: Sequence[Question]) -> dict[str, int]:
    """How many prompts there are, how many of them lack a part of their context, and their documents and tokens."""
    shown = [each for question in asked for each in question.packed.shown]
    return {
        "prompts": len(asked),
        "truncated": sum(each.packed.truncated for each in asked),
        "documents": len(shown),
        "documents_cut": sum(0 < each.kept < each.tokens for each in shown),
        "documents_dropped": sum(each.kept == 0 < each.tokens for each in shown),
        "tokens_lost": sum(each.tokens - each.kept for each in shown),
    }
