"""A one-minute life of a dual encoder: it learns, is killed, goes on, and nobody can tell. Case D11."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from coderet.encoders.base import DualEncoder
from coderet.records import DataError
from coderet.registry import BadValue, UnknownName
from coderet.training import module
from coderet.training.fitting import fit
from coderet.training.objectives import InfoNce

SETTINGS = {
    "encoder": {"kind": "nbow", "dim": 16, "dropout": 0.2},
    "objective": {},
    "batches": {"size": 8},
    "training": {"epochs": 3, "warmup": 2, "learning_rate": 0.02, "patience": 9, "valid_block": 20},
}


@pytest.fixture
def fitted(
    write_pairs: Callable[..., Path], tokenizers_folder: Path, tmp_path: Path
) -> Callable[..., tuple[DualEncoder, dict[str, Any]]]:
    """fitted(work, encoder={...}, training={...}): a fit with SETTINGS and these on top."""
    pairs = write_pairs()

    def run(work: str = "work", seed: int = 5, **changes: Any) -> tuple[DualEncoder, dict[str, Any]]:
        settings = {name: SETTINGS[name] | changes.get(name, {}) for name in SETTINGS}
        return fit(pairs, tokenizers_folder, settings, tmp_path / work, seed)

    return run


def weights(encoder: DualEncoder) -> bytes:
    return b"".join(each.numpy().tobytes() for each in encoder.state_dict().values())


def test_training_learns_and_says_what_it_cost(fitted: Callable[..., Any]):
    encoder, facts = fitted(training={"epochs": 6})
    assert facts["epochs"] == len(facts["curve"]) == 6 and facts["steps"] == 6 * 7
    assert (facts["pairs"], facts["validation_pairs"], facts["pairs_left_over"]) == (60, 20, 4)
    first, last = facts["curve"][0], facts["curve"][-1]
    assert set(first) == {"step", "epoch", "seconds", "loss", "validation_mrr"}
    assert last["loss"] < first["loss"] / 2 and last["seconds"] > first["seconds"] > 0
    assert facts["best_validation_mrr"] == max(row["validation_mrr"] for row in facts["curve"])
    assert facts["curve"][facts["best_epoch"] - 1]["validation_mrr"] == facts["best_validation_mrr"]
    assert facts["parameters"] == encoder.parameters_count == len(encoder.tokenizer) * 16 + 16
    assert facts["settings"]["training"]["epochs"] == 6
    vectors = encoder.encode_queries(pa.array(["sort the list"], pa.large_string()))
    assert np.linalg.norm(vectors) == pytest.approx(1)


def test_the_same_seed_gives_the_same_weights_and_another_one_others(fitted: Callable[..., Any]):
    first = weights(fitted("a")[0])
    assert weights(fitted("b")[0]) == first
    assert weights(fitted("c", seed=6)[0]) != first


@pytest.mark.parametrize(
    ("section", "choice"),
    [
        ("encoder", {"tied": False}),
        ("encoder", {"pooling": "max"}),
        ("encoder", {"pooling": "mean", "distinct": True}),
        ("encoder", {"marked": True, "query_prefix": "sort "}),
        ("objective", {"learn_temperature": True}),
        ("objective", {"both_directions": False}),
        ("batches", {"kind": "distinct"}),
        ("training", {"start_from_rarity": False}),
        ("training", {"workers": 1}),
    ],
)
def test_every_choice_trains(fitted: Callable[..., Any], section: str, choice: dict[str, Any]):
    made, facts = fitted(**{section: choice})
    assert facts["curve"][-1]["loss"] < facts["curve"][0]["loss"]
    assert np.isfinite(made.encode_documents(pa.array(["def sort(x)"], pa.large_string()))).all()


class Stop(BaseException):
    """What a test throws into training."""


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int, act: Callable[[], None]) -> list[list[int]]:
    """Do act when step is about to be taken; returns the list that each step's pairs are noted in."""
    seen: list[list[int]] = []
    usual = module.ContrastiveModule.training_step

    def step_or_stop(self: module.ContrastiveModule, batch: Any, number: int) -> torch.Tensor:
        if self.global_step == step:
            act()
        seen.append(batch.queries.keys.tolist())
        return usual(self, batch, number)

    monkeypatch.setattr(module.ContrastiveModule, "training_step", step_or_stop)
    return seen


def throw() -> None:
    raise Stop


@pytest.mark.parametrize("step", [7 + 3, 7 + 4, 2, 7, 14, 20])
def test_a_stopped_run_goes_on_with_the_same_batches_to_the_same_weights(
    fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, step: int
):
    every = {"checkpoint_steps": 1}
    with monkeypatch.context() as patch:
        expected = stop_at(patch, -1, throw)
        whole, whole_facts = fitted("whole", training=every)
    with monkeypatch.context() as patch:
        before = stop_at(patch, step, throw)
        with pytest.raises(Stop):
            fitted("stopped", training=every)
    with monkeypatch.context() as patch:
        after = stop_at(patch, -1, throw)
        resumed, facts = fitted("stopped", training=every)
    assert len(before) == step and before + after == expected
    assert weights(resumed) == weights(whole)
    for name in ("step", "epoch", "loss", "validation_mrr"):
        assert [row[name] for row in facts["curve"]] == [row[name] for row in whole_facts["curve"]]


