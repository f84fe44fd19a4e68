"""Cases D9, D11 and D12: two real processes over gloo, started by torchrun, against one.

What the processes do is told in ranks.py; here it is done again in one process, and held against it.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import ranks
import torch

from coderet.registry import BadValue
from coderet.training import devices
from coderet.training.running import Running
from coderet.training.vocabulary import train_vocabulary

ROOT = Path(__file__).parents[2]
TRAIN, VALID = 300, 50


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, pairs_table: Any) -> Path:
    """A folder with pairs whose queries and code share no word, and a tokenizer."""
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "pairs").mkdir()
    random = np.random.default_rng(0)
    for name, count in (("train", TRAIN), ("valid", VALID)):
        words = random.integers(0, 40, (count, 4))
        queries, codes = ([" ".join(f"{side}{word}" for word in each) for each in words] for side in "qc")
        pq.write_table(pairs_table(queries, codes), folder / "pairs" / f"{name}.parquet")
    train_vocabulary(folder / "pairs", folder / "tokenizers", kind="words", size=200, min_count=1)
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> list[dict[str, Any]]:
    """What each of two processes found."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*torchrun, ROOT / "tests" / "ranks.py", folder],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [torch.load(folder / f"rank-{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("name", ranks.GRADIENTS)
def test_gradients_of_two_devices_are_those_of_one(name: str, found: list[dict[str, Any]], tmp_path: Path):
    one = ranks.gradients(ranks.GRADIENTS[name], 1, tmp_path)
    for each in found:
        two = each["gradients"][name]
        assert two["gradients"].keys() == one["gradients"].keys()
        for weights, gradient in one["gradients"].items():
            torch.testing.assert_close(two["gradients"][weights], gradient, atol=1e-6, rtol=1e-5)
            assert two["gradients"][weights].norm() / gradient.norm() == pytest.approx(1, abs=1e-5)
        assert two["losses"] == pytest.approx(one["losses"], abs=1e-6)  # the mean of all, on both


@pytest.mark.parametrize("name", ranks.GRADIENTS)
def test_devices_exchange_gradients_once_a_step(name: str, found: list[dict[str, Any]]):
    assert [each["gradients"][name]["exchanges"] for each in found] == [1, 1]


def test_the_cases_differ(found: list[dict[str, Any]]):
    norms = {
        name: float(each["gradients"]["encoder.towers.query.weight"].norm())
        for name, each in found[0]["gradients"].items()
    }
    assert norms["both directions"] != pytest.approx(norms["duplicates"], rel=1e-3)
    assert norms["both directions"] != pytest.approx(norms["hard negatives"], rel=1e-3)
    assert norms["both directions"] != pytest.approx(norms["uneven devices"], rel=1e-3)


def test_two_devices_with_half_a_batch_each_come_to_the_weights_of_one(folder: Path, found: list[dict[str, Any]]):
    one = ranks.fitted(folder, ranks.FIT, 1, "one")
    two = found[0]["plain"]
    assert one["facts"]["steps"] == two["facts"]["steps"] == 20
    assert {len(batch) for batch in found[0]["plain"]["seen"]} == {64}
    for name, weights in one["weights"].items():
        torch.testing.assert_close(two["weights"][name], weights, atol=1e-5, rtol=0)
    for row, other in zip(one["facts"]["curve"], two["facts"]["curve"], strict=True):
        assert row["loss"] == pytest.approx(other["loss"], abs=1e-5)


def test_five_validation_blocks_on_two_devices_give_the_mean_of_all(folder: Path, found: list[dict[str, Any]]):
    one = ranks.fitted(folder, ranks.FIT, 1, "one")
    two = found[0]["plain"]
    assert one["facts"]["validation_pairs"] == two["facts"]["validation_pairs"] == VALID
    scores = [[row["validation_mrr"] for row in each["facts"]["curve"]] for each in (one, two)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6) and 0 < scores[0][0] < 1


def test_a_mean_over_five_queries_is_not_that_over_a_padded_shard(found: list[dict[str, Any]]):
    assert [each["mean_of_five"] for each in found] == pytest.approx([0.2, 0.2])


def test_devices_have_as_many_batches_each_and_share_every_one(found: list[dict[str, Any]]):
    seen = [each["whole"]["seen"] for each in found]
    assert len(seen[0]) == len(seen[1]) == 20 and {len(batch) for each in seen for batch in each} == {15}
    assert all(not set(one) & set(other) for one, other in zip(*seen, strict=True))
    assert seen[0][:10] != seen[0][10:]


def test_a_run_stopped_on_two_devices_goes_on_to_the_same_weights(found: list[dict[str, Any]]):
    for each in found:
        assert not each["stopped"]["finished"] and len(each["stopped"]["seen"]) == 14  # 7 steps of two batches
        assert each["stopped"]["seen"] + each["resumed"]["seen"] == each["whole"]["seen"]
    whole, resumed = found[0]["whole"], found[0]["resumed"]
    assert all(torch.equal(whole["weights"][name], weights) for name, weights in resumed["weights"].items())
    for row, other in zip(whole["facts"]["curve"], resumed["facts"]["curve"], strict=True):
        assert {**row, "seconds": 0} == {**other, "seconds": 0}


def test_only_the_first_process_comes_back(found: list[dict[str, Any]]):
    assert [each["whole"]["finished"] for each in found] == [True, False]
    assert found[0]["whole"]["facts"]["devices"] == 2


def test_more_devices_than_the_machine_has_are_refused_with_the_number():
    with pytest.raises(BadValue, match=r"fit\.trainer\.devices is 4096, but this machine has \d+"):
        Running(devices=4096)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there it is allowed")
def test_spreading_weights_over_processors_without_graphics_is_refused():
    with pytest.raises(BadValue, match="graphics processors only"):
        Running(strategy="fsdp")


def test_processes_take_turns_with_a_folder(tmp_path: Path):
    inside: list[str] = []

    def second() -> None:
        with devices.alone(tmp_path / "work"):
            inside.append("second")

    with devices.alone(tmp_path / "work"):
        other = threading.Thread(target=second)
        other.start()
        time.sleep(0.2)
        inside.append("first")
    other.join()
    assert inside == ["first", "second"]
