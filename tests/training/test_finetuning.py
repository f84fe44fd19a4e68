"""What a run is made of, and a whole run from a user's pairs to a registered model: see test_finetune_script."""

import json
from pathlib import Path

import pytest

from coderet import params
from coderet.corpora import pins
from coderet.corpora.sources import SourceError
from coderet.records import DataError
from coderet.registry import BadValue
from coderet.training import finetuning

ROOT = Path(__file__).parents[2]
PARAMS = params.read(ROOT / "params.yaml")


def pairs(path: Path, count: int = 60) -> Path:
    names = ["sort", "open", "close", "merge", "split"]
    rows = [
        {"query": f"{names[i % 5]} the thing number {i}", "code": f"def {names[i % 5]}_{i}(thing): return {i}"}
        for i in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_base_is_a_retriever_of_params_a_folder_or_a_hub_s(tiny_model: Path):
    assert finetuning.base_encoder("nbow", PARAMS) == dict(PARAMS.retrievers["nbow"].fit["encoder"])
    source = finetuning.base_encoder(str(tiny_model), PARAMS)["source"]
    assert source == f"file:{tiny_model}#sha256={pins.digest(tiny_model)}"
    commit = "0123456789" * 4
    assert finetuning.base_encoder(f"me/coder@{commit}", PARAMS)["source"] == f"hub:me/coder@{commit}"


@pytest.fixture
def tiny_model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path / "model"


def test_what_is_no_base_is_told(tiny_model: Path, monkeypatch: pytest.MonkeyPatch):
    from huggingface_hub import constants

    with pytest.raises(DataError, match=r"has no config\.json .*Did you mean its folder model"):
        finetuning.base_encoder(str(tiny_model.parent), PARAMS)
    with pytest.raises(DataError, match=r"no retriever of params.yaml. Did you mean minilm"):
        finetuning.base_encoder("minilmm", PARAMS)
    with pytest.raises(DataError, match=r"retrievers.bm25 has no encoder to train"):
        finetuning.base_encoder("bm25", PARAMS)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(SourceError, match=r"me/coder could not be asked for at http://127.0.0.1:9"):
        finetuning.base_encoder("me/coder", PARAMS)


def test_the_params_of_a_run_are_whole_and_name_what_is_compared(tiny_model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tiny_model.parent)
    encoder = finetuning.base_encoder(str(tiny_model), PARAMS)
    run = finetuning.write_run(ROOT / "params.yaml", encoder, pairs(Path("p.jsonl")), "mine", seed=1)
    read = params.read(run.folder / "params.yaml")
    assert list(run.systems) == ["bm25-code", "base", "mine"] and read.grid.trained == ("mine",)
    assert (run.folder / read.code / "train" / "fit.py").exists()
    assert read.retrievers["mine"].fit["batches"]["size"] == 16 and len(read_pairs(run, "train")) == 48
    assert read.retrievers["base"].fit["encoder"] == encoder
    scripts = [step[0] for step in run.steps]
    assert scripts[0] == "train/fit.py" and scripts[-3:] == ["eval/compare.py", "eval/card.py", "eval/log.py"]
    assert all((ROOT / script).exists() for script in scripts)


@pytest.mark.parametrize("name", ["../mine", "my model", "base", "bm25-code"])
def test_a_name_that_cannot_be_is_refused_before_anything_is_written(
    name: str, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tiny_model.parent)
    encoder, own = finetuning.base_encoder(str(tiny_model), PARAMS), pairs(Path("p.jsonl"))
    there = set(tiny_model.parent.rglob("*"))
    with pytest.raises(BadValue, match=r"NAME is .*; wanted letters, .* and neither base nor bm25-code"):
        finetuning.write_run(ROOT / "params.yaml", encoder, own, name, seed=1)
    assert set(tiny_model.parent.rglob("*")) == there


def read_pairs(run: finetuning.Run, side: str):
    from coderet import paths
    from coderet.corpora import store

    return store.read_pairs(run.folder / paths.PAIRS / f"{side}.parquet")


def test_a_step_that_fails_ends_the_run(tmp_path: Path):
    (tmp_path / "bad.py").write_text("raise SystemExit(3)")
    (tmp_path / "worse.py").write_text("raise AssertionError('not to be reached')")
    run = finetuning.Run("x", tmp_path, [], [("bad.py", "x"), ("worse.py",)])
    with pytest.raises(finetuning.StepFailed, match=r"bad.py x ended with 3; what was done is kept"):
        finetuning.carry_out(run, tmp_path, "off")
