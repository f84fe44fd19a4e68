"""Results that lie on disk, copied into MLflow: one finished run an entry, and nothing for what is there already.

An entry's identity is a hash of all it says. A run counts as logged if it carries the identity and finished; one that
was cut off is removed and written again. When a system's results change, its new run takes the tag `current`, and the
older ones lose it and name the newer: filter the page by `tags.current = "true"`. Nothing else is ever deleted.
"""

import hashlib
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coderet.corpora import store
from coderet.tracking import server
from coderet.tracking.tracker import TRAINING, MlflowRun, place

# A run of some thousand queries goes along with its system; the full-depth runs of a block of 1,000 (8 MB) and the runs
# of big benchmarks stay where they are.
LARGEST_ARTIFACT_BYTES = 6 * 2**20

SYSTEM = "system"
PUBLISHED = "published"
REPORT = "report"


@dataclass(frozen=True)
class Entry:
    """A run to be. role: one of SYSTEM, PUBLISHED, REPORT.

    name and grid say whose results these are; of the entries equal in both and in role the last one logged is current.
    curve: (step, metrics). artifacts: files by the folder they go to. datasets: (folder of the benchmark, dataset).
    """

    name: str
    role: str
    grid: str = "default"
    params: Mapping[str, object] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    curve: Sequence[tuple[int, Mapping[str, float]]] = ()
    artifacts: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    datasets: Sequence[tuple[Path, str]] = ()
    computed_from: str = ""

    @property
    def identity(self) -> str:
        """SHA-256 of what is said, and of what it was computed from; where files lie does not count."""
        said = [self.name, self.role, self.grid, self.params, self.metrics, self.tags, self.curve, self.computed_from]
        return hashlib.sha256(json.dumps(said, sort_keys=True, default=dict).encode()).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What logging did. runs: run id by (role, name)."""

    added: tuple[str, ...]
    unchanged: tuple[str, ...]
    superseded: int
    runs: Mapping[tuple[str, str], str]


def log(entries: Iterable[Entry], *, uri: str | None = None, commit: str = "") -> Outcome:
    """Write the entries that the store lacks. Raises what `server.connect` does."""
    client, experiment_id = server.connect(uri)
    known = _all_runs(client, experiment_id)
    added, unchanged, superseded, runs = [], [], 0, {}
    digests: dict[tuple[Path, str], str] = {}
    for entry in entries:
        kin = [run for run in known if _is_kin(run, entry)]
        same = [run for run in kin if run.data.tags.get("identity") == entry.identity]
        finished = next((run for run in same if run.info.status == "FINISHED"), None)
        for run in same:
            if run.info.status != "FINISHED":
                client.delete_run(run.info.run_id)
        older = [run for run in kin if run not in same and run.data.tags.get("current") == "true"]
        if finished is None:
            run_id = _write(client, experiment_id, entry, commit, digests)
            _link_training(client, known, entry, run_id)
            added.append(entry.name)
        else:
            run_id = finished.info.run_id
            unchanged.append(entry.name)
            if finished.data.tags.get("current") != "true":  # results of before have come back
                MlflowRun(client, run_id, {}, {}).tags({"current": "true", "superseded_by": ""})
        for run in older:
            MlflowRun(client, run.info.run_id, {}, {}).tags({"current": "false", "superseded_by": run_id})
            superseded += 1
        runs[entry.role, entry.name] = run_id
    return Outcome(tuple(added), tuple(unchanged), superseded, runs)


def git_commit() -> str:
    """The commit checked out here, empty where there is none."""
    asked = ["git", "rev-parse", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _all_runs(client: Any, experiment_id: str) -> list[Any]:
    runs: list[Any] = []
    token = None
    while True:
        page = client.search_runs([experiment_id], max_results=1000, page_token=token)
        runs += page
        token = page.token
        if not token:
            return runs


def _is_kin(run: Any, entry: Entry) -> bool:
    tags = run.data.tags
    return (tags.get("role"), tags.get("system"), tags.get("grid")) == (entry.role, entry.name, entry.grid)


def _write(client: Any, experiment_id: str, entry: Entry, commit: str, digests: dict[tuple[Path, str], str]) -> str:
    files = [path for paths in entry.artifacts.values() for path in paths]
    left_out = [path for path in files if entry.role == SYSTEM and path.stat().st_size > LARGEST_ARTIFACT_BYTES]
    tags = {
        "role": entry.role,
        "system": entry.name,
        "grid": entry.grid,
        "identity": entry.identity,
        "source": PUBLISHED if entry.role == PUBLISHED else "measured",
        "current": "true",
        "mlflow.source.name": "eval/log.py",
        "mlflow.source.type": "LOCAL",
        **({"git_commit": commit, "mlflow.source.git.commit": commit} if commit else {}),
        **({"left_on_disk": " ".join(path.as_posix() for path in left_out)} if left_out else {}),
        **entry.tags,
    }
    run = MlflowRun.new(client, experiment_id, entry.name, tags)
    run.params(entry.params)
    run.metrics(entry.metrics)
    for step, metrics in entry.curve:
        run.metrics(metrics, step)
    if entry.datasets:
        run.datasets([_dataset(folder, name, digests) for folder, name in entry.datasets])
    for folder, paths in entry.artifacts.items():
        for path in paths:
            if path not in left_out:
                run.artifact(path, place(folder))
    run.close()  # last: only a finished run counts as logged
    return run.run_id


def _link_training(client: Any, known: list[Any], entry: Entry, run_id: str) -> None:
    """Hang the newest live training run of the system below its run."""
    live = [run for run in known if run.data.tags.get("role") == TRAINING and run.data.tags.get("system") == entry.name]
    if entry.role == SYSTEM and live:
        newest = max(live, key=lambda run: run.info.start_time)
        MlflowRun(client, newest.info.run_id, {}, {}).tags({"mlflow.parentRunId": run_id})
        MlflowRun(client, run_id, {}, {}).tags({"training_run": newest.info.run_id})


def _dataset(folder: Path, name: str, digests: dict[tuple[Path, str], str]) -> Any:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    dataset = store.read_dataset(folder, name)
    if (folder, name) not in digests:
        whole = hashlib.sha256(dataset.corpus.digest.encode())
        for part in ("queries", "qrels"):
            whole.update((folder / part / f"{name}.arrow").read_bytes())
        digests[folder, name] = whole.hexdigest()[:32]
    counts = {
        "documents": len(dataset.corpus),
        "queries": len(dataset.queries),
        "judgements": len(dataset.qrels),
        "corpus": dataset.corpus.name,
    }
    return DatasetInput(
        Dataset(
            name=f"{folder.name}/{name}",
            digest=digests[folder, name],
            source_type="local",
            source=json.dumps({"uri": folder.as_posix()}),
            profile=json.dumps(counts),
        ),
        [InputTag("mlflow.data.context", "evaluation")],
    )
