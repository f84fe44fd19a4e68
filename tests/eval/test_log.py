import socket

import pytest
from mlflow import MlflowClient


@pytest.fixture
def compared(run):
    assert run("compare").returncode == 0


def runs(root):
    client = MlflowClient(f"sqlite:///{root}/mlflow.db")
    return list(client.search_runs([client.get_experiment_by_name("coderet").experiment_id]))


def test_results_are_logged_once_a_run_a_system(root, run, compared):
    assert "logged 4 runs, 0 were there" in run("log").stderr
    assert "logged 0 runs, 4 were there" in run("log").stderr
    by_system = {each.data.tags["system"]: each for each in runs(root)}
    assert set(by_system) == {"plain", "learned", "both", "report"}
    learned = by_system["learned"].data
    assert learned.metrics["functions/ndcg_at_10"] == 0.9
    assert learned.metrics["efficiency/functions/queries_per_second"] == 100.0
    assert (learned.params["index.similarity"], learned.params["fit.encoder.kind"]) == ("cosine", "nbow")
    assert (learned.tags["encoder"], learned.tags["hardware"].split(",")[0]) == ("nbow", "Imaginary 9000")
    assert len(by_system["learned"].inputs.dataset_inputs) == 2


def test_a_server_that_is_gone_or_not_wanted_is_told_and_nothing_fails(run, compared):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        gone = run("log", MLFLOW_TRACKING_URI=f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert (gone.returncode, "not logged: no MLflow store answers" in gone.stderr) == (0, True)
    off = run("log", MLFLOW_TRACKING_URI="off")
    assert (off.returncode, "not logged: MLFLOW_TRACKING_URI is 'off'" in off.stderr) == (0, True)


def test_a_plain_folder_is_refused_in_one_line(run, compared):
    refused = run("log", MLFLOW_TRACKING_URI="mlruns")
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.endswith("set MLFLOW_TRACKING_URI=sqlite:///mlruns/mlflow.db")
