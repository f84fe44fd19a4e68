"""RepoEval as a retrieval benchmark, as CodeRAG-Bench builds it (Wang et al., 2024; Zhang et al., 2023, RepoCoder).

A query is a prompt: the lines of a file that come before a hole. Its corpus is the repository in windows of `window`
lines, one every `step` lines; windows of equal text are one document, named by the first one's file and start
and the last one's end. Relevant is every window of the prompt's file that overlaps the prompt's own lines or the line
after them, so what is asked is whether a retriever finds the place where it stands. One dataset a repository; the mean
weighs repositories alike.

The windows are of the whole file, so the ones around the hole show its answer. In `repoeval` a window that holds one of
the hole's lines may be no hit of that query and is no gold of it; `repoeval-paper` leaves them in, as the paper did. A
query whose every relevant window shows the answer then has none left: it is counted as a query without gold.

Answers are judged (`answers/repoeval.py`): function bodies by the repository's tests, which stand among its files or,
for redframes, in its release; lines and calls by comparison. A problem whose test files are not among those given has
none, and is no pass.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from coderet.benchmarks.answers.repoeval import near, packed
from coderet.corpora import archives
from coderet.corpora.released import json_lines, json_whole
from coderet.records import (
    Benchmark,
    DataError,
    Draft,
    Published,
    Released,
    documents_batch,
    problems_table,
    qrels_table,
    queries_table,
)

FUNCTIONS = {
    "amazon-science_patchcore-inspection": 32,
    "deepmind_tracr": 146,
    "facebookresearch_omnivore": 22,
    "google_lightweight_mmm": 64,
    "lucidrains_imagen-pytorch": 67,
    "maxhumber_redframes": 42,
}
"""The repositories that CodeRAG-Bench keeps of RepoCoder's eight, and their tasks."""

LEFT_OUT = "facebookresearch_omnivore"  # its licence lets no copy of it be handed on
FOLDER = "repoeval"
LEVELS = {"function": "function_level", "line": "line_and_api_level", "api": "line_and_api_level"}
CONTEXTS = ("1k", "2k", "4k")
SUFFIX = ".py"
TESTS = Released(
    "coderag_bench/repoeval_task_id2tests.json",
    "bce67b75fc290e135c1c4dc2278372cee6185efe14b2d1a51c75e71257df5b67",
    "url:https://raw.githubusercontent.com/code-rag-bench/code-rag-bench/f9e100ca9ed94b8f1983b356ae81966e30210cf4"
    "/generation/eval/tasks/custom_metrics/repoeval_task_id2tests.json",
)
"""The test files of every task."""

RELEASES = {
    "maxhumber_redframes": Released(
        f"{FOLDER}/redframes-1.4.1.tar.gz",
        "a340a7b9e1b09b5e32967e67fecef5b0e7026a9c0c379ab8ec872f0ba2d7b5a4",
        "sdist:redframes==1.4.1#sha256=a340a7b9e1b09b5e32967e67fecef5b0e7026a9c0c379ab8ec872f0ba2d7b5a4",
    )
}
"""Where tests are that a repository's packed files lack; the code is the same but for its version."""


class Window(NamedTuple):
    """A document: the places where its text occurs, as (path, start, end) of lines counted from 0, end exclusive."""

    text: str
    places: tuple[tuple[str, int, int], ...]

    @property
    def path(self) -> str:
        return self.places[0][0]

    @property
    def id(self) -> str:
        return f"{self.path.replace('/', '-')}_{self.places[0][1]}-{self.places[-1][2]}"


@dataclass(frozen=True)
class Choices:
    """level: which of RepoCoder's three kinds of holes; tasks: how many, in repositories (None: all that there are).

    leak_free: windows that show the hole's lines are excluded.
    """

    level: str
    repositories: tuple[str, ...] | None
    tasks: int
    leak_free: bool

    def collect(
        self,
        folder: Path,
        *,
        window: int = 50,
        step: int = 10,
        context: str = "2k",
        tests: Literal["all", "near"] = "all",
    ) -> Iterator[Draft]:
        """One dataset a repository, of windows of so many lines; context tells which task file.

        tests: whether a body is judged by all test files of its task, or by the few that are nearest to it.
        """
        if not 1 <= step <= window:
            raise DataError(
                f"window is {window} and step {step}; wanted a step from 1 to the window, or lines are lost"
            )
        by_repository = _by_repository(folder, task_file(self.level, context), self.repositories)
        found = sum(map(len, by_repository.values()))
        if found != self.tasks:
            raise DataError(
                f"{folder / task_file(self.level, context)} has {found} tasks of these repositories, expected "
                f"{self.tasks}; it is not whole or not RepoEval's"
            )
        mapped = json_whole(folder, TESTS.name) if self.level == "function" else {}
        for repository, tasks in by_repository.items():
            files = dict(_files(folder, LEVELS[self.level], repository))
            draft = _draft(repository, windows(files, window, step), tasks, self.leak_free)
            if self.level == "function":
                posed = _functions(repository, files | _released(folder, repository), tasks, mapped, tests)
            else:
                posed = [_compared(task) for task in tasks]
            ids = draft.queries["id"].combine_chunks()
            yield draft._replace(problems=problems_table(ids, ids, posed), problems_expected=len(tasks))


