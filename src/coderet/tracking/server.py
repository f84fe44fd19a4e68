"""Where MLflow keeps its records: the address, checked before anything is sent, and a client for it.

The address is MLFLOW_TRACKING_URI, or an SQLite file in the current folder. The word `off` turns tracking off. A server
that does not answer is found out within seconds; MLflow's own defaults would try for minutes. MLflow's usage reports
to its makers are turned off unless the user turned them on.
"""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DEFAULT = "sqlite:///mlflow.db"
OFF = "off"
EXPERIMENT = "coderet"
ARTIFACTS = "mlruns"

# How MLflow's page shows the experiment, and the note it heads it with.
_PAGE = {
    "mlflow.experimentKind": "custom_model_development",
    "mlflow.note.content": (
        "One run a system. Newest results only: `tags.current = 'true' and tags.role = 'system'`; beside the papers' "
        "figures: `tags.current = 'true' and tags.role != 'report'`."
    ),
}

# Seconds and tries of the first call, which only asks whether anybody is there, and of all later ones.
_FIRST_CALL = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "5", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
_LATER_CALLS = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "30", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}


class Off(Exception):
    """The user wants no tracking."""


class BadAddress(ValueError):
    """A tracking address that MLflow cannot write to."""


class Unreachable(ConnectionError):
    """A good address where nobody answers."""


def address(uri: str | None = None) -> str:
    """The address to write to: uri, else the environment's, else DEFAULT. Raises BadAddress for a plain folder."""
    uri = uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT
    scheme = re.match(r"([a-z][a-z0-9+]+):", uri)
    if uri not in (OFF, "databricks", "uc") and (scheme is None or scheme[1] == "file"):
        folder = re.sub(r"^file:(//)?", "", uri).replace("\\", "/").rstrip("/")
        raise BadAddress(
            f"MLFLOW_TRACKING_URI is {uri!r}, a plain folder, which MLflow 3 no longer writes to; wanted a database "
            f"or a server; set MLFLOW_TRACKING_URI=sqlite:///{folder}/mlflow.db"
        )
    return uri


def connect(uri: str | None = None, experiment: str = EXPERIMENT) -> tuple[Any, str]:
    """An MlflowClient and the id of the experiment, which is made if need be.

    A new SQLite store takes some seconds once; its artifacts lie beside the database file, wherever later calls are
    made from. Raises BadAddress, Off, or Unreachable where the server is gone.
    """
    uri = address(uri)
    if uri == OFF:
        raise Off(f"MLFLOW_TRACKING_URI is {OFF!r}")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient

    for name in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.WARNING)
    database = _sqlite_file(uri)
    try:
        if database:
            database.parent.mkdir(parents=True, exist_ok=True)
        client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        with _environment(_FIRST_CALL):
            found = client.get_experiment_by_name(experiment)
    except Exception as error:
        raise Unreachable(
            _without_password(
                f"no MLflow store answers at {uri} ({_first_line(error)}); results are on disk; start the server, or "
                "unset MLFLOW_TRACKING_URI to write to mlflow.db here, and run: make log"
            )
        ) from error
    for name, value in _LATER_CALLS.items():
        os.environ.setdefault(name, value)
    if found:
        return client, found.experiment_id
    artifacts = (database.parent / ARTIFACTS).absolute().as_uri() if database else None
    try:
        return client, client.create_experiment(experiment, artifact_location=artifacts, tags=_PAGE)
    except Exception:  # another process may have made it meanwhile
        found = client.get_experiment_by_name(experiment)
        if found is None:
            raise
        return client, found.experiment_id


def _sqlite_file(uri: str) -> Path | None:
    match = re.fullmatch(r"sqlite:///([^?]+)(\?.*)?", uri)
    return Path(match[1]) if match else None


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def _without_password(text: str) -> str:
    return re.sub(r"/[^/@\s]*@", "/", text)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
