"""params.yaml to frozen dataclasses: the one way in for whatever a person may turn.

A key that is not known is refused with the nearest known one. The settings of a component (a retriever, a benchmark, a
fusion) are checked against its constructor when it is made, by `registry.fit_arguments`; here they stay mappings.
"""

import dataclasses
import math
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from coderet.registry import BadValue, nearest
from coderet.sampling import Sampling

FILE = Path("params.yaml")
TUNE = "tune"  # the setting of a fusion that says what of it is chosen on validation pairs
REFERENCES = ("none", "oracle", "random")  # runs of no retriever: without hits, the judgements, documents by lot
FUSED = 2  # runs that a fusion's stage in dvc.yaml depends on, for DVC cannot list the members of a list


class ParamsError(ValueError):
    """Something in params.yaml that cannot be meant: says where, what was wanted and the nearest known key."""


@dataclass(frozen=True)
class Mining:
    """How pairs are cut out of source files; the filters are those of CodeSearchNet."""

    languages: tuple[str, ...]
    min_doc_tokens: int
    min_code_lines: int
    max_code_lines: int
    drop_tests: bool
    drop_special_methods: bool
    valid_fraction: float
    set_jaccard: float
    multiset_jaccard: float
    min_fingerprint_tokens: int
    leak_query_words: int
    examples: bool
    processes: int


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer trained on the training pairs."""

    kind: str
    size: int
    min_count: int


@dataclass(frozen=True)
class Retriever:
    """kind names the class; fit, index and search are its settings, by the stage that turns on them."""

    kind: str
    fit: Mapping[str, Any]
    index: Mapping[str, Any]
    search: Mapping[str, Any]

    @property
    def spec(self) -> dict[str, Any]:
        """What `retrievers.load` takes when searching."""
        return {"kind": self.kind, "index": self.index, **self.search}


@dataclass(frozen=True)
class Fusion:
    """A run made of the runs of its members."""

    kind: str
    members: tuple[str, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Reranker:
    """What scores the first top hits of a run anew; below says what becomes of the others: drop or keep."""

    kind: str
    fit: Mapping[str, Any]
    top: int
    below: str
    text_fields: tuple[str, ...]
    settings: Mapping[str, Any]

    def spec(self, run: str) -> dict[str, Any]:
        """What a run that comes of reranking another says it was made with."""
        own = {"top": self.top, "below": self.below, "text_fields": list(self.text_fields)}
        return {"kind": self.kind, "of": run, "fit": self.fit, **own, **self.settings}


@dataclass(frozen=True)
class Context:
    """What of a run a generator is shown: so many documents, budget tokens of them together.

    run: a run of the grid, none or oracle. withheld: whether a question's own canonical answer is left `out` or `kept`.
    chunking: how documents are cut after the search, and chunk, which part of each is taken: first or best. window: so
    many tokens around the answer where it stands, instead, of benchmarks whose problems have such a place; 0 for none.
    order: how documents stand in the prompt, by `rank`, `reversed` or as in their `file`. comments: whether a window's
    are `kept`, `removed`, or removed and `padded`. distractors: instead of the first documents the relevant ones and
    so many others of the run; 0 for no such thing. shows: a document's `text`, or its place and name alone, of which
    one is to be named (`names`), of benchmarks that ask so.
    """

    run: str
    documents: int
    budget: int
    withheld: str
    chunking: Mapping[str, Any]
    chunk: str
    window: int
    order: str
    comments: str
    distractors: int
    shows: str


@dataclass(frozen=True)
class Generator:
    """What answers. fit: how it is prepared; settings: those it runs with."""

    kind: str
    fit: Mapping[str, Any]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Answering:
    """passes: the k of pass@k. processes: programs judged side by side.

    left_out: problems, by their set, that are neither asked nor counted, such as those whose reference fails here.
    """

    sampling: Sampling
    passes: tuple[int, ...]
    processes: int
    left_out: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Benchmark:
    """kind names the reader, source the pinned files; depth is how many hits a query are kept.

    A source of `official` stands for the files that the benchmark's own record names. Benchmarks of one group share its
    weight in the mean over groups; one without a group is in no mean. answer_tokens: of an answer to its problems,
    instead of answering.sampling.max_new_tokens; 0 for these.
    """

    kind: str
    source: tuple[str, ...]
    depth: int
    group: str
    answer_tokens: int
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Grid:
    """What is crossed with what. trained learn from pairs, distilled from pairs and teacher, untrained do not learn.

    tuned are fusions that are tuned on pairs.

    Retrievers in negatives mine hard negatives, each of rescorers scores them anew, and trained_on_negatives learn from
    pairs and from these.

    Every run of reranked, which are retrievers and fusions, is reranked by every one of rerankers. runs are retrievers,
    fusions and what comes of reranking.

    The problems of the benchmarks in answered are put to each of generators with each of contexts; those of the
    benchmarks in read, which have a place in a repository, with each of reading, which are contexts too.
    """

    sources: tuple[str, ...]
    benchmarks: tuple[str, ...]
    trained: tuple[str, ...]
    distilled: tuple[str, ...]
    teacher: str
    untrained: tuple[str, ...]
    negatives: tuple[str, ...]
    rescorers: tuple[str, ...]
    trained_on_negatives: tuple[str, ...]
    retrievers: tuple[str, ...]
    fusions: tuple[str, ...]
    tuned: tuple[str, ...]
    reranked: tuple[str, ...]
    rerankers: tuple[str, ...]
    runs: tuple[str, ...]
    answered: tuple[str, ...]
    contexts: tuple[str, ...]
    read: tuple[str, ...]
    reading: tuple[str, ...]
    generators: tuple[str, ...]

    @property
    def learned(self) -> tuple[str, ...]:
        """The retrievers whose encoders are made here."""
        return self.trained + self.trained_on_negatives + self.distilled

    @property
    def rerankings(self) -> dict[str, tuple[str, str]]:
        """The runs that come of reranking: by name, the run they start from and the reranker."""
        return {reranking(run, name): (run, name) for run in self.reranked for name in self.rerankers}

    @property
    def asked(self) -> tuple[tuple[str, str, str], ...]:
        """Everything that is asked: a benchmark, a context and a generator."""
        crossed = ((self.answered, self.contexts), (self.read, self.reading))
        return tuple(
            (benchmark, context, generator)
            for benchmarks, contexts in crossed
            for benchmark in benchmarks
            for generator in self.generators
            for context in contexts
        )

    @property
    def answers(self) -> dict[str, tuple[str, str]]:
        """What answers, by name: the context and the generator."""
        return {answerer(context, generator): (context, generator) for _, context, generator in self.asked}


@dataclass(frozen=True)
class Scoring:
    """Bootstrap intervals of means over queries."""

    confidence: float
    resamples: int


@dataclass(frozen=True)
class Compare:
    """The system that all others are tested against."""

    baseline: str
    permutations: int


@dataclass(frozen=True)
class Efficiency:
    """How searches are timed: queries in batches, and some alone, of which the first warm up and are not counted."""

    batch_queries: int
    single_queries: int
    warm_up: int


@dataclass(frozen=True)
class Params:
    """The whole of params.yaml."""

    code: str
    expected_minutes: int
    seed: int
    sources: Mapping[str, tuple[str, ...]]
    mining: Mining
    vocabulary: Vocabulary
    negatives: Mapping[str, Mapping[str, Any]]
    rescorers: Mapping[str, Mapping[str, Any]]
    benchmarks: Mapping[str, Benchmark]
    retrievers: Mapping[str, Retriever]
    fusions: Mapping[str, Fusion]
    rerankers: Mapping[str, Reranker]
    contexts: Mapping[str, Context]
    generators: Mapping[str, Generator]
    answering: Answering
    scoring: Scoring
    efficiency: Efficiency
    compare: Compare
    grid: Grid = field(repr=False)

    def sampled(self, benchmark: str) -> Sampling:
        """How the answers to a benchmark's problems are drawn."""
        tokens = self.benchmarks[benchmark].answer_tokens or self.answering.sampling.max_new_tokens
        return dataclasses.replace(self.answering.sampling, max_new_tokens=tokens)


