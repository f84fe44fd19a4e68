"""SWE-bench Lite as file retrieval, as CodeRAG-Bench builds it (Wang et al., 2024; Jimenez et al., 2024).

A query is the issue of an instance; its corpus, one an instance, are the Python files of the repository at its base
commit, whole, but those whose path has a word `test`, `tests` or `testing`. Relevant are the files that the reference
patch changes. Every one of the 300 patches changes one file, and none has such a word; where a changed file is not
among the documents, the repository or the commit is the wrong one, and that is an error.

A repository is read as a git clone, nothing checked out, or from a snapshot: the tree of each instance as paths and
blobs, and the text of each blob. The paper's script tested paths as they lay on its disk, so a folder with `test` in
its name emptied the corpus; here paths begin at the repository. It guessed encodings; here what is no UTF-8 is Latin-1.

Answers are edits, from which patches are made (`answers/swebench.py`); the `swebench` package judges them.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from coderet.benchmarks.answers.swebench import FIELDS
from coderet.corpora import git_objects
from coderet.corpora.released import json_lines
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

INSTANCES = Released(
    "swebench_lite/swebench_lite_origin.jsonl",
    "63c26304ba0be063c664182673e773bdcf797b0e1f971d072b89d771588e00e3",
    "url:https://raw.githubusercontent.com/joyon1104/coding-agent-eval/a7aa1775595c768e432c6ae3e3df6654caa777b9"
    "/data/swebench_lite_origin.jsonl",
)
REPOSITORIES = {
    "astropy/astropy": 6,
    "django/django": 114,
    "matplotlib/matplotlib": 23,
    "mwaskom/seaborn": 4,
    "pallets/flask": 3,
    "psf/requests": 6,
    "pydata/xarray": 5,
    "pylint-dev/pylint": 6,
    "pytest-dev/pytest": 17,
    "scikit-learn/scikit-learn": 23,
    "sphinx-doc/sphinx": 16,
    "sympy/sympy": 77,
}
"""The repositories and their instances."""

SNAPSHOTS = "swebench_lite/repos"
CLONES = "repos"
_BATCH = 128
_TEST_WORDS = {"test", "tests", "testing"}
_WORDS = re.compile(r"[ _/.]")

Instance = Mapping[str, Any]
Files = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Choices:
    """repositories: whose instances are taken, with how many each has."""

    repositories: Mapping[str, int]

    def collect(self, folder: Path) -> Iterator[Draft]:
        """A dataset an instance, in the file's order; one repository's snapshot is held at a time."""
        instances = [
            each for each in json_lines(folder, INSTANCES.name) if _repository(folder, each) in self.repositories
        ]
        wanted = sum(self.repositories.values())
        if len(instances) != wanted:
            raise DataError(
                f"{folder / INSTANCES.name} has {len(instances)} instances of these repositories, expected {wanted}; "
                "it is not whole or not SWE-bench Lite"
            )
        for repository, of_repository in itertools.groupby(instances, lambda each: each["repo"]):
            source = _source(folder, repository)
            for instance in of_repository:
                yield _draft(instance, source)


class Clone:
    """A repository as a git clone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def files(self, instance: Instance) -> Files:
        """(path, text) of each document of an instance."""
        entries = [each for each in git_objects.tree(self._folder, instance["base_commit"]) if is_document(each.path)]
        found = git_objects.contents(self._folder, (each.blob for each in entries))
        for entry, content in zip(entries, found, strict=True):
            yield entry.path, decoded(content)


class Snapshot:
    """A repository as trees and blobs in files of JSON lines."""

    def __init__(self, folder: Path, name: str) -> None:
        self._name = f"{SNAPSHOTS}/{name}.trees.jsonl"
        self._trees = {tree["instance_id"]: tree for tree in json_lines(folder, self._name)}
        self._texts = {each["blob"]: each["text"] for each in json_lines(folder, f"{SNAPSHOTS}/{name}.blobs.jsonl")}

    def files(self, instance: Instance) -> Files:
        """(path, text) of each document of an instance."""
        tree = self._trees.get(instance["instance_id"])
        if tree is None or tree["base_commit"] != instance["base_commit"]:
            raise DataError(
                f"{self._name} has no tree of {instance['instance_id']} at {instance['base_commit']}; put a clone into "
                f"{CLONES}/, or the right snapshot there"
            )
        for path, blob in tree["files"]:
            if is_document(path):
                if blob not in self._texts:
                    raise DataError(
                        f"{self._name} names content {blob} of {path}, which the blobs lack; fetch them again"
                    )
                yield path, self._texts[blob]


