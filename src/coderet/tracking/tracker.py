"""What a stage tells the log-book while it works: params, step metrics, tags, files.

`start` hands out a Tracker that cannot stop the work: with tracking off, or the server gone before or meanwhile, it
says so once and is silent from then on, because every number is on disk anyhow. `MlflowRun` is the writer itself, which
does raise; `log` uses it bare.
"""

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from coderet.tracking import server
from coderet.tracking.names import LONGEST, allowed

# MLflow's limits for one call and one value.
METRICS_A_CALL = 1000
PARAMS_A_CALL = 100
LONGEST_PARAM = 6000
LONGEST_TAG = 8000

# Step metrics wait for one another this long, so that a page being watched still moves.
SECONDS_BETWEEN_CALLS = 5.0

TRAINING = "training"  # the role of runs that `start` begins

_logger = logging.getLogger("coderet.tracking")


class Tracker(Protocol):
    """A run of the log-book being written. `run_id` is empty where nothing is written."""

    run_id: str

    def params(self, values: Mapping[str, object]) -> None:
        """Settings, nested as they come. A value that an earlier start of the run had otherwise becomes an override."""
        ...

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Numbers at a step; they go out in batches. One that is not finite is not written: it is named in a tag."""
        ...

    def tags(self, values: Mapping[str, str]) -> None: ...

    def artifact(self, path: Path, folder: str = "") -> None:
        """A copy of the file, under folder within the run."""
        ...

    def close(self, status: str = "FINISHED") -> None:
        """Send what waits and end the run; FINISHED, FAILED or KILLED."""
        ...


class Silent:
    """Nobody listens."""

    run_id = ""

    def params(self, values: Mapping[str, object]) -> None: ...

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None: ...

    def tags(self, values: Mapping[str, str]) -> None: ...

    def artifact(self, path: Path, folder: str = "") -> None: ...

    def close(self, status: str = "FINISHED") -> None: ...


def start(
    name: str,
    params: Mapping[str, object],
    *,
    tags: Mapping[str, str] | None = None,
    uri: str | None = None,
    resume: str = "",
) -> Tracker:
    """A tracker for a training run called `name`, or for the one with the id `resume` if the store still has it.

    Never raises. Of several processes of one training only the first writes.
    """
    if server.OFF in (uri, os.environ.get("MLFLOW_TRACKING_URI")) or _later_process():
        return Silent()
    try:
        client, experiment_id = server.connect(uri)
        run = MlflowRun.resumed(client, resume) if resume else None
        run = run or MlflowRun.new(client, experiment_id, name, {"role": TRAINING, "system": name, **(tags or {})})
    except Exception as error:  # whatever it is, the work it would have told about goes on
        _logger.warning("Not tracked: %s", error)
        return Silent()
    tracker = Forgiving(run)
    tracker.params(params)
    return tracker


class Forgiving:
    """Passes everything on until the first failure, tells about that one, and swallows the rest."""

    def __init__(self, run: "MlflowRun") -> None:
        self.run_id = run.run_id
        self._run: MlflowRun | None = run

    def params(self, values: Mapping[str, object]) -> None:
        self._try(lambda run: run.params(values))

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        self._try(lambda run: run.metrics(values, step))

    def tags(self, values: Mapping[str, str]) -> None:
        self._try(lambda run: run.tags(values))

    def artifact(self, path: Path, folder: str = "") -> None:
        self._try(lambda run: run.artifact(path, folder))

    def close(self, status: str = "FINISHED") -> None:
        self._try(lambda run: run.close(status))

    def _try(self, act: Callable[["MlflowRun"], None]) -> None:
        if self._run is None:
            return
        try:
            act(self._run)
        except Exception as error:  # a log-book that fails must not end a training
            self._run = None
            _logger.warning("Tracking stopped (%s); results are on disk; once the server is back: make log", error)


class MlflowRun:
    """A run in an MLflow store. Failures raise."""

    def __init__(self, client: Any, run_id: str, params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        self.run_id = run_id
        self._client = client
        self._params = dict(params)
        self._tags = dict(tags)
        self._waiting: list[Any] = []
        self._sent = time.monotonic()

    @classmethod
    def new(cls, client: Any, experiment_id: str, name: str, tags: Mapping[str, str]) -> "MlflowRun":
        run = client.create_run(experiment_id, run_name=name, tags={key: _cut(tags[key]) for key in tags})
        return cls(client, run.info.run_id, {}, tags)

    @classmethod
    def resumed(cls, client: Any, run_id: str) -> "MlflowRun | None":
        """The run with this id, running again; None if the store has none."""
        from mlflow.exceptions import MlflowException

        try:
            run = client.get_run(run_id)
            client.update_run(run_id, status="RUNNING")
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None
        return cls(client, run_id, run.data.params, run.data.tags)

    def params(self, values: Mapping[str, object]) -> None:
        from mlflow.entities import Param

        new = {}
        for name, value in flatten(values):
            name, text = _short(allowed(name)), _text(value)
            if len(text) > LONGEST_PARAM:
                place = f"params/{name}.txt"
                self._client.log_text(self.run_id, text, place)
                text = f"sha256:{hashlib.sha256(text.encode()).hexdigest()} ({len(text)} characters, whole in {place})"
            if self._params.get(name, text) == text:
                new[name] = text
            else:
                self._override(name, text)
        fresh = [Param(name, text) for name, text in new.items() if name not in self._params]
        for first in range(0, len(fresh), PARAMS_A_CALL):
            self._client.log_batch(self.run_id, params=fresh[first : first + PARAMS_A_CALL])
        self._params.update(new)

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        for name, value in values.items():
            if math.isfinite(value):
                self._waiting.append(Metric(_short(allowed(name)), float(value), now, step))
            else:
                self._mark_not_finite(name)
        if len(self._waiting) >= METRICS_A_CALL or time.monotonic() - self._sent > SECONDS_BETWEEN_CALLS:
            self._send()

    def tags(self, values: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        for part in _parts([RunTag(_short(key), _cut(value)) for key, value in values.items()], PARAMS_A_CALL):
            self._client.log_batch(self.run_id, tags=part)
        self._tags.update(values)

    def artifact(self, path: Path, folder: str = "") -> None:
        self._client.log_artifact(self.run_id, str(path), place(folder) or None)

    def datasets(self, inputs: list[Any]) -> None:
        self._client.log_inputs(self.run_id, datasets=inputs)

    def close(self, status: str = "FINISHED") -> None:
        self._send()
        self._client.set_terminated(self.run_id, status)

    def _send(self) -> None:
        for part in _parts(self._waiting, METRICS_A_CALL):
            self._client.log_batch(self.run_id, metrics=part)
        self._waiting = []
        self._sent = time.monotonic()

    def _override(self, name: str, text: str) -> None:
        """MLflow never changes a param: a resumed run keeps the first value there and the later ones in a tag."""
        tag = _short(f"override.{name}")
        history = self._tags.get(tag, self._params[name])
        if history.rsplit(" -> ", 1)[-1] != text:
            self.tags({tag: f"{history} -> {text}"})
            _logger.warning("%s was %s when this run started and is now %s", name, history, text)

    def _mark_not_finite(self, name: str) -> None:
        known = set(filter(None, self._tags.get("not_finite", "").split(" ")))
        if name not in known:
            self.tags({"not_finite": " ".join(sorted(known | {name}))})
            _logger.warning("%s is not a finite number and was not tracked", name)


def flatten(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """(dotted name, value) of every leaf; an empty mapping is a leaf."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def place(path: str) -> str:
    """A folder within a run: slashes whichever way they came, nothing that climbs out."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    return "/".join(part.replace("..", "_").replace(":", "_") for part in parts)


def _text(value: object) -> str:
    if isinstance(value, list | tuple) and value and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _short(name: str) -> str:
    """Names over MLflow's limit keep their beginning and a hash of the whole."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 13]}_{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TAG else text[: LONGEST_TAG - 3] + "..."


def _parts(items: list[Any], size: int) -> Iterable[list[Any]]:
    return (items[first : first + size] for first in range(0, len(items), size))


def _later_process() -> bool:
    return any(os.environ.get(name, "0") not in ("", "0") for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"))