def reranking(run: str, reranker: str) -> str:
    """The name of a run reranked; no entry of params.yaml can have it, for + is not allowed there."""
    return f"{run}+{reranker}"


def answerer(context: str, generator: str) -> str:
    """The name of a generator that is shown a context."""
    return f"{context}+{generator}"


def rescoring(retriever: str, rescorer: str) -> str:
    """The name of a retriever's negatives that another one scored anew."""
    return f"{retriever}+{rescorer}"


def read(path: Path = FILE) -> Params:
    """The params in path; ParamsError if it is missing, is not YAML, or says something that is not known."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ParamsError(f"there is no {path} in {Path.cwd()}; run from the folder that holds it") from None
    except UnicodeDecodeError as error:
        raise ParamsError(f"{path} is not UTF-8: {error}; save it as UTF-8") from None
    try:
        raw = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ParamsError(f"{path} is not YAML: {error}") from None
    return of(raw, str(path))


def of(raw: Any, where: str = str(FILE)) -> Params:
    """Params from what YAML gave."""
    params = _record(Params, raw, where)
    _check_names(params, where)
    _check_grid(params, where)
    return params


def is_name(text: str) -> bool:
    """Whether an entry may be called so."""
    return bool(_NAME.fullmatch(text))


def _check_names(params: Params, where: str) -> None:
    """Names become folders and names of stages."""
    for family in ("sources", "benchmarks", "retrievers", "fusions", "rerankers", "contexts", "generators"):
        for name in getattr(params, family):
            if not is_name(name):
                raise ParamsError(
                    f"{where}: {family} has an entry named {name!r}; wanted letters, digits, '.', '_' and '-', "
                    "the first a letter or digit"
                )
    for name in params.fusions:
        if name in params.retrievers:
            raise ParamsError(f"{where}: {name!r} is both a retriever and a fusion; their runs would share a folder")
    for name in REFERENCES:
        if name in params.retrievers or name in params.fusions:
            raise ParamsError(f"{where}: {name!r} names a retriever or a fusion, and is the name of a reference run")


def _check_grid(params: Params, where: str) -> None:
    grid = params.grid
    known: dict[str, Mapping[str, Any]] = {
        "sources": params.sources,
        "benchmarks": params.benchmarks,
        "trained": params.retrievers,
        "distilled": params.retrievers,
        "untrained": params.retrievers,
        "negatives": params.retrievers,
        "rescorers": params.retrievers,
        "trained_on_negatives": params.retrievers,
        "retrievers": params.retrievers,
        "fusions": params.fusions,
        "tuned": dict.fromkeys(grid.fusions),
        "reranked": dict.fromkeys((*grid.retrievers, *grid.fusions)),
        "rerankers": params.rerankers,
        "answered": dict.fromkeys(grid.benchmarks),
        "contexts": params.contexts,
        "read": dict.fromkeys(grid.benchmarks),
        "reading": params.contexts,
        "generators": params.generators,
    }
    if not grid.benchmarks:
        raise ParamsError(f"{where}: grid.benchmarks is empty; wanted at least one name")
    for name in params.sources:
        if name in params.benchmarks:
            raise ParamsError(f"{where}: {name!r} is both a source and a benchmark; their files would share a folder")
    for axis, entries in known.items():
        names = getattr(grid, axis)
        for name in names:
            if name not in entries:
                family = {
                    "trained": "under retrievers",
                    "distilled": "under retrievers",
                    "untrained": "under retrievers",
                    "negatives": "under retrievers",
                    "rescorers": "under retrievers",
                    "trained_on_negatives": "under retrievers",
                    "tuned": "in grid.fusions",
                    "reranked": "in grid.retrievers or grid.fusions",
                    "answered": "in grid.benchmarks",
                    "read": "in grid.benchmarks",
                    "reading": "under contexts",
                }.get(axis, f"under {axis}")
                raise ParamsError(
                    f"{where}: grid.{axis} names {name!r}, which is not {family}; "
                    f"known: {', '.join(entries)}.{nearest(name, entries)}"
                )
        if len(set(names)) != len(names):
            raise ParamsError(f"{where}: grid.{axis} names something twice: {list(names)}")
    if sorted(grid.learned + grid.untrained) != sorted(grid.retrievers):
        raise ParamsError(
            f"{where}: every name in grid.retrievers must be in exactly one of grid.trained (it learns from pairs), "
            f"grid.trained_on_negatives, grid.distilled (from a teacher too) and grid.untrained; found "
            f"{list(grid.retrievers)} against {list(grid.trained)}, {list(grid.trained_on_negatives)}, "
            f"{list(grid.distilled)} and {list(grid.untrained)}"
        )
    if grid.distilled and (grid.teacher not in grid.retrievers or grid.teacher in grid.distilled):
        teachers = [name for name in grid.retrievers if name not in grid.distilled]
        raise ParamsError(
            f"{where}: grid.distilled names {list(grid.distilled)} and grid.teacher is {grid.teacher!r}; wanted a name "
            f"in grid.retrievers that is not distilled: {', '.join(teachers)}.{nearest(grid.teacher, teachers)}"
        )
    for axis in ("negatives", "rescorers"):
        for name in getattr(grid, axis):
            if name in grid.trained_on_negatives:
                raise ParamsError(
                    f"{where}: grid.{axis} names {name!r}, which is in grid.trained_on_negatives and would wait for "
                    "itself; train it on pairs alone (grid.trained), or name another"
                )
    for name in grid.trained_on_negatives:
        wanted = (params.retrievers[name].fit.get("pairs") or {}).get("negatives")
        mined = [*grid.negatives, *(rescoring(one, other) for one in grid.negatives for other in grid.rescorers)]
        if wanted not in mined:
            raise ParamsError(
                f"{where}: retrievers.{name}.fit.pairs.negatives is {wanted!r}; wanted one that grid.negatives and "
                f"grid.rescorers give: {', '.join(mined) or 'none'}.{nearest(str(wanted), mined)}"
            )
    if bool(grid.reranked) != bool(grid.rerankers):
        raise ParamsError(
            f"{where}: grid.reranked is {list(grid.reranked)} and grid.rerankers {list(grid.rerankers)}; "
            "wanted names in both, which are crossed, or in neither"
        )
    wanted = [*grid.retrievers, *grid.fusions, *grid.rerankings]
    if sorted(wanted) != sorted(grid.runs):
        raise ParamsError(
            f"{where}: grid.runs must be grid.retrievers, grid.fusions and every <run>+<reranker> together; "
            f"found {list(grid.runs)}, wanted {wanted}"
        )
    for name, reranker in params.rerankers.items():
        if reranker.below not in ("drop", "keep"):
            raise ParamsError(f"{where}: rerankers.{name}.below is {reranker.below!r}; wanted drop or keep")
    _check_answers(params, where)
    if not grid.runs:
        raise ParamsError(f"{where}: grid.runs is empty; wanted at least one name")
    for name in grid.fusions:
        members = params.fusions[name].members
        if len(members) != FUSED or len(set(members)) != len(members):
            raise ParamsError(
                f"{where}: fusions.{name}.members is {list(members)}; wanted {FUSED} different retrievers, "
                f"whose runs the stage fuse-{name} of dvc.yaml depends on"
            )
        for member in params.fusions[name].members:
            if member not in grid.retrievers:
                raise ParamsError(
                    f"{where}: fusions.{name}.members names {member!r}, which is not in grid.retrievers."
                    f"{nearest(member, grid.retrievers)}"
                )
        if (TUNE in params.fusions[name].settings) != (name in grid.tuned):
            stands = "has" if TUNE in params.fusions[name].settings else "lacks"
            raise ParamsError(
                f"{where}: fusions.{name} {stands} `{TUNE}` and grid.tuned is {list(grid.tuned)}; "
                "wanted in it just those of grid.fusions that are to be tuned"
            )
    if params.compare.baseline not in grid.runs:
        raise ParamsError(
            f"{where}: compare.baseline is {params.compare.baseline!r}, which is not in grid.runs: {list(grid.runs)}."
            f"{nearest(params.compare.baseline, grid.runs)}"
        )


def _check_answers(params: Params, where: str) -> None:
    """Contexts are of runs that there are, and no answerer has the name of a reranked run."""
    grid = params.grid
    if grid.answered and not (grid.contexts and grid.generators):
        raise ParamsError(
            f"{where}: grid.answered is {list(grid.answered)}, grid.contexts {list(grid.contexts)} and grid.generators "
            f"{list(grid.generators)}; wanted names in all three, which are crossed, or none in grid.answered"
        )
    if grid.read and not (grid.reading and grid.generators):
        raise ParamsError(
            f"{where}: grid.read is {list(grid.read)}, grid.reading {list(grid.reading)} and grid.generators "
            f"{list(grid.generators)}; wanted names in all three, which are crossed, or none in grid.read"
        )
    if both := [name for name in grid.read if name in grid.answered]:
        raise ParamsError(
            f"{where}: {both[0]!r} is both in grid.answered and in grid.read; wanted in one of them, for two stages "
            "would write the same results"
        )
    for name, context in params.contexts.items():
        choices = (
            ("withheld", context.withheld, ("out", "kept")),
            ("chunk", context.chunk, ("first", "best")),
            ("order", context.order, ("rank", "reversed", "file")),
            ("comments", context.comments, ("kept", "removed", "padded")),
            ("shows", context.shows, ("text", "names")),
        )
        for key, value, allowed in choices:
            if value not in allowed:
                raise ParamsError(f"{where}: contexts.{name}.{key} is {value!r}; wanted {' or '.join(allowed)}")
    runs = (*grid.runs, *REFERENCES)
    for name in dict.fromkeys(context for _, context, _ in grid.asked):
        run = params.contexts[name].run
        if run not in runs:
            raise ParamsError(
                f"{where}: contexts.{name}.run is {run!r}, which is not in grid.runs: {', '.join(runs)}."
                f"{nearest(run, runs)}"
            )
    for name in grid.answers:
        if name in grid.rerankings:
            raise ParamsError(
                f"{where}: {name!r} is a context with a generator and a reranked run; give one of them another name"
            )
    sampling = params.answering.sampling
    if too_many := [k for k in params.answering.passes if not 1 <= k <= sampling.samples]:
        raise ParamsError(
            f"{where}: answering.passes names {too_many}; wanted numbers from 1 to answering.sampling.samples: "
            f"{sampling.samples}"
        )


class _Loader(yaml.SafeLoader):
    """YAML in which a key that stands twice is an error, not a silent choice of the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key, (key_node, _) in zip(keys, node.value, strict=True):
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands twice", key_node.start_mark)
        return super().construct_mapping(node, deep)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LIMITS: dict[tuple[type, str], tuple[float, float]] = {
    (Params, "seed"): (0, 2**32 - 1),  # NumPy takes no others
    (Mining, "min_doc_tokens"): (0, math.inf),
    (Mining, "min_code_lines"): (0, math.inf),
    (Mining, "max_code_lines"): (1, math.inf),
    (Mining, "valid_fraction"): (0, 1),
    (Mining, "set_jaccard"): (0, 1),
    (Mining, "multiset_jaccard"): (0, 1),
    (Mining, "min_fingerprint_tokens"): (0, math.inf),
    (Mining, "leak_query_words"): (0, math.inf),
    (Mining, "processes"): (1, math.inf),
    (Vocabulary, "size"): (1, math.inf),
    (Vocabulary, "min_count"): (1, math.inf),
    (Benchmark, "depth"): (1, 2**31 - 1),
    (Benchmark, "answer_tokens"): (0, 2**31 - 1),
    (Reranker, "top"): (1, 2**31 - 1),
    (Context, "documents"): (1, 2**31 - 1),
    (Context, "budget"): (0, math.inf),
    (Context, "window"): (0, math.inf),
    (Context, "distractors"): (0, 2**31 - 1),
    (Answering, "processes"): (1, math.inf),
    (Scoring, "confidence"): (0, 1),
    (Scoring, "resamples"): (1, math.inf),
    (Compare, "permutations"): (1, math.inf),
    (Efficiency, "batch_queries"): (1, math.inf),
    (Efficiency, "single_queries"): (1, math.inf),
    (Efficiency, "warm_up"): (0, math.inf),
}
"""The lowest and highest value, both allowed."""

