"""Needles out of pinned packages: RepoQA's task, built here, so that it runs with a package registry alone.

A repository is a package, all its files of one language but tests and what is another's. What is documented is known by
its documentation, so that of every function is taken out of the files: nowhere in context or corpus does a needle stand
beside the words that ask for it. The description is these words without names (`corpora.describing`).

A needle has a name that no other function of its package has, LEAST_LINES lines or more and at most MOST_BYTES bytes,
both without documentation, and no copy, exact or near, among the others; methods that a language calls by itself are
none. As in RepoQA the package is cut into BINS equal parts, of which each gives one at most, and `needles` of them are
drawn; unlike there by the seed, in both. A package that gives fewer is an error that names it.

How hard they are the scores say: those of bm25, and the chance level beside every figure.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from coderet import registry
from coderet.benchmarks.candidates import among, drafted
from coderet.benchmarks.needles import GAUGED, METRICS, Candidates, Needle, Repository, Span, draft, spans
from coderet.corpora import archives, mining, syntax
from coderet.corpora.dependency_order import dependency_order
from coderet.corpora.describing import description
from coderet.corpora.file_imports import file_imports
from coderet.corpora.fingerprints import Threshold, fingerprint, first_copies
from coderet.records import Benchmark, DataError, Draft

BINS = 64
LEAST_LINES, MOST_BYTES = 4, 2000
SMALL = "small"


@dataclass(frozen=True)
class _Candidate:
    function: int
    offset: int  # in the whole repository
    description: str


def collect(
    folder: Path,
    *,
    languages: Sequence[str] = ("python",),
    needles: int = 10,
    posed: int = 0,
    depths: int = 1,
    gold: Literal["strict", "lenient"] = "strict",
    ignore_comments: bool = False,
    candidates: Candidates = "repository",
    window: int = 0,
    seed: int = 13,
) -> Iterator[Draft]:
    """One dataset a package, in the first of languages that it has functions of.

    needles: how many each gives. posed: how many of them are put to generators, a fixed sample, whose set of problems
    is then called `<package>:small`; 0 for all. depths, gold: as in `needles.draft`. ignore_comments: whether answers
    are compared without them. candidates, window: among which functions a needle is looked for (`candidates.py`).
    """
    if unknown := [each for each in languages if each not in syntax.LANGUAGES]:
        raise DataError(f"languages has {unknown[0]!r}; known: {', '.join(sorted(syntax.LANGUAGES))}")
    for key, value, low in (("needles", needles, 1), ("posed", posed, 0), ("depths", depths, 1)):
        registry.check_range(key, value, low)
    small, sample = (SMALL, posed) if posed else ("", None)
    made = partial(
        draft,
        depths=depths,
        gold=gold,
        seed=seed,
        posed=small,
        sample=sample,
        extra={"ignore_comments": ignore_comments},
        among=among(candidates, window),
    )
    found = mining.repositories(folder).items()
    yield from drafted((made(repository(name, path, languages, needles, seed)) for name, path in found), candidates)


def repository(name: str, path: Path, languages: Sequence[str], wanted: int, seed: int) -> Repository:
    """A package with so many needles; DataError if it gives fewer."""
    for language in languages:
        read = dict(_sources(path, language))
        if any(spans(each, source.utf8.decode(), language) for each, source in read.items()):
            break  # declarations alone, as they lie beside JavaScript, are no functions
    plain = {each: undocumented(source, language) for each, source in read.items()}
    order = dependency_order(file_imports(plain, language))
    files = {each: plain[each] for each in order}
    functions = [span for each, text in files.items() for span in spans(each, text, language)]
    whole = Repository(name, language, files, functions, ())
    facts: Counter[str] = Counter()
    candidates = list(_candidates(whole, read, facts))
    chosen = _drawn(candidates, sum(map(len, whole.contents.values())), wanted, f"{seed}:{name}")
    if len(chosen) < wanted:
        raise DataError(
            f"{path.name} gives {len(chosen)} needles, wanted {wanted}: of {len(functions)} functions "
            f"{', '.join(f'{count} {cause}' for cause, count in facts.most_common()) or 'none is documented'}; take "
            "another package, or fewer needles"
        )
    return Repository(
        name, language, files, functions, [Needle(each.function, each.description) for each in chosen], dict(facts)
    )


def _sources(path: Path, language: str) -> Iterator[tuple[str, syntax.Source]]:
    """The files of a package by path, without tests, what is another's and what a tool wrote."""
    filters = mining.Filters()
    for name, data in archives.members(path, syntax.LANGUAGES[language].extensions):
        if mining.path_cause(name, filters) or mining.built_cause(name, data, language, filters):
            continue
        try:
            yield name, syntax.decode(data, language)
        except syntax.Unreadable:
            continue


