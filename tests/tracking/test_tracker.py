import hashlib
import logging
import math
import pathlib
import socket

import pytest

from coderet import tracking
from coderet.tracking import tracker as trackers


def test_settings_are_flattened_and_nothing_is_a_value_too(store, client):
    spec = {
        "kind": "dense",
        "fit": {"encoder": {"dim": 8, "prefix": None}, "layers": [1, 2], "fields": ["title", "text"]},
        "index": {},
    }
    tracker = tracking.start("flat", spec, uri=store)
    assert client.get_run(tracker.run_id).data.params == {
        "kind": "dense",
        "fit.encoder.dim": "8",
        "fit.encoder.prefix": "null",
        "fit.layers": "[1, 2]",
        "fit.fields": "title, text",
        "index": "{}",
    }


def test_more_settings_than_one_call_takes_are_all_kept(store, client):
    tracker = tracking.start("many", {f"key{i}": i for i in range(250)}, uri=store)
    assert len(client.get_run(tracker.run_id).data.params) == 250


def test_a_setting_too_long_for_mlflow_is_kept_whole_in_a_file_and_by_its_hash(store, client, tmp_path):
    text = "é" * 7000
    tracker = tracking.start("long", {"prompt": {"template": text}}, uri=store)
    param = client.get_run(tracker.run_id).data.params["prompt.template"]
    assert param.startswith(f"sha256:{hashlib.sha256(text.encode()).hexdigest()} (7000 characters")
    kept = client.download_artifacts(tracker.run_id, "params/prompt.template.txt", str(tmp_path))
    assert pathlib.Path(kept).read_text(encoding="utf-8") == text


def test_a_run_resumed_with_another_setting_keeps_both_and_goes_on(store, client):
    first = tracking.start("resumed", {"batch": 64, "seed": 1}, uri=store)
    first.metrics({"loss": 2.0}, step=1)
    first.close("KILLED")
    for batch in (32, 32, 16):
        again = tracking.start("resumed", {"batch": batch, "seed": 1, "epochs": 3}, uri=store, resume=first.run_id)
        again.metrics({"loss": 1.0}, step=2)
        again.close()
    run = client.get_run(first.run_id)
    assert again.run_id == first.run_id
    assert run.data.params == {"batch": "64", "seed": "1", "epochs": "3"}
    assert run.data.tags["override.batch"] == "64 -> 32 -> 16"
    assert run.data.metrics == {"loss": 1.0}
    assert run.info.status == "FINISHED"


def test_a_run_that_the_store_has_lost_is_begun_anew(store):
    tracker = tracking.start("lost", {}, uri=store, resume="0" * 32)
    assert tracker.run_id not in ("", "0" * 32)


def test_two_thousand_step_metrics_take_a_few_calls(store, client, monkeypatch):
    monkeypatch.setattr(trackers, "SECONDS_BETWEEN_CALLS", math.inf)
    calls = []
    log_batch = type(client).log_batch
    monkeypatch.setattr(
        type(client), "log_batch", lambda self, *args, **kwargs: (calls.append(1), log_batch(self, *args, **kwargs))[1]
    )
    tracker = tracking.start("steps", {}, uri=store)
    for step in range(2000):
        tracker.metrics({"ndcg@10": step / 2000}, step)
    tracker.close()
    history = client.get_metric_history(tracker.run_id, "ndcg_at_10")
    assert [(each.step, each.value) for each in history] == [(step, step / 2000) for step in range(2000)]
    assert len(calls) == 2


def test_a_name_that_mlflow_refuses_is_logged_under_its_allowed_one(store, client):
    tracker = tracking.start("named", {"MTEB(Code, v1)": {"k@": 1}}, uri=store)
    tracker.metrics({"MTEB(Code, v1)/cosqa/ndcg@10": 0.5})
    tracker.close()
    data = client.get_run(tracker.run_id).data
    assert [tracking.original(name) for name in data.metrics] == ["MTEB(Code, v1)/cosqa/ndcg@10"]
    assert [tracking.original(name) for name in data.params] == ["MTEB(Code, v1).k@"]


def test_a_metric_that_is_not_finite_is_marked_and_not_logged(store, client, caplog):
    tracker = tracking.start("nan", {}, uri=store)
    tracker.metrics({"loss": math.nan, "mrr": 0.5}, step=1)
    tracker.metrics({"loss": math.nan, "margin": math.inf}, step=2)
    tracker.close()
    data = client.get_run(tracker.run_id).data
    assert data.metrics == {"mrr": 0.5}
    assert data.tags["not_finite"] == "loss margin"
    assert caplog.text.count("loss is not a finite number") == 1


def test_a_file_may_have_spaces_in_its_path_and_a_folder_backslashes(store, client, tmp_path):
    (tmp_path / "my files").mkdir()
    file = tmp_path / "my files" / "score card.json"
    file.write_text("{}")
    tracker = tracking.start("files", {}, uri=store)
    tracker.artifact(file, "results\\my pypi\\..\\x")
    tracker.close()
    found = client.list_artifacts(tracker.run_id, "results/my pypi/_/x")
    assert [each.path for each in found] == ["results/my pypi/_/x/score card.json"]


def test_without_a_server_the_work_goes_on_and_is_told_once(caplog):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    tracker = tracking.start("gone", {"a": 1}, uri=f"http://127.0.0.1:{port}")
    tracker.metrics({"loss": 1.0}, 1)
    tracker.close()
    assert tracker.run_id == ""
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "make log" in caplog.text


def test_a_folder_for_an_address_is_told_once_too(caplog):
    tracking.start("folder", {}, uri="mlruns").close()
    assert len(caplog.records) == 1
    assert "sqlite:///mlruns/mlflow.db" in caplog.text


def test_a_server_that_goes_away_meanwhile_ends_the_telling_and_not_the_work(store, monkeypatch, caplog):
    tracker = tracking.start("meanwhile", {}, uri=store)
    monkeypatch.setattr(trackers, "METRICS_A_CALL", 1)
    monkeypatch.setattr(trackers.MlflowRun, "_send", lambda self: (_ for _ in ()).throw(ConnectionError("no route")))
    tracker.metrics({"loss": 1.0}, 1)
    tracker.metrics({"loss": 1.0}, 2)
    tracker.close()
    assert caplog.text.count("Tracking stopped (no route)") == 1


def test_tracking_that_is_off_says_and_writes_nothing(monkeypatch, caplog, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    tracker = tracking.start("off", {"a": 1})
    tracker.metrics({"loss": 1.0}, 1)
    tracker.close()
    assert (tracker.run_id, caplog.text, list(tmp_path.iterdir())) == ("", "", [])


@pytest.mark.parametrize("rank", ["RANK", "LOCAL_RANK"])
def test_of_several_processes_only_the_first_writes(store, monkeypatch, rank):
    monkeypatch.setenv(rank, "1")
    assert tracking.start("rank", {}, uri=store).run_id == ""
    monkeypatch.setenv(rank, "0")
    assert tracking.start("rank", {}, uri=store).run_id != ""
