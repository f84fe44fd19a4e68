"""The stage as DVC calls it, on two devices: one command, one results file, one run in the log-book."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from coderet import encoders
from coderet.tracking import server
from coderet.training.vocabulary import train_vocabulary

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path, write_pairs: Callable[..., Path]) -> Path:
    """A folder with params, pairs and a tokenizer, where nbow is trained on two devices."""
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    write_pairs().rename(folder / "data" / "pairs")
    train_vocabulary(folder / "data" / "pairs", folder / "models" / "tokenizers", kind="words", size=200, min_count=1)
    params: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    fit = params["retrievers"]["nbow"]["fit"]
    fit["encoder"]["dim"] = 16
    fit["batches"]["size"] = 8
    fit["training"] |= {"epochs": 3, "learning_rate": 0.02}
    fit["trainer"] = {"devices": 2}
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    return folder


def call(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, ROOT / "train" / script, "nbow"],
        cwd=folder,
        env={**kept, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


def test_two_devices_leave_one_result_one_model_and_one_run(project: Path):
    done = call(project, "fit.py")
    assert done.returncode == 0, done.stderr
    assert [each.name for each in (project / "train" / "results").iterdir()] == ["nbow.json"]
    facts = json.loads((project / "train" / "results" / "nbow.json").read_text(encoding="utf-8"))
    assert (facts["devices"], facts["steps"], facts["pairs"]) == (2, 21, 60)
    assert facts["curve"][-1]["loss"] < facts["curve"][0]["loss"]
    assert facts["settings"]["trainer"]["devices"] == 2 and facts["settings"]["training"]["schedule"] == "linear"
    assert encoders.load(project / "models" / "retrievers" / "nbow" / "encoder").dim == 16
    assert done.stderr.count("fit.py nbow:") == 1  # how long it took, said once

    client, experiment = server.connect(f"sqlite:///{project / 'mlflow.db'}")
    (run,) = client.search_runs([experiment])
    assert run.info.status == "FINISHED"
    assert run.data.params["training.schedule"] == "linear" and run.data.params["data.train"] == facts["data"]["train"]
    curves = {
        "loss",
        "batch_mrr",
        "learning_rate",
        "gradient_norm",
        "pairs_per_second",
        "system/memory_bytes",
        "system/cpu_percent",
        "validation_mrr",
    }
    assert curves <= run.data.metrics.keys()
    points = client.get_metric_history(run.info.run_id, "loss")
    assert [point.step for point in points] == [1, 11, 21]
