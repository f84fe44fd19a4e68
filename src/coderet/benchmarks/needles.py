"""Needles: functions of a repository that are asked for by what they do (RepoQA; Liu et al., 2024, arXiv 2406.06025).

A repository is its files in dependency order, all its functions, and a few of them, the needles, with a description.
It is one dataset: the documents are all functions, a query is a description, relevant is the needle and whatever has
its text, white space aside. What a generator is asked is the same: the problems lie over these queries, and what it is
shown is a context like any other. `oracle` is the needle alone, a retriever's run gives retrieve-then-read, and a
context with `window` shows the needle where it stands, in so many tokens of its repository.

Offsets are of a file's UTF-8 bytes, so no character before a needle shifts it; lines are counted from 0 and end at a
line feed, ends exclusive.
"""

import hashlib
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from coderet.corpora import syntax
from coderet.records import DataError, Draft, documents_batch, problems_table, qrels_table, queries_table

CUTOFFS = (1, 3, 5, 10, 20, 50)
BUDGETS = (1024, 2048, 4096, 8192, 16384)
METRICS = (
    "mrr-expected",
    *(f"recall@{cutoff}-expected" for cutoff in CUTOFFS),
    "ndcg@10-expected",
    "relative-rank",
    *(f"budget-recall@{tokens}" for tokens in BUDGETS),
)
GAUGED = ("mrr-expected", "recall@1-expected", "recall@10-expected")
LENIENT = tuple(name.replace("recall@", "hit@") if name.startswith("recall@") else name for name in METRICS)
"""The same where several functions count as the needle, and one of them is enough."""
NESTED_OVERLAP = 0.5  # of the bytes of the one around, from which the one within counts as found, too


Candidates = Literal["repository", "needles", "window", "language"]
"""What a needle is looked for among: all functions of its repository, the needles, those that stand whole in a window
around it, or all functions of its language."""


class Span(NamedTuple):
    """A function in its file."""

    path: str
    start: int
    end: int
    first_line: int
    end_line: int
    name: str


class Needle(NamedTuple):
    """function: its place in the repository's functions."""

    function: int
    description: str