def is_document(path: str) -> bool:
    """Whether the file at path, seen from the repository, is one of those searched."""
    return path.endswith(".py") and not _TEST_WORDS & set(_WORDS.split(path.lower()))


def changed_files(patch: str) -> list[str]:
    """The files that a patch changes, by the paths they had before; files that it makes are none of them."""
    found: dict[str, None] = {}
    in_head = False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            in_head = True
        elif line.startswith("@@"):
            in_head = False
        elif in_head and line.startswith("--- a/"):
            found[line.removeprefix("--- a/").rstrip("\r").partition("\t")[0]] = None
    return list(found)


def decoded(content: bytes) -> str:
    """The text of a file: UTF-8, its mark taken off, or Latin-1, which is never refused."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _draft(instance: Instance, source: Clone | Snapshot) -> Draft:
    name, gold = instance["instance_id"], changed_files(instance["patch"])
    known: set[str] = set()
    batches = list(_batches(name, source.files(instance), known))
    if missing := [path for path in gold if path not in known]:
        raise DataError(
            f"{name}: its patch changes {missing[0]}, which is not among its {len(known)} documents; the repository is "
            "not the one at its base commit"
        )
    return Draft(
        name,
        batches,
        queries_table([name], [instance["problem_statement"]]),
        qrels_table([name] * len(gold), [f"{name}_{path}" for path in gold]),
        queries_expected=1,
        problems=problems_table([name], [name], [{field: instance[field] for field in FIELDS}]),
        problems_expected=1,
    )


def _batches(name: str, files: Files, known: set[str]) -> Iterator[pa.RecordBatch]:
    """The documents; their paths are added to known."""
    while part := list(itertools.islice(files, _BATCH)):
        paths, texts = zip(*part, strict=True)
        known.update(paths)
        yield documents_batch([f"{name}_{path}" for path in paths], paths, texts)


def _source(folder: Path, repository: str) -> Clone | Snapshot:
    name = repository.replace("/", "__")
    if (folder / CLONES / name).is_dir():
        return Clone(folder / CLONES / name)
    trees = folder / SNAPSHOTS / f"{name}.trees.jsonl"
    if trees.is_file() or trees.with_name(trees.name + ".gz").is_file():
        return Snapshot(folder, name)
    raise DataError(
        f"{folder} lacks the repository {repository}: neither a clone {CLONES}/{name} nor a snapshot "
        f"{SNAPSHOTS}/{name}.trees.jsonl; run: git clone --bare https://github.com/{repository} "
        f"{folder / CLONES / name}"
    )


def _repository(folder: Path, instance: Instance) -> str:
    if not instance.keys() >= {"repo", "instance_id", "base_commit", "patch", "problem_statement"}:
        raise DataError(f"{folder / INSTANCES.name}: a record is no instance of SWE-bench, it has {sorted(instance)}")
    repository: str = instance["repo"]
    return repository


_CLONES = tuple(
    Released(
        f"{CLONES}/{name.replace('/', '__')}/",
        None,
        how=f"a full clone: git clone --bare https://github.com/{name} {CLONES}/{name.replace('/', '__')}",
    )
    for name in REPOSITORIES
)
_HASHES = {
    "mwaskom__seaborn": (
        "99e2f474f0efcc90f32ce57327a3fda7e5e5e00d1061d46a047217653ca3ba46",
        "549981cc6c7c8523f292ec6d13cdfcd37e87d2985eeb222a0d493500d7371357",
    ),
    "pallets__flask": (
        "0030c0656e6f01c4ed9b2aec29cb42a62782a649e1d6b8e97ee9db9d90992c34",
        "b5e151713ce4b71409b7f6ab6e54550b963a0c03b804e424f52543c58ba8f176",
    ),
    "psf__requests": (
        "6183a7750c1d286de9e00d53abfa1b417a7b7459067eba27b9fe7dddfa49980d",
        "7a178cf9c5c620c941d28606f95dd96122baa97dc54c56576be1ed0b8d230423",
    ),
    "pydata__xarray": (
        "fd683dc3b88daef96f6d453b898d7e3b85581010712d631b3f1caee09fe37b56",
        "dcbcdb7322e3d871da9e36113919da3de114c8e83a7df2c026ead7af0efd4625",
    ),
    "pytest-dev__pytest": (
        "d80b328ec221a704573eb201ed4e74dfd56ea89e68cff3a175def58bc7eba00d",
        "12c40bb131fb7812ddbd892da8cb37f31a371b4384bceadb0c4bf612d9b98d73",
    ),
    "sphinx-doc__sphinx": (
        "99ea120c53148d9b2bcae69601e85578676a63d5a753bf4361ca4c6854d35d52",
        "8f10fb4098d51524a14d3687f62ad8bd1adfe59e94653bec61a6c10502862f4a",
    ),
}
_SNAPSHOTS = tuple(
    Released(
        f"{SNAPSHOTS}/{name}.{part}.jsonl",
        sha256,
        how=f"made of a clone of {name.replace('__', '/')}: "
        + (
            "instance_id, repo, base_commit, files as [path, blob] of every .py without a test word, gold_files"
            if part == "trees"
            else "blob, its git id, and text of every file that a tree names"
        ),
    )
    for name, hashes in _HASHES.items()
    for part, sha256 in zip(("trees", "blobs"), hashes, strict=True)
)
_GIVEN = {name: count for name, count in REPOSITORIES.items() if name.replace("/", "__") in _HASHES}


def _benchmark(name: str, choices: Choices, files: tuple[Released, ...], documents: str, differs: str) -> Benchmark:
    return Benchmark(
        name=name,
        collect=choices.collect,
        metrics=("ndcg@10", "mrr", "recall@10", "hit@1"),
        mean="queries",  # one an instance, so that instances weigh alike
        licence="MIT (SWE-bench); issues, patches and code under each repository's own licence",
        source="SWE-bench Lite, and the repositories at each instance's base commit",
        files=files,
        choices={
            "documents": "whole Python files without a test word in the path from the repository's top",
            "encoding": "UTF-8, else Latin-1",
            "mean": "instances alike",
        },
        queries=f"{sum(choices.repositories.values())} issues of {len(choices.repositories)} repositories",
        documents=documents,
        defects=(
            "The paper tests the path on its disk for test words, so a folder called test empties the corpus: here "
            "paths begin at the repository's top.",
            "The paper guesses encodings and takes a placeholder for what it cannot read: here such files are Latin-1.",
            "Two problem statements differ between copies of SWE-bench Lite; this file's are taken.",
        ),
        packages=tuple(re.split(r"/|__", name)[-1] for name in choices.repositories),
        published=Published("coderag_bench", "swebench_lite", differs),
        answering="coderet.benchmarks.answers.swebench:ANSWERING",
    )


BENCHMARKS = {
    each.name: each
    for each in (
        _benchmark(
            "swebench-lite",
            Choices(REPOSITORIES),
            (INSTANCES, *_CLONES),
            "the Python files of a repository but tests, a corpus an instance; by estimate 2 to 3 GB for all",
            "encodings that the paper guessed are UTF-8 or Latin-1",
        ),
        _benchmark(
            "swebench-lite-51",
            Choices(_GIVEN),
            (INSTANCES, *_SNAPSHOTS),
            "the Python files of a repository but tests, 30 to 189 of them, a corpus an instance",
            "51 of the 300 instances, of six smaller repositories, 30 to 189 files a corpus; those of django and "
            "sympy, two thirds of the 300, are missing",
        ),
    )
}
