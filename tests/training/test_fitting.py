"""A one-minute life of a dual encoder: it learns, is killed, goes on, and nobody can tell. Case D11."""

import errno
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_checkpoints
import torch

from coderet.corpora import sources
from coderet.encoders.base import DualEncoder
from coderet.records import DataError
from coderet.registry import BadValue, UnknownName
from coderet.training import devices, module
from coderet.training.fitting import fit
from coderet.training.objectives import InfoNce
from coderet.training.vocabulary import train_vocabulary

SETTINGS = {
    "encoder": {"kind": "nbow", "dim": 16, "dropout": 0.2},
    "pairs": {},
    "objective": {},
    "batches": {"size": 8},
    "training": {"epochs": 3, "warmup": 2, "learning_rate": 0.02, "patience": 9, "valid_block": 20},
    "trainer": {},
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
        ("batches", {"mini_batch": 3}),
        ("batches", {"mini_batch": None}),
        ("training", {"start_from_rarity": False}),
        ("training", {"workers": 1}),
        ("training", {"optimiser": "adamw", "weight_decay": 0.01, "warmup": 0.1}),
        ("training", {"schedule": "constant", "accumulate": 2, "clip_norm": 1.0}),
        ("trainer", {"precision": "bf16-mixed"}),
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


IN_MINI_BATCHES = {"batches": {"mini_batch": 3}}
IN_LAPS = {"training": {"accumulate": 2, "valid_every": 3, "schedule": "cosine", "clip_norm": 0.5}}


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        *((step, {}) for step in (7 + 3, 7 + 4, 2, 7, 14, 20)),
        (9, IN_MINI_BATCHES),
        *((step, IN_MINI_BATCHES | IN_LAPS) for step in (3, 4)),
    ],
)
def test_a_stopped_run_goes_on_with_the_same_batches_to_the_same_weights(
    fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, step: int, changes: dict[str, Any]
):
    every = changes | {"training": changes.get("training", {}) | {"checkpoint_steps": 1}}
    batches = every["training"].get("accumulate", 1)
    with monkeypatch.context() as patch:
        expected = stop_at(patch, -1, throw)
        whole, whole_facts = fitted("whole", **every)
    with monkeypatch.context() as patch:
        before = stop_at(patch, step, throw)
        with pytest.raises(Stop):
            fitted("stopped", **every)
    with monkeypatch.context() as patch:
        after = stop_at(patch, -1, throw)
        resumed, facts = fitted("stopped", **every)
    assert len(before) == step * batches and before + after == expected
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