@dataclass(frozen=True, eq=False)
class Repository:
    """files: texts by path, in dependency order. facts: what its files were found to be, for reports.

    DataError unless every function lies in its file and every needle is one of the functions, with a text.
    """

    name: str
    language: str
    files: Mapping[str, str]
    functions: Sequence[Span]
    needles: Sequence[Needle]
    facts: Mapping[str, int] = field(default_factory=dict)
    ignores_comments: bool = False  # when answers are compared with its functions

    def __post_init__(self) -> None:
        for span in self.functions:
            if span.path not in self.files:
                raise DataError(f"{self.name}: {span.name} is in {span.path}, which is no file of it; fetch it again")
            if not 0 <= span.start < span.end <= len(self.contents[span.path]):
                raise DataError(
                    f"{self.name}: {span.name} has the bytes {span.start} to {span.end} of {span.path}, which has "
                    f"{len(self.contents[span.path])}; the file is cut short or of another version, fetch it again"
                )
        for needle in self.needles:
            if not 0 <= needle.function < len(self.functions):
                raise DataError(f"{self.name}: a needle is function {needle.function} of {len(self.functions)}")
            if not self.text(needle.function).strip() or not needle.description.strip():
                raise DataError(f"{self.name}: {self.functions[needle.function].name} has no text or no description")

    @cached_property
    def contents(self) -> dict[str, bytes]:
        """The files as UTF-8."""
        return {path: text.encode() for path, text in self.files.items()}

    def text(self, function: int) -> str:
        """A function as it stands in its file; DataError if its offsets cut a character."""
        path, start, end, *_, name = self.functions[function]
        try:
            return self.contents[path][start:end].decode()
        except UnicodeDecodeError:
            raise DataError(
                f"{self.name}: {name} begins or ends within a character of {path}; its offsets are none of UTF-8 bytes"
            ) from None

    @cached_property
    def texts(self) -> list[str]:
        return [self.text(place) for place in range(len(self.functions))]

    @cached_property
    def ids(self) -> list[str]:
        """What each function is called as a document: `<path>#L<first>-L<last>:<name>`, lines from 1."""
        found, taken = [], set()
        for span in self.functions:
            own = f"{span.path}#L{span.first_line + 1}-L{max(span.first_line + 1, span.end_line)}:{span.name}"
            own = f"{own}:{span.start}" if own in taken else own
            taken.add(own)
            found.append(own)
        return found

    @cached_property
    def places(self) -> dict[str, int]:
        """Functions by their ids."""
        return {own: place for place, own in enumerate(self.ids)}

    def laid_out(self, function: int) -> str:
        """A function's text with its lines indented as in its file, less the indentation that all of them have."""
        path, start, *_ = self.functions[function]
        line = self.contents[path].rfind(b"\n", 0, start) + 1
        before = self.contents[path][line:start].decode()
        return self.texts[function] if before.strip() else textwrap.dedent(before + self.texts[function])

    def copies(self, function: int) -> list[int]:
        """Every function with the text of this one, white space aside; itself among them."""
        return self._by_text[_squeezed(self.texts[function])]

    @cached_property
    def _by_text(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, text in enumerate(self.texts):
            found.setdefault(_squeezed(text), []).append(place)
        return found

    def around(self, function: int) -> list[int]:
        """Functions that hold this one, or lie in it, with at least half of the outer one's bytes in both."""
        own = self.functions[function]
        found = []
        for place, each in enumerate(self.functions):
            shared = min(own.end, each.end) - max(own.start, each.start)
            nested = each.path == own.path and shared == min(own.end - own.start, each.end - each.start)
            if nested and shared >= NESTED_OVERLAP * max(own.end - own.start, each.end - each.start):
                found.append(place)
        return found


Among = Callable[[Repository, int, float], Collection[int]]


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def spans(path: str, text: str, language: str) -> list[Span]:
    """The functions of a file; none of one that is not read as source text."""
    try:
        found = syntax.functions(text.encode(), language)
    except syntax.Unreadable:
        return []
    return [Span(path, each.start, each.end, each.start_line - 1, each.end_line, each.qualified_name) for each in found]


def draft(
    repository: Repository,
    *,
    gold: Literal["strict", "lenient"] = "strict",
    depths: int = 1,
    seed: int = 13,
    posed: str = "",
    sample: int | None = None,
    extra: Mapping[str, Any] | None = None,
    among: Among | None = None,
) -> Draft:
    """The dataset of a repository and its problems.

    gold: whether functions that hold a needle or lie in it, half of the bytes being both's, count as found. depths: at
    how many places of a window each needle is asked for. posed and sample: a name for the problems, and how many
    needles are asked for, if not all. extra: further fields that all problems share. among: of a repository, a needle's
    function and its depth, the functions that it is looked for among, by default all; every place of a needle is then a
    query of its own, which may hit no other.
    """
    name, needles = repository.name, repository.needles
    if not needles:
        raise DataError(f"{name} has no needles; take it out of the file, or choose some")
    ids = [f"{name}/{place}" for place in range(len(needles))]
    wanted = [_gold(repository, needle.function, gold) for needle in needles]
    asked = _sample(ids, sample, seed)
    places = depth_design(len(needles), depths, seed, name)
    every = [
        (ids[place] if depths == 1 else f"{ids[place]}@{depth:.3f}", place, depth)
        for place in range(len(needles))
        for depth in places[place]
    ]
    problems = [each for each in every if each[1] in asked]
    everything: Collection[int] = range(len(repository.functions))
    queries = [(own, needle, everything) for own, needle in zip(ids, needles, strict=True)]
    if among is not None:
        queries = [(own, needles[n], among(repository, needles[n].function, depth)) for own, n, depth in every]
    golds = dict(zip(needles, wanted, strict=True))
    judged = [
        (own, repository.ids[place])
        for own, needle, candidates in queries
        for place in golds[needle]
        if place in candidates
    ]
    return Draft(
        name,
        [documents_batch(repository.ids, [each.path for each in repository.functions], repository.texts)],
        queries_table(
            [own for own, *_ in queries],
            [needle.description for _, needle, _ in queries],
            [_others(repository, candidates) for *_, candidates in queries],
        ),
        qrels_table([query for query, _ in judged], [document for _, document in judged]),
        problems=problems_table(
            [own for own, _, _ in problems],
            [ids[place] if among is None else own for own, place, _ in problems],
            [
                {
                    "needle": needles[place].function,
                    "gold": wanted[place],
                    "description": needles[place].description,
                    "depth": depth,
                }
                for _, place, depth in problems
            ],
        ),
        metrics=LENIENT if gold == "lenient" else (),
        posed=posed and f"{name}:{posed}",
        shared=shared(repository) | dict(extra or {}),
    )


def _others(repository: Repository, candidates: Collection[int]) -> list[str]:
    """The documents that are no candidates."""
    if len(candidates) == len(repository.functions):
        return []
    return [own for place, own in enumerate(repository.ids) if place not in candidates]


def across(drafts: Sequence[Draft]) -> Iterator[Draft]:
    """The same datasets, each needle looked for among the functions of all repositories of its language.

    A document is called `<repository>/<id>`; functions of equal text are relevant in every repository. The first draft
    of a language brings the corpus, which the others name.
    """
    by_language: dict[str, list[Draft]] = {}
    for draft in drafts:
        assert draft.shared is not None
        by_language.setdefault(draft.shared["language"], []).append(draft)
    for same in by_language.values():
        batches = [[_within(batch, draft.name) for batch in draft.documents] for draft in same]
        named: dict[str, list[str]] = {}
        texts: dict[str, str] = {}
        for batch in (each for own in batches for each in own):
            for own, text in zip(batch["id"].to_pylist(), batch["text"].to_pylist(), strict=True):
                texts[own] = _squeezed(text)
                named.setdefault(texts[own], []).append(own)
        for draft in same:
            judged: dict[tuple[str, str], None] = {}
            for row in draft.qrels.to_pylist():
                equal = named[texts[f"{draft.name}/{row['document_id']}"]]
                judged |= dict.fromkeys((row["query_id"], each) for each in equal)
            qrels = qrels_table([query for query, _ in judged], [document for _, document in judged])
            whole = [batch for own in batches for batch in own]
            yield draft._replace(documents=whole if draft is same[0] else same[0].name, qrels=qrels)


def _within(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    ids = [f"{name}/{own}" for own in batch["id"].to_pylist()]
    return documents_batch(ids, batch["title"].to_pylist(), batch["text"].to_pylist())


def _gold(repository: Repository, function: int, gold: str) -> list[int]:
    found = set(repository.copies(function))
    return sorted(found | set(repository.around(function)) if gold == "lenient" else found)


def _sample(ids: Sequence[str], sample: int | None, seed: int) -> list[int]:
    """The places of those with the lowest hashes of seed and id, in order."""
    if sample is None:
        return list(range(len(ids)))
    lottery = sorted(range(len(ids)), key=lambda place: hashlib.sha256(f"{seed}:{ids[place]}".encode()).digest())
    return sorted(lottery[:sample])


def depth_design(needles: int, depths: int, seed: int, name: str) -> list[list[float]]:
    """For each needle the places in a window where it is asked for, from 0, the beginning, to 1.

    A Latin square: the middles of as many equal parts as there are needles, each part taken by as many needles as any
    other, in a shuffled order, so that depth and needle are apart. RepoQA ties them: the i-th needle, the i-th part.
    """
    if not 1 <= depths <= needles:
        raise DataError(f"depths is {depths} and {name} has {needles} needles; wanted a number from 1 to these")
    draw = np.random.default_rng(int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "big"))
    order = draw.permutation(needles)
    steps = np.sort(draw.permutation(needles)[:depths])
    return [
        sorted(float((order[(place + step) % needles] + 0.5) / needles) for step in steps) for place in range(needles)
    ]


def shared(repository: Repository) -> dict[str, Any]:
    """What all problems of a repository hold: the whole of it, and a digest that it is known by."""
    found: dict[str, Any] = {
        "repository": repository.name,
        "language": repository.language,
        "files": dict(repository.files),
        "functions": [list(each) for each in repository.functions],
        "facts": dict(repository.facts),
    }
    whole = hashlib.sha256()
    for path, content in repository.contents.items():
        whole.update(f"{path}\0{len(content)}\0".encode() + content)
    whole.update(repr(found["functions"]).encode())
    return found | {"digest": whole.hexdigest()}


def of_shared(held: Mapping[str, Any]) -> Repository:
    """The repository that problems hold, without its needles; read once for all of them."""
    key = (held["digest"], bool(held.get("ignore_comments")))
    if key not in _READ:
        _READ.clear()  # problems come repository by repository
        functions = [Span(*each) for each in held["functions"]]
        ignores = bool(held.get("ignore_comments"))
        _READ[key] = Repository(
            held["repository"], held["language"], held["files"], functions, (), ignores_comments=ignores
        )
    return _READ[key]


_READ: dict[tuple[str, bool], Repository] = {}


def drafts(repositories: Iterable[Repository], **settings: Any) -> Iterator[Draft]:
    """The datasets of repositories, one after the other."""
    for repository in repositories:
        yield draft(repository, **settings)