def windows(files: Mapping[str, str], size: int, step: int) -> list[Window]:
    """The windows of files, texts by path, merged where equal.

    Around every step-th line lie size // 2 lines before it and the rest from it on, as far as the file goes.
    """
    places: dict[str, list[tuple[str, int, int]]] = {}
    for path, text in files.items():
        lines = text.splitlines()
        for centre in range(0, len(lines), step):
            start, end = max(0, centre - size // 2), min(len(lines), centre + size - size // 2)
            places.setdefault("\n".join(lines[start:end]), []).append((path, start, end))
    return [Window(text, tuple(where)) for text, where in places.items()]


def _draft(name: str, corpus: Sequence[Window], tasks: Sequence[Mapping[str, Any]], leak_free: bool) -> Draft:
    by_path: dict[str, list[Window]] = {}
    for each in corpus:
        for path in {path for path, _, _ in each.places}:
            by_path.setdefault(path, []).append(each)
    ids, texts, excluded, judged = [], [], [], []
    for number, task in enumerate(tasks):
        facts = task["metadata"]
        path, first = "/".join(facts["fpath_tuple"]), facts["context_start_lineno"]
        hole = facts["lineno"], facts["lineno"] + len(facts["ground_truth"].splitlines())
        there = by_path.get(path)
        if there is None:
            raise DataError(f"{name} has no file {path}, which a task is about; put all files of the repository there")
        shown = {each.id for each in there if leak_free and _touches(each, path, *hole)}
        gold = [each.id for each in there if each.path == path and _overlaps(each, first, hole[0] + 1)]
        ids.append(f"{name}/{number}")
        texts.append(task["prompt"])
        excluded.append(sorted(shown))
        judged += [(ids[-1], each) for each in gold if each not in shown]
    batch = documents_batch([each.id for each in corpus], [_title(each) for each in corpus], [e.text for e in corpus])
    return Draft(
        name,
        [batch],
        queries_table(ids, texts, excluded=excluded),
        qrels_table([query for query, _ in judged], [document for _, document in judged]),
    )


def _functions(
    repository: str,
    files: Mapping[str, str],
    tasks: Sequence[Mapping[str, Any]],
    mapped: Mapping[str, Sequence[str]],
    chosen: str,
) -> list[dict[str, Any]]:
    """The problems of a repository: each holds it whole, packed, for an answer is judged in its place."""
    own = {path.partition("/")[2]: text for path, text in files.items()}
    tree = packed(own)
    posed = []
    for number, task in enumerate(tasks):
        facts = task["metadata"]
        path = "/".join(facts["fpath_tuple"][1:])
        tests = [each for each in mapped.get(f"{repository}/{number}", ()) if each in own]
        posed.append(
            {
                **_compared(task),
                "repository": repository,
                "path": path,
                "line": facts["lineno"],
                "lines": len(facts["ground_truth"].splitlines()),
                "function_name": facts["function_name"],
                "tests": tests if chosen == "all" else near(tests, path),
                "tree": tree if tests else "",
            }
        )
    return posed


def _compared(task: Mapping[str, Any]) -> dict[str, Any]:
    return {"prompt": task["prompt"], "ground_truth": task["metadata"]["ground_truth"]}


def _released(folder: Path, repository: str) -> dict[str, str]:
    """The test files that a repository's release has, by path."""
    file = RELEASES.get(repository)
    if file is None or not (folder / file.name).is_file():
        return {}
    found = {}
    for name, content in archives.members(folder / file.name, (SUFFIX,)):
        inside = "/".join(PurePosixPath(name).parts[1:])
        if inside.startswith("tests/"):
            found[f"{repository}/{inside}"] = _decoded(content, name)
    return found


def _title(window: Window) -> str:
    return window.path.replace("/", "-")


def _overlaps(window: Window, start: int, end: int) -> bool:
    """By the first place's start and the last one's end, as the paper's code has it."""
    return window.places[0][1] < end and window.places[-1][2] > start


def _touches(window: Window, path: str, start: int, end: int) -> bool:
    return any(where == path and first < end and last > start for where, first, last in window.places)


# What the files hold


def task_file(level: str, context: str) -> str:
    """The name of RepoCoder's task file, seen from the folder of raw files."""
    if context not in CONTEXTS:
        raise DataError(f"context is {context!r}; RepoCoder has {', '.join(CONTEXTS)}")
    return f"{FOLDER}/{level}_level_completion_{context}_context_codex.test.jsonl"


def _by_repository(folder: Path, name: str, wanted: tuple[str, ...] | None) -> dict[str, list[dict[str, Any]]]:
    """The tasks of each repository in the file's order; repositories in the order of wanted, or of the file."""
    tasks: dict[str, list[dict[str, Any]]] = {each: [] for each in wanted or ()}
    for task in json_lines(folder, name):
        facts = task.get("metadata")
        if (
            not isinstance(facts, dict)
            or not facts.keys() >= _FACTS
            or not facts.keys() & _LINE
            or "prompt" not in task
        ):
            raise DataError(f"{folder / name}: a record is no task of RepoEval, it has {sorted(task)}")
        facts["lineno"] = facts["lineno" if "lineno" in facts else "line_no"]
        repository = facts["task_id"].replace("--", "_").partition("/")[0]
        if wanted is None or repository in wanted:
            tasks.setdefault(repository, []).append(task)
    return tasks


_FACTS = {"task_id", "ground_truth", "fpath_tuple", "context_start_lineno"}
_LINE = {"lineno", "line_no"}


def _files(folder: Path, level: str, repository: str) -> Iterator[tuple[str, str]]:
    """(path, text) of every Python file of a repository, by path; paths begin with the repository's name.

    They are looked for as <repository>.jsonl with path and text, as a folder, and in <level>.zip, in this order.
    """
    place = folder / FOLDER / "repositories"
    packed = f"{FOLDER}/repositories/{level}/{repository}.jsonl"
    if any((folder / name).is_file() for name in (packed, packed + ".gz")):
        yield from sorted((row["path"], row["text"]) for row in json_lines(folder, packed))
        return
    if (place / level / repository).is_dir():
        for name, content in archives.members(place / level / repository, (SUFFIX,)):
            yield f"{repository}/{name}", _decoded(content, name)
        return
    archive = place / f"{level}.zip"
    if archive.is_file():
        found = False
        for name, content in archives.members(archive, (SUFFIX,)):
            parts = PurePosixPath(name).parts
            if repository in parts[:2]:
                found = True
                yield "/".join(parts[parts.index(repository) :]), _decoded(content, name)
        if found:
            return
    raise DataError(
        f"{place} lacks the repository {repository}: neither {level}/{repository}.jsonl nor a folder "
        f"{level}/{repository} nor a {level}.zip that has it; run: make data BENCHMARK={folder.name}"
    )


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8 ({error}); it is not as RepoCoder released it") from None


# The entries


def _task_file_of(level: str, context: str = "2k") -> Released:
    return Released(
        task_file(level, context),
        None,
        how=f"{task_file(level, context).rpartition('/')[2]} out of RepoCoder/datasets/datasets.zip of GitHub's "
        "microsoft/CodeT; functions also from Elendil3703/RepoEval_Exec, folder dataset",
    )


def _repositories_of(level: str, how: str) -> Released:
    return Released(f"{FOLDER}/repositories/{level}.zip", None, how=how)


_OFFICIAL = (
    _task_file_of("function"),
    _repositories_of(
        "function_level",
        "the repositories as CodeRAG-Bench patched them: function_level.zip of Veronicium/repoeval_debug",
    ),
    TESTS,
)
_GIVEN = (
    Released(
        task_file("function", "2k"),
        "904b1265d110e8e875ca983f29e122b36e6425bcf076bb3a355255841bc9eeda",
        how="the 373 tasks of CodeRAG-Bench's six repositories, cut out of the file of the same name in the folder "
        "dataset of Elendil3703/RepoEval_Exec@08e1d6b9e71b0c191750edf501737fd013b938b4, lines as they are",
    ),
    *(
        Released(
            f"{FOLDER}/repositories/function_level/{name}.jsonl",
            sha256,
            how=f"path and text of every .py under {name}/ of Elendil3703/RepoEval_Exec"
            "@08e1d6b9e71b0c191750edf501737fd013b938b4 but its test<N>.py, line ends LF, a JSON line each",
        )
        for name, sha256 in (
            ("amazon-science_patchcore-inspection", "5a86d9c46af1569af2159feeb112bd4a8f2153d8445597c0da2ac484f3570a84"),
            ("deepmind_tracr", "5a7dc8a63a4b33ef6fab708ebe71cbca483a5040e2c041638065187c75fe64dd"),
            ("google_lightweight_mmm", "1f073652d31dd27325c15762b9d569c98568fe139752634ebbb3893a378718c1"),
            ("lucidrains_imagen-pytorch", "cfe74388a0177e68b07c823371c060946d48b18746462fc21556324bdcec299c"),
            ("maxhumber_redframes", "72e23e1315e62c899b1f9f90a9e62f81983098d046703febc8c02f62e576a195"),
        )
    ),
    TESTS,
    *RELEASES.values(),
)
_SIX = tuple(FUNCTIONS)
_FIVE = tuple(name for name in FUNCTIONS if name != LEFT_OUT)
_LINES_AND_APIS = 1600
_LEAK = (
    "The corpus holds the hole's own lines, so the answer can be found: repoeval excludes every window that shows one "
    "of them from that query's hits and gold, repoeval-paper does not."
)
_DEFECTS = (
    _LEAK,
    "For 33 of the 351 tasks of five repositories another place holds the same body word for word: left in, a "
    "repository has copies of its own.",
    "Without the leak 31 of the 351 tasks have no relevant window left, 29 of them in redframes: they are counted.",
    "The query holds most of each relevant window word for word: kept, the protocol is so.",
    "Task ids are not unique: they are numbered in the file's order within a repository, as the paper's code does.",
    "Where files lie in another order, windows of equal text bear another's name: here files go by path.",
)
_FIVE_DIFFER = (
    "five of the six repositories (omnivore's licence forbids copies), their package folders alone; the paper's mean "
    "is of six"
)


def _benchmark(
    name: str, choices: Choices, files: tuple[Released, ...], queries: str, differs: str | None
) -> Benchmark:
    holes = "excluded" if choices.leak_free else "left in"
    answering = "COMPARED" if choices.level != "function" else "ANSWERING" if choices.leak_free else "PAPER"
    return Benchmark(
        name=name,
        collect=choices.collect,
        metrics=("ndcg@10", "mrr", "recall@10", "hit@1"),
        mean="datasets",
        packages=("imagen-pytorch", "lightweight-mmm", "redframes", "tracr"),
        licence="MIT (RepoCoder); code: Apache-2.0, MIT, BSD-2-Clause, and CC-BY-NC-4.0 (omnivore)",
        source="RepoCoder's task files, and the repositories",
        files=files,
        choices={
            "windows that show the hole": holes,
            "gold": "windows of the prompt's file that overlap the prompt's lines or the next",
            "mean": "repositories alike",
        },
        queries=queries,
        documents="windows of a repository's Python files, a corpus a repository",
        defects=_DEFECTS,
        published=None if differs is None else Published("coderag_bench", "repoeval", differs),
        answering=f"coderet.benchmarks.answers.repoeval:{answering}",
    )


BENCHMARKS = {
    each.name: each
    for each in (
        _benchmark(
            "repoeval",
            Choices("function", _SIX, 373, leak_free=True),
            _OFFICIAL,
            "373 function bodies of six repositories",
            "windows that show the answer are left out",
        ),
        _benchmark(
            "repoeval-paper",
            Choices("function", _SIX, 373, leak_free=False),
            _OFFICIAL,
            "373 function bodies of six repositories",
            "",
        ),
        _benchmark(
            "repoeval-5",
            Choices("function", _FIVE, 351, leak_free=True),
            _GIVEN,
            "351 function bodies of five repositories",
            f"windows that show the answer are left out; {_FIVE_DIFFER}",
        ),
        _benchmark(
            "repoeval-5-paper",
            Choices("function", _FIVE, 351, leak_free=False),
            _GIVEN,
            "351 function bodies of five repositories",
            _FIVE_DIFFER,
        ),
        *(
            _benchmark(
                f"repoeval-{level}",
                Choices(level, None, _LINES_AND_APIS, leak_free=True),
                (
                    _task_file_of(level),
                    _repositories_of(
                        "line_and_api_level",
                        "RepoCoder/repositories/line_and_api_level.zip of GitHub's microsoft/CodeT",
                    ),
                ),
                f"1,600 {what} of eight repositories",
                None,
            )
            for level, what in (("line", "lines"), ("api", "calls of the repository's own functions"))
        ),
    )
}