_OPEN = {
    Retriever: "search",
    Fusion: "settings",
    Reranker: "settings",
    Benchmark: "settings",
    Generator: "settings",
}
_OPTIONAL: dict[type, dict[str, Any]] = {
    Retriever: {"fit": {}, "index": {}},
    Reranker: {"fit": {}, "below": "drop", "text_fields": ["text"]},
    Benchmark: {"group": "", "answer_tokens": 0},
    Context: {
        "documents": 5,
        "budget": 4096,
        "withheld": "out",
        "chunking": {},
        "chunk": "first",
        "window": 0,
        "order": "rank",
        "comments": "kept",
        "distractors": 0,
        "shows": "text",
    },
    Generator: {"fit": {}},
    Answering: {"passes": [1], "processes": 2, "left_out": {}},
    Grid: {
        "distilled": [],
        "teacher": "",
        "negatives": [],
        "rescorers": [],
        "trained_on_negatives": [],
        "tuned": [],
        "answered": [],
        "contexts": [],
        "read": [],
        "reading": [],
        "generators": [],
    },
    Params: {
        "negatives": {},
        "rescorers": {},
        "contexts": {},
        "generators": {},
        "answering": {"sampling": {}},
    },
}


def _record(kind: type, raw: Any, where: str) -> Any:
    """A dataclass from a mapping; keys that an open record does not name are its component's settings."""
    if not isinstance(raw, Mapping):
        raise ParamsError(f"{where} is {raw!r}; wanted a mapping")
    names = [each.name for each in dataclasses.fields(kind)]
    rest_name = _OPEN.get(kind)
    given = dict(raw)
    if rest_name:
        names.remove(rest_name)
        rest = {key: given.pop(key) for key in list(given) if key not in names}
        given[rest_name] = rest
    else:
        for key in given:
            if key not in names:
                raise ParamsError(
                    f"{where}: {key!r} is not a known key.{nearest(key, names)} Known: {', '.join(names)}"
                )
    for key, default in _OPTIONAL.get(kind, {}).items():
        given.setdefault(key, default)
    own_defaults = {each.name for each in dataclasses.fields(kind) if each.default is not dataclasses.MISSING}
    missing = [name for name in names if name not in given and name not in own_defaults]
    if missing:
        near = nearest(missing[0], given.get(rest_name, {})) if rest_name else ""
        raise ParamsError(f"{where} lacks {', '.join(missing)}.{near}")
    hints = typing.get_type_hints(kind)
    values = {name: _value(hints[name], value, f"{where}: {name}") for name, value in given.items()}
    for name, value in values.items():
        low, high = _LIMITS.get((kind, name), (-math.inf, math.inf))
        if isinstance(value, int | float) and not low <= value <= high:  # NaN is refused too
            raise ParamsError(f"{where}: {name} is {value}; wanted a number from {low} {_up_to(high)}")
    try:
        return kind(**values)
    except BadValue as error:
        raise ParamsError(f"{where}: {error}") from None


def _up_to(high: float) -> str:
    return "on" if high == math.inf else f"to {high}"


class _Entries(dict[str, Any]):
    """A section of named entries; asking for another name is an error that offers the nearest."""

    def __init__(self, where: str, entries: Mapping[str, Any]) -> None:
        super().__init__(entries)
        self._where = where

    def __missing__(self, name: str) -> Any:
        known = ", ".join(self) or "none"
        raise ParamsError(f"{self._where} has no entry {name!r}; known: {known}.{nearest(name, self)}")


def _value(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _record(typing.cast(type, hint), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise ParamsError(f"{where} is {value!r}; wanted a list")
        return tuple(_value(arguments[0], each, f"{where}[{i}]") for i, each in enumerate(value))
    if hint is Any:
        return value
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ParamsError(f"{where} is {value!r}; wanted a mapping")
        entries = {str(key): _value(arguments[1], each, f"{where}.{key}") for key, each in value.items()}
        return entries if arguments[1] is Any else _Entries(where, entries)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ParamsError(f"{where} is {value!r}; wanted {hint.__name__}")
    return value
