"""Results as mteb writes its own: one JSON a task, which mteb reads, tables and compares like a run of its own.

Only benchmarks of the protocol `mteb` are of that kind; a figure by other choices under mteb's name would be a wrong
one. The file says which mteb wrote it: the one installed here, whose rules the figures were made by but which did not
make them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coderet.benchmarks.coir import MTEB
from coderet.records import DataError, Released
from coderet.reports.results import Json

if TYPE_CHECKING:
    from mteb import TaskResult

NO_REVISION = "no_revision_available"  # mteb's word for it
_SPLIT = "test"
_SUBSET = "default"  # mteb's, of a task that has no others
_NAMES = {"ndcg": "ndcg", "map": "map", "recall": "recall", "precision": "precision", "mrr": "mrr", "hit": "hit_rate"}


def task_result(score: Json, *, revision: str, seconds: float | None) -> "TaskResult":
    """mteb's record of a score.json. revision: the commit of the data; seconds: what indexing and searching took.

    DataError if the result is not by mteb's choices, or mteb is not installed.
    """
    choices = score.get("choices", {})
    if choices.get("protocol") != MTEB.name or "mteb task" not in choices:
        made = choices.get("protocol", "no protocol that is named")
        raise DataError(
            f"the result of {score['system']} on {score['benchmark']} is by {made}; only benchmarks of mteb's own "
            "choices (kinds mteb-...) can be given to mteb, for a figure by others would pass as mteb's"
        )
    try:
        import mteb
    except ImportError:
        raise DataError("mteb is not installed; run: pip install 'coderet[mteb]'") from None
    task = mteb.get_task(choices["mteb task"])
    datasets: Mapping[str, Json] = score["datasets"]
    by_language = set(datasets) != {choices["task"]}
    scores = {
        name if by_language else _SUBSET: _scores(part["metrics"], str(task.metadata.main_score))
        for name, part in datasets.items()
    }
    result = mteb.TaskResult.from_task_results(task, {_SPLIT: scores}, evaluation_time=seconds or 0.0)
    return result.model_copy(update={"dataset_revision": revision, "evaluation_time": seconds})


def _scores(metrics: Mapping[str, Json], main_score: str) -> dict[str, float]:
    """Strict figures by mteb's names; others, such as duplicate-aware ones, it has no name for."""
    named = {
        f"{_NAMES[found[1]]}_at_{found[2]}": figure["value"]
        for metric, figure in metrics.items()
        if (found := re.fullmatch(r"([a-z]+)@(\d+)", metric)) and found[1] in _NAMES
    }
    if main_score not in named:
        raise DataError(f"the result has no {main_score}, which the task is told by; score it again")
    return {**named, "main_score": named[main_score]}


def revision_of(source: Sequence[str], files: Sequence[Released], official: str) -> str:
    """The commit of the one data set that a benchmark was made of, by its source in params; else NO_REVISION.

    Where the source is `official`, it is the commit that the benchmark's record names: a folder that a person put in
    its place is taken to be of it.
    """
    lines = [file.place for file in files] if list(source) == [official] else list(source)
    commits = [re.search(r"@([0-9a-f]{40})\b", line) for line in lines if line.startswith("hub:")]
    return commits[0][1] if len(lines) == 1 and commits and commits[0] else NO_REVISION


def seconds_of(index: Json, search: Json) -> float | None:
    """What indexing and searching took, as far as was measured; None where neither was, as for a fusion."""
    facts: list[Mapping[str, Any]] = [*index.get("corpora", {}).values(), *search.get("datasets", {}).values()]
    spent = [
        each.get("encoded", each["documents"]) / each["documents_per_second"]
        for each in facts
        if each.get("documents_per_second")
    ]
    spent += [each["seconds"] for each in facts if "seconds" in each]
    return float(sum(spent)) if spent else None