def undocumented(source: syntax.Source, language: str) -> str:
    """A file without the documentation of its functions."""
    utf8 = source.utf8
    try:
        found = syntax.functions(source, language)
    except syntax.Unreadable:
        return utf8.decode()
    for each in reversed(found):
        if syntax.LANGUAGES[language].docs == "string":
            utf8 = utf8[: each.start] + each.plain + utf8[each.end :]
            continue
        for start, end in reversed(each.docs):
            start = utf8.rfind(b"\n", 0, start) + 1
            following = utf8.find(b"\n", end)
            utf8 = utf8[:start] + utf8[following + 1 if following >= 0 else len(utf8) :]
    return utf8.decode()


def _candidates(whole: Repository, read: Mapping[str, syntax.Source], facts: Counter[str]) -> Iterator[_Candidate]:
    """The functions that may be needles; why others may not is counted."""
    names = Counter(each.name.rpartition(".")[2] for each in whole.functions)
    copied = _copied(whole)
    offsets = dict(zip(whole.contents, np.cumsum([0, *map(len, whole.contents.values())]).tolist(), strict=False))
    by_path: dict[str, list[int]] = {}
    for place, span in enumerate(whole.functions):
        by_path.setdefault(span.path, []).append(place)
    for path, places in by_path.items():
        documented = syntax.functions(read[path], whole.language)
        if [each.qualified_name for each in documented] != [whole.functions[place].name for place in places]:
            facts["in a file that reads otherwise without its documentation"] += len(places)
            continue
        for place, function in zip(places, documented, strict=True):
            cause, text = _asked(function, whole.functions[place], whole.texts[place], names, copied[place])
            facts[cause] += 1
            if cause == "candidates":
                yield _Candidate(place, offsets[path] + whole.functions[place].start, text)


def _asked(function: syntax.Function, span: Span, text: str, names: Mapping[str, int], copied: bool) -> tuple[str, str]:
    """What a function counts as, with its description if that is "candidates"."""
    if not function.docs:
        return "undocumented", ""
    if function.has_error or mining.is_special(function):
        return "special or broken", ""
    if names[function.name] > 1:
        return "of a name that others have", ""
    if copied:
        return "copies", ""
    if len(text.encode()) > MOST_BYTES or sum(1 for line in text.splitlines() if line.strip()) < LEAST_LINES:
        return "too long or too short", ""
    asked = description(function.docstring or "", text, span.name.split("."))
    return (f"described {asked.cause}", "") if asked.cause else ("candidates", asked.text)


def _copied(whole: Repository) -> np.ndarray:
    """(F,) bool: whether a function is a copy, exact or near, of another."""
    if not whole.functions:
        return np.zeros(0, bool)
    texts = pa.chunked_array([pa.array(whole.texts, pa.large_string())])
    languages = pa.chunked_array([pa.array([whole.language] * len(whole.texts), pa.large_string())])
    first, _ = first_copies(fingerprint(texts, languages), Threshold())
    return np.bincount(first, minlength=len(first))[first] > 1


def _drawn(candidates: Sequence[_Candidate], size: int, wanted: int, seed: str) -> list[_Candidate]:
    """So many, no two of one of the BINS parts of size bytes, in the order of the repository."""

    def lottery(each: _Candidate) -> bytes:
        return hashlib.sha256(f"{seed}:{each.offset}:{each.description}".encode()).digest()

    bins: dict[int, _Candidate] = {}
    for each in sorted(candidates, key=lottery):
        bins.setdefault(each.offset * BINS // max(1, size), each)
    return sorted(sorted(bins.values(), key=lottery)[:wanted], key=lambda each: each.offset)


PYPI = Benchmark(
    name="needles-pypi",
    collect=collect,
    metrics=METRICS,
    mean="datasets",
    resampled="datasets",
    gauged=GAUGED,
    licence="of each package, see params.yaml",
    source="packages of PyPI, pinned by hash",
    choices={
        "description": "a function's own documentation up to its first section, names masked",
        "documentation": "taken out of all functions",
        "candidates": "all functions of the package",
        "mean": "packages alike",
    },
    queries="ten descriptions a package",
    documents="functions, a corpus a package",
    defects=("Descriptions are as good as the package's documentation; some say little.",),
    answering="coderet.benchmarks.answers.needles:ANSWERING",
)
NPM = replace(
    PYPI,
    name="needles-npm",
    source="packages of npm, pinned by hash",
    choices={**PYPI.choices, "language": "the first of languages that a package has functions of"},
)