def test_a_stopped_fine_tuning_goes_on_from_its_checkpoint(
    write_pairs: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    base = tiny_checkpoints.checkpoint(tmp_path / "bert", "Bert", max_position_embeddings=64)
    tiny_checkpoints.tokenizer(base, model_max_length=64)
    encoder = {"kind": "pretrained", "source": f"file:{base}#sha256={sources.digest(base)}", "precision": "fp32"}
    settings = SETTINGS | {"encoder": encoder | {"max_document_tokens": 16}}
    pairs = write_pairs()

    def tuned(work: str) -> Any:
        return fit(pairs, tmp_path / "no tokenizers", settings, tmp_path / work, 5)[0]

    with monkeypatch.context() as patch:
        expected = stop_at(patch, -1, throw)
        whole = tuned("whole")
    with monkeypatch.context() as patch:
        stop_at(patch, 9, throw)
        with pytest.raises(Stop):
            tuned("stopped")
    with monkeypatch.context() as patch:
        after = stop_at(patch, -1, throw)
        resumed = tuned("stopped")
    assert after == expected[7:]  # an epoch has 7 batches
    assert weights(resumed) == weights(whole)


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


@pytest.mark.parametrize("name", ["last.ckpt", "best-*.pt"])
def test_a_checkpoint_of_another_architecture_is_refused(fitted: Callable[..., Any], tmp_path: Path, name: str):
    fitted()
    fitted("other", encoder={"dim": 8})
    (own,), (other,) = ((tmp_path / work).glob(f"*/{name}") for work in ("work", "other"))
    shutil.copy(other, own)
    with pytest.raises(DataError, match=r"is of another architecture .*tower\.table\.weight among them; delete"):
        fitted()
    torch.save([1, 2], own)
    with pytest.raises(DataError, match=r"is no checkpoint of a training here; delete"):
        fitted()


def test_misspelt_settings_are_refused_with_the_nearest(fitted: Callable[..., Any], tmp_path: Path):
    with pytest.raises(UnknownName, match=r"fit\.training\.epoch is not a setting.*Did you mean epochs"):
        fitted(training={"epoch": 3})
    with pytest.raises(UnknownName, match=r"fit\.encodr is not a setting.*Did you mean encoder"):
        fit(tmp_path, tmp_path, {"encodr": {}}, tmp_path, 0)


def test_missing_pairs_are_said_to_be_missing(tokenizers_folder: Path, tmp_path: Path):
    with pytest.raises(DataError, match="run: dvc repro mine"):
        fit(tmp_path / "none", tokenizers_folder, SETTINGS, tmp_path / "work", 0)


def test_other_files_that_are_missing_are_said_to_be_named_by_the_params(fitted: Callable[..., Any]):
    with pytest.raises(
        DataError, match=r"none\.parquet cannot be read .No such file.*; fit\.pairs names it: mend that"
    ):
        fitted(pairs={"files": {"own": "none.parquet"}})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"training": {"epochs": 0}}, "fit.training.epochs is 0; wanted a number from 1 on"),
        ({"batches": {"size": 1}}, "fit.batches.size is 1; wanted a number from 2 on"),
        ({"batches": {"mini_batch": -1}}, "fit.batches.mini_batch is -1; wanted"),
        ({"training": {"layer_decay": 1.5}}, "fit.training.layer_decay is 1.5; wanted a number from 1e-06 to 1"),
        ({"training": {"schedule": "step"}}, "fit.training.schedule is 'step'; wanted linear, cosine, constant"),
        ({"trainer": {"precision": "fp16"}}, "fit.trainer.precision is 'fp16'; wanted 32-true"),
        ({"trainer": {"devices": 0}}, "fit.trainer.devices is 0; wanted a number from 1 on"),
        ({"objective": {"temperature": 0}}, "fit.objective.temperature is 0; wanted"),
        ({"training": {"learning_rate": "1e-3"}}, "fit.training.learning_rate is '1e-3'; wanted a number"),
        ({"objective": {"both_directions": "no"}}, "fit.objective.both_directions is 'no'; wanted true or false"),
        ({"training": {"valid_blocks": 0}}, "fit.training.valid_blocks is 0; wanted"),
        ({"encoder": {"dim": 0}}, "dim is 0; wanted a number from 1"),
        ({"encoder": {"dropout": 1.0}}, "dropout is 1.0; wanted a number from 0"),
        ({"encoder": {"tied": "yes"}}, "fit.encoder.tied is 'yes'; wanted true or false"),
        ({"pairs": {"files": {"own": 3}}}, "fit.pairs.files.own is 3; wanted the path"),
        ({"encoder": {"max_query_tokens": 0}}, "fit.encoder.max_query_tokens is 0; wanted"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_before_training(fitted: Callable[..., Any], changes, said):
    with pytest.raises(BadValue, match=said):
        fitted(**changes)


def test_a_section_that_is_no_mapping_is_refused(write_pairs, tokenizers_folder: Path, tmp_path: Path):
    with pytest.raises(BadValue, match="wanted a mapping of settings"):
        fit(write_pairs(), tokenizers_folder, {"training": None}, tmp_path, 5)


def test_one_pair_and_a_batch_larger_than_the_data_are_refused(
    write_pairs: Callable[..., Path], tokenizers_folder: Path, tmp_path: Path
):
    with pytest.raises(DataError, match=r"wants at least as many pairs, found 1; lower batches\.size"):
        fit(write_pairs(train=1), tokenizers_folder, SETTINGS, tmp_path / "work", 5)
    settings = SETTINGS | {"batches": {"size": 64}}
    with pytest.raises(DataError, match=r"a batch of 64 wants .* found 60; lower batches\.size"):
        fit(write_pairs(), tokenizers_folder, settings, tmp_path / "work", 5)


def test_one_validation_pair_is_refused_for_it_would_always_be_found(
    write_pairs: Callable[..., Path], tokenizers_folder: Path, tmp_path: Path
):
    with pytest.raises(DataError, match=r"valid\.parquet has 1 pair; wanted two at least"):
        fit(write_pairs(valid=1), tokenizers_folder, SETTINGS, tmp_path / "work", 5)


@pytest.mark.parametrize("side", ["query", "code"])
@pytest.mark.parametrize("text", ["排序", "(((", "unbekannt"])
def test_a_side_of_which_the_tokenizer_knows_nothing_is_refused(
    write_pairs: Callable[..., Path], tmp_path: Path, side: str, text: str
):
    folder = write_pairs()
    train_vocabulary(folder, tmp_path / "tokenizers", kind="words", size=200, min_count=1)
    for name in ("train", "valid"):
        table = pq.read_table(folder / f"{name}.parquet")
        place = table.schema.get_field_index(side)
        strange = pa.array([text] * len(table), pa.large_string())
        pq.write_table(table.set_column(place, table.schema.field(side), strange), folder / f"{name}.parquet")
    with pytest.raises(DataError, match=rf"train\.parquet: the tokenizer knows no token of any {side}; make one"):
        fit(folder, tmp_path / "tokenizers", SETTINGS, tmp_path / "work", 5)


def test_two_trainings_of_the_same_at_once_are_one_too_many(fitted: Callable[..., Any], tmp_path: Path):
    fitted()
    (work,) = {each.parent for each in (tmp_path / "work").glob("*/last.ckpt")}
    with devices.no_other_training(work), pytest.raises(DataError, match="another process trains the same in"):
        fitted()
    fitted()


def test_validations_stand_where_they_are_asked_for(fitted: Callable[..., Any]):
    _, facts = fitted(training={"valid_every": 5, "epochs": 2})  # of 14 steps: as near to 5 as comes out even
    assert [(row["step"], row["epoch"]) for row in facts["curve"]] == [(4, 0), (8, 1), (12, 1)]
    assert facts["best_step"] in (4, 8, 12) and facts["epochs"] == 2
    assert fitted("short", training={"max_steps": 5})[1]["steps"] == 5


def test_accumulated_batches_are_one_larger_step(fitted: Callable[..., Any]):
    # Without a loss between pairs of different batches, two of four are one of eight: the mean of the means.
    seen: dict[str, torch.Tensor] = {}

    def gradients(work: str, **changes: Any) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}
        usual = module.ContrastiveModule.on_before_optimizer_step

        def keep(self: module.ContrastiveModule, optimizer: Any) -> None:
            if not found:
                found.update({name: each.grad.clone() for name, each in self.encoder.named_parameters()})
            usual(self, optimizer)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(InfoNce, "forward", lambda self, queries, documents, *_: -(queries * documents).sum(1).mean())
            patch.setattr(module.ContrastiveModule, "on_before_optimizer_step", keep)
            fitted(work, encoder={"dropout": 0.0}, **changes)
        return found

    seen = gradients("whole", batches={"size": 8}, training={"max_steps": 1})
    parts = gradients("parts", batches={"size": 4}, training={"max_steps": 1, "accumulate": 2})
    for name, gradient in seen.items():
        torch.testing.assert_close(parts[name], gradient, atol=1e-6, rtol=1e-5)


