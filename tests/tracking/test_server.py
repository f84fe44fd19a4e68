import os
import socket
from urllib.parse import unquote

import pytest

from coderet.tracking import BadAddress, Unreachable, server


@pytest.mark.parametrize(
    ("folder", "instead"),
    [
        ("mlruns", "sqlite:///mlruns/mlflow.db"),
        ("./my runs/", "sqlite:///./my runs/mlflow.db"),
        ("file:///srv/mlruns", "sqlite:////srv/mlruns/mlflow.db"),
        ("C:\\data\\mlruns", "sqlite:///C:/data/mlruns/mlflow.db"),
    ],
)
def test_a_plain_folder_is_refused_with_the_sqlite_form_of_it(folder, instead):
    with pytest.raises(BadAddress, match=r"plain folder.*MLFLOW_TRACKING_URI=sqlite:") as refused:
        server.address(folder)
    assert str(refused.value).endswith(f"MLFLOW_TRACKING_URI={instead}")


def test_the_address_is_the_given_one_else_the_environments_else_a_file_here(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://localhost:5000")
    assert server.address("sqlite:///x.db") == "sqlite:///x.db"
    assert server.address() == "http://localhost:5000"
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert server.address() == "sqlite:///mlflow.db"


def test_a_server_that_is_gone_is_said_to_be_gone_without_its_password():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(Unreachable, match="results are on disk; start the server") as gone:
        server.connect(f"http://somebody:secret@127.0.0.1:{port}")
    assert f"127.0.0.1:{port}" in str(gone.value)
    assert "secret" not in str(gone.value)


def test_asking_whether_a_server_is_there_leaves_the_users_patience_as_it_was(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "9")
    with pytest.raises(Unreachable):
        server.connect("http://127.0.0.1:9")
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "9"


def test_artifacts_lie_beside_the_database(store, client):
    experiment = client.get_experiment_by_name(server.EXPERIMENT)
    beside = store.removeprefix("sqlite:///").replace("mlflow.db", "mlruns")
    assert unquote(experiment.artifact_location) == f"file://{beside}"


@pytest.mark.parametrize("address", ["nonsense://x", "sqlite:////proc/nowhere/mlflow.db"])
def test_a_store_that_cannot_be_opened_is_unreachable_and_results_are_on_disk(address):
    with pytest.raises(Unreachable, match="results are on disk"):
        server.connect(address)