def test_a_run_stopped_between_two_checkpoints_repeats_the_steps_it_lost(
    fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    whole = weights(fitted("whole")[0])
    with monkeypatch.context() as patch:
        stop_at(patch, 11, throw)
        with pytest.raises(Stop):
            fitted("stopped")
    with monkeypatch.context() as patch:
        after = stop_at(patch, -1, throw)
        assert weights(fitted("stopped")[0]) == whole
    assert len(after) == 14  # epochs 1 and 2 anew


def test_a_killed_process_goes_on_to_the_same_weights(fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def train_and_die() -> None:
        torch.set_num_threads(1)
        stop_at(monkeypatch, 10, kill)
        fitted("killed", training={"checkpoint_steps": 2})

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        process = multiprocessing.get_context("fork").Process(target=train_and_die)
        process.start()
        process.join(120)
        assert process.exitcode == -signal.SIGKILL
        killed = weights(fitted("killed", training={"checkpoint_steps": 2})[0])
        assert killed == weights(fitted("whole", training={"checkpoint_steps": 2})[0])
    finally:
        torch.set_num_threads(threads)


def test_a_finished_run_asked_again_trains_nothing(fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    first, facts = fitted()
    seen = stop_at(monkeypatch, -1, throw)
    again, facts_again = fitted()
    assert seen == [] and weights(again) == weights(first) and facts_again == facts


def test_training_stops_early_keeps_the_best_and_stays_stopped(
    fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    scores = iter([0.1, 0.5, 0.4, 0.3, 0.9, 0.9, 0.9])

    def scripted(queries: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
        return torch.full((len(queries),), next(scores))

    monkeypatch.setattr(module, "reciprocal_ranks", scripted)
    changes = {"training": {"epochs": 7, "patience": 2}}
    encoder, facts = fitted(**changes)
    assert [round(row["validation_mrr"], 3) for row in facts["curve"]] == [0.1, 0.5, 0.4, 0.3]
    assert (facts["epochs"], facts["best_epoch"], round(facts["best_validation_mrr"], 3)) == (4, 2, 0.5)
    assert weights(fitted(**changes)[0]) == weights(encoder)


def test_a_loss_that_is_not_a_number_stops_training_with_a_message(
    fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(InfoNce, "forward", lambda self, queries, *_: queries.sum() * torch.nan)
    with pytest.raises(DataError, match=r"the loss is nan at step 0, batch 0 .*lower training\.learning_rate"):
        fitted()


@pytest.mark.parametrize("name", ["last.ckpt", "best-*.pt"])
def test_a_checkpoint_that_is_cut_short_is_refused(fitted: Callable[..., Any], tmp_path: Path, name: str):
    fitted()
    (path,) = (tmp_path / "work").rglob(name)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="is not a whole checkpoint"):
        fitted()


def test_misspelt_settings_are_refused_with_the_nearest(fitted: Callable[..., Any], tmp_path: Path):
    with pytest.raises(UnknownName, match=r"fit\.training\.epoch is not a setting.*Did you mean epochs"):
        fitted(training={"epoch": 3})
    with pytest.raises(UnknownName, match=r"fit\.encodr is not a setting.*Did you mean encoder"):
        fit(tmp_path, tmp_path, {"encodr": {}}, tmp_path, 0)


def test_missing_pairs_are_said_to_be_missing(tokenizers_folder: Path, tmp_path: Path):
    with pytest.raises(DataError, match="run: dvc repro mine"):
        fit(tmp_path / "none", tokenizers_folder, SETTINGS, tmp_path / "work", 0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"training": {"epochs": 0}}, "fit.training.epochs is 0; wanted a number from 1 on"),
        ({"batches": {"size": 1}}, "fit.batches.size is 1; wanted a number from 2 on"),
        ({"objective": {"temperature": 0}}, "fit.objective.temperature is 0; wanted"),
        ({"training": {"learning_rate": "1e-3"}}, "fit.training.learning_rate is '1e-3'; wanted a number"),
        ({"objective": {"both_directions": "no"}}, "fit.objective.both_directions is 'no'; wanted true or false"),
        ({"training": {"valid_blocks": 0}}, "fit.training.valid_blocks is 0; wanted"),
        ({"encoder": {"dim": 0}}, "dim is 0; wanted a number from 1"),
        ({"encoder": {"dropout": 1.0}}, "dropout is 1.0; wanted a number from 0"),
        ({"encoder": {"tied": "yes"}}, "fit.encoder.tied is 'yes'; wanted true or false"),
        ({"encoder": {"max_query_tokens": 0}}, "fit.encoder.max_query_tokens is 0; wanted"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_before_training(fitted: Callable[..., Any], changes, said):
    with pytest.raises(BadValue, match=said):
        fitted(**changes)


def test_a_section_that_is_no_mapping_is_refused(write_pairs, tokenizers_folder: Path, tmp_path: Path):
    with pytest.raises(BadValue, match="wanted a mapping of settings"):
        fit(write_pairs(), tokenizers_folder, {"training": None}, tmp_path, 5)
