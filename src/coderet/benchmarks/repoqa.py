"""RepoQA's needles (Liu et al., 2024, arXiv 2406.06025) from its released file, or from a local one of that form.

The file maps a language to repositories with `repo`, `content` (texts by path), `dependency` (imported paths by path),
`functions` (by path) and `needles`. A local file takes the place of the released one by its name in `source` (`file:`).
Version 2024-04-20 has python, cpp, java, typescript and rust, 500 needles, and is what was published of;
2024-06-23 adds go. `languages` chooses, for with another language "all" is another mean.

Two readings of it:

- `repoqa` is the sound one: needles are cut by bytes, all functions of the repository are candidates, answers judged
  on the function in them that is meant (`answers/needles.py`), depth and needle are apart (`needles.depth_design`);
- `repoqa-2024` is the released one with its faults (`answers/repoqa_2024.py`): the i-th needle stands in the i-th part
  of its window, an answer is compared with the ten needles alone, as whole lines, and the first function in it counts.
  The instruction and the tokenizer are settings, and only the published wording, told by its SHA-256, and
  CodeLlama's tokenizer, told by its tokens, are taken.

What is missing in a file is told by name. A path in `dependency` without content is left out and counted, files that
nothing names come last, by path.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from coderet.benchmarks import needles, windows
from coderet.benchmarks.candidates import among, drafted
from coderet.benchmarks.needles import GAUGED, METRICS, Candidates, Needle, Repository, Span
from coderet.corpora.dependency_order import dependency_order
from coderet.records import Benchmark, DataError, Draft, Published, Released

LANGUAGES = ("python", "cpp", "java", "typescript", "rust", "go")
LEADERBOARD, LATEST = "2024-04-20", "2024-06-23"
INSTRUCTION = "bfa789e915b783739ee90583e43e5fae6bb39c55e49ba38ebd2960436e08fcfd"
"""SHA-256 of the instruction of 161 characters that the published figures were asked with."""

_REPOSITORY = ("repo", "content", "dependency", "functions", "needles")
_FUNCTION = ("name", "start_line", "end_line", "start_byte", "end_byte")
_NEEDLE = (*_FUNCTION, "path", "description")


@dataclass(frozen=True)
class Reading:
    """released: as the released code read it, with its faults."""

    released: bool

    def collect(
        self,
        folder: Path,
        *,
        languages: Sequence[str] = LANGUAGES,
        gold: Literal["strict", "lenient"] = "strict",
        depths: int = 1,
        ignore_comments: bool = False,
        candidates: Candidates = "repository",
        window: int = 0,
        seed: int = 13,
        sha256: str = "",
        instruction: str = "",
        tokenizer: str = "",
    ) -> Iterator[Draft]:
        """One dataset a repository, called `<language>-<owner>-<name>`.

        languages: those that the file lacks are left out. gold, depths, seed: as in `needles.draft`. ignore_comments:
        whether `repoqa` compares answers without them. sha256: of the unpacked file; DataError if it is another one.
        candidates, window: among which functions a needle is looked for (`candidates.py`).
        instruction: what is asked, our own words if empty, which `repoqa-2024` does not take. tokenizer: the
        tokenizer.json whose tokens a window has so many of, the generator's own if empty, which `repoqa-2024` does not
        take either.
        """
        if self.released and hashlib.sha256(instruction.encode()).hexdigest() != INSTRUCTION:
            raise DataError(
                f"repoqa-2024 asks with an instruction of SHA-256 "
                f"{hashlib.sha256(instruction.encode()).hexdigest()}, wanted {INSTRUCTION}: put the constant "
                "INSTRUCTION of evalplus/repoqa into benchmarks.<name>.instruction, or take kind: repoqa, which asks "
                "in other words"
            )
        if unknown := [each for each in languages if each not in LANGUAGES]:
            raise DataError(f"languages has {unknown[0]!r}; RepoQA has {', '.join(LANGUAGES)}")
        if self.released and not tokenizer:
            raise DataError(
                "repoqa-2024 counts a window in tokens of CodeLlama-7b-Instruct: put the path of its tokenizer.json "
                "into benchmarks.<name>.tokenizer, or take kind: repoqa, which counts the generator's own"
            )
        if tokenizer:
            windows.counter(tokenizer, codellama=self.released)  # is read now, so that nothing fails later
        extra = {"instruction": instruction, "ignore_comments": ignore_comments, "tokenizer": tokenizer}
        content = read(folder, sha256)
        chosen = [each for each in languages if content.get(each)]
        if not chosen:
            raise DataError(f"{folder} has {', '.join(content) or 'no language'}; wanted one of {', '.join(languages)}")
        if self.released and candidates == "window":
            raise DataError("repoqa-2024 has windows of its own; take kind: repoqa for candidates: window")
        within = among(candidates, window)

        def drafts() -> Iterator[Draft]:
            for language in chosen:
                for each in content[language]:
                    repository = repository_of(each, language)
                    draft = needles.draft(repository, gold=gold, depths=depths, seed=seed, extra=extra, among=within)
                    yield _tied(draft, each, repository) if self.released else draft

        yield from drafted(drafts(), candidates)


def read(folder: Path, sha256: str = "") -> dict[str, Any]:
    """The one dataset file under folder, packed or not, as it is; DataError if it is not whole, or not that one."""
    found = sorted(path for path in folder.rglob("*") if path.name.endswith((".json", ".json.gz")) and path.is_file())
    if len(found) != 1:
        raise DataError(
            f"{folder} has {len(found)} files that end in .json or .json.gz; wanted one, RepoQA's: put "
            f'repoqa-{LATEST}.json.gz there, or name a local file in params.yaml (source: ["file:..."])'
        )
    path = found[0]
    data = path.read_bytes()
    try:
        data = gzip.decompress(data) if path.name.endswith(".gz") else data
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be unpacked ({error}); it is cut short, fetch it again") from None
    digest = hashlib.sha256(data).hexdigest()
    if sha256 and digest != sha256:
        raise DataError(f"{path} has SHA-256 {digest}, wanted {sha256}: it is cut short or of another version")
    try:
        content = json.loads(data)
    except ValueError as error:
        raise DataError(f"{path} is no JSON ({error}); it is cut short, fetch it again") from None
    if not isinstance(content, dict) or not all(isinstance(each, list) for each in content.values()):
        raise DataError(f"{path} maps no languages to repositories; it is not RepoQA's dataset file")
    return content


def repository_of(raw: Mapping[str, Any], language: str) -> Repository:
    """A repository of the file, checked; DataError says what it lacks."""
    name = f"{language}-{str(raw.get('repo', '?')).replace('/', '-')}"
    if missing := [key for key in _REPOSITORY if key not in raw]:
        raise DataError(f"{name} lacks {', '.join(missing)}; the file has no needles yet, or is of another version")
    content = raw["content"]
    order = dependency_order(raw["dependency"])
    files = {path: content[path] for path in order if path in content}
    files |= {path: content[path] for path in sorted(content) if path not in files}
    facts = {
        "missing_paths": sum(path not in content for path in order),
        "unnamed_paths": len(content.keys() - set(order)),
    }
    for path, text in files.items():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"{name}: {path} is no text ({error.reason}); fetch the file again") from None
    functions = [_span(name, path, each, _FUNCTION) for path, found in raw["functions"].items() for each in found]
    places = {(each.path, each.start, each.end): place for place, each in enumerate(functions)}
    chosen = []
    for each in raw["needles"]:
        span = _span(name, each.get("path", "?"), each, _NEEDLE)
        place = places.get((span.path, span.start, span.end))
        if place is None:
            raise DataError(f"{name}: the needle {span.name} of {span.path} is none of the functions of the repository")
        chosen.append(Needle(place, each["description"]))
    return Repository(name, language, files, functions, chosen, facts)


def _span(name: str, path: str, raw: Mapping[str, Any], wanted: Sequence[str]) -> Span:
    if missing := [key for key in wanted if key not in raw]:
        raise DataError(f"{name}: {raw.get('name', 'a function')} of {path} lacks {', '.join(missing)}")
    return Span(path, raw["start_byte"], raw["end_byte"], raw["start_line"], raw["end_line"], raw["name"])


def _tied(draft: Draft, raw: Mapping[str, Any], repository: Repository) -> Draft:
    """The problems with the i-th needle in the i-th part of its window, and the needles to compare answers with."""
    assert draft.problems is not None
    number = len(repository.needles)
    asked = needles.draft(repository).problems
    assert asked is not None
    problems = [
        json.loads(each) | {"depth": (place + 0.5) / number} for place, each in enumerate(asked["problem"].to_pylist())
    ]
    compared = {"needles": [needle.function for needle in repository.needles]}
    table = needles.problems_table(asked["id"].to_pylist(), asked["query_id"].to_pylist(), problems)
    return draft._replace(problems=table, shared={**(draft.shared or {}), **compared})


def _file(version: str) -> Released:
    name = f"repoqa-{version}.json.gz"
    return Released(
        name,
        None,
        how=f"https://github.com/evalplus/repoqa_release/releases/download/{version}/{name}; its SHA-256 goes into "
        "the setting sha256",
    )


_DEFECTS = (
    "Descriptions are one language model's, which saw a hundred lines before each function: long, precise, alike.",
    "Needles have names that are unique in their repository, which other functions need not have.",
)


_WINDOWS = "they are of windows of 16,384 tokens of CodeLlama's tokenizer, five languages without go"
_SOUND = f"{_WINDOWS}, and of the released judging: ten needles, the first function, whole lines"


def _benchmark(
    name: str, reading: Reading, version: str, answering: str, differs: str, choices: Mapping[str, str]
) -> Benchmark:
    return Benchmark(
        name=name,
        collect=reading.collect,
        metrics=METRICS,
        mean="datasets",
        resampled="datasets",
        gauged=GAUGED,
        licence="Apache-2.0; code: of each repository",
        source="the release of evalplus/repoqa",
        files=(_file(version),),
        choices={"candidates": "all functions of the repository", "mean": "repositories alike", **choices},
        queries="500 descriptions of 50 repositories; 600 of 60 with go",
        documents="functions, a corpus a repository",
        defects=_DEFECTS,
        published=Published("repoqa", "16384", differs),
        answering=answering,
    )


BENCHMARKS = {
    "repoqa": _benchmark(
        "repoqa",
        Reading(released=False),
        LATEST,
        "coderet.benchmarks.answers.needles:ANSWERING",
        _SOUND,
        {"answers": "the function that is meant, against all functions of the repository"},
    ),
    "repoqa-2024": _benchmark(
        "repoqa-2024",
        Reading(released=True),
        LEADERBOARD,
        "coderet.benchmarks.answers.repoqa_2024:ANSWERING",
        _WINDOWS,
        {"answers": "the first function, against the ten needles, as whole lines"},
    ),
}