def test_a_long_gradient_is_shortened(fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    lengths = []

    def length(optimizer: torch.optim.Adam, *_: Any, **__: Any) -> None:
        every = [each.grad for group in optimizer.param_groups for each in group["params"] if each.grad is not None]
        lengths.append(float(torch.nn.utils.get_total_norm(every)))

    monkeypatch.setattr(torch.optim.lr_scheduler.LambdaLR, "step", lambda self, *_: length(self.optimizer))
    fitted("free", training={"max_steps": 3})
    free = lengths[-3:]
    fitted("clipped", training={"max_steps": 3, "clip_norm": 0.01})
    assert min(free) > 0.02 and lengths[-3:] == pytest.approx([0.01] * 3, rel=1e-3)


def test_a_gradient_that_is_not_a_number_stops_training_before_the_step(
    fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    # The loss is 1, its gradient 0 * inf.
    monkeypatch.setattr(InfoNce, "forward", lambda self, queries, *_: torch.sqrt((queries * 0).sum()) + 1)
    with pytest.raises(DataError, match=r"the gradient's length is nan at step 0, batch 0 .*training\.clip_norm"):
        fitted()
    assert not list((tmp_path / "work").rglob("last.ckpt"))


def test_weights_that_are_no_numbers_are_not_saved(fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    usual = module.ContrastiveModule.on_validation_epoch_end

    def spoil(self: module.ContrastiveModule) -> None:
        usual(self)
        if self.current_epoch == 1:
            with torch.no_grad():
                next(self.encoder.parameters())[1] = torch.nan

    with monkeypatch.context() as patch:
        patch.setattr(module.ContrastiveModule, "on_validation_epoch_end", spoil)
        with pytest.raises(DataError, match="weights are not numbers after step 14"):
            fitted()
    assert all(torch.isfinite(each).all() for each in fitted()[0].state_dict().values())  # goes on from step 7


def test_too_little_memory_is_told_with_what_to_turn(fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(InfoNce, "forward", lambda self, *_: torch.empty(2**60))
    with pytest.raises(DataError, match=r"out of memory.*batches\.mini_batch.*gradient_checkpointing.*batches\.size"):
        fitted()


def test_a_disk_that_is_full_costs_no_checkpoint(
    fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    whole = weights(fitted("whole")[0])
    usual = torch.save

    def full(what: Any, path: Any, *given: Any, **more: Any) -> None:
        if "best-1" in str(path):
            Path(path).write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        usual(what, path, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", full)
        patch.setattr(module, "reciprocal_ranks", rising())
        with pytest.raises(
            DataError, match=r"best-1\.pt could not be written.*No space left.*goes on from the checkpoint"
        ):
            fitted("full")
    (folder,) = [each for each in (tmp_path / "full").iterdir() if each.is_dir()]
    assert sorted(each.name for each in folder.glob("*.p*t*")) == ["best-0.pt"]
    assert weights(fitted("full")[0]) == whole


def rising() -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Scores that are better every time they are asked for."""
    scores = iter(np.linspace(0.1, 0.9, 50))
    return lambda queries, documents: torch.full((len(queries),), next(scores))


def test_other_settings_start_anew_and_say_what_is_other(
    fitted: Callable[..., Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    fitted(training={"learning_rate": 0.03})
    with monkeypatch.context() as patch:
        stop_at(patch, 10, throw)
        with pytest.raises(Stop):
            fitted()
    assert "trains from the start" not in capsys.readouterr().err  # the first was done
    fitted(training={"learning_rate": 0.01})
    said = capsys.readouterr().err
    assert "trains from the start" in said and said.strip().endswith("waits to go on: training.learning_rate")
    assert len(list((tmp_path / "work").glob("*/last.ckpt"))) == 3


def test_a_teacher_is_the_encoder_as_it_was(fitted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    marked: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
    usual = InfoNce.forward

    def forward(self: InfoNce, queries: torch.Tensor, documents: torch.Tensor, negatives: Any, marks: Any) -> Any:
        marked.append((queries.detach(), marks.teacher_queries, marks.teacher_documents))
        return usual(self, queries, documents, negatives, marks)

    monkeypatch.setattr(InfoNce, "forward", forward)
    encoder, _ = fitted(encoder={"dropout": 0.0}, training={"teacher": "base"})
    torch.testing.assert_close(marked[0][0], marked[0][1])
    assert not marked[0][1].requires_grad and marked[0][2].shape == marked[0][1].shape
    moved = [float((queries - teacher).norm()) for queries, teacher, _ in marked]
    assert moved[-1] > 2 * moved[1] > 0  # it stays, the encoder goes on
    assert not any("base" in name for name in encoder.state_dict())


def test_what_profilers_find_lies_in_the_work_folder(fitted: Callable[..., Any], tmp_path: Path):
    fitted(trainer={"profiler": "simple"}, training={"max_steps": 2})
    (report,) = (tmp_path / "work").rglob("*profile*.txt")
    assert "optimizer_step" in report.read_text(encoding="utf-8")
