"""Saved encoders as sentence-transformers reads them, in a process of its own, beside the vectors of coderet's."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from coderet import encoders
from coderet.encoders import MIXED, TOWERS, exporting
from coderet.encoders.base import DualEncoder
from coderet.encoders.pretrained import Pretrained
from coderet.encoders.static import Static, over_code_words
from coderet.encoders.tokenizer import train_bpe, train_words
from coderet.encoders.tuning import Tunable

TEXTS = pa.array(
    ["sort a list", "", "def binary_search(numbers): return the tree", "Sort " * 90, "in place: sortTheList"],
    pa.large_string(),
)
# What a process does in which coderet cannot be imported but from the folder of an encoder.
ALONE = """
import sys
sys.path = [each for each in sys.path if "coderet" not in each and not each.rstrip("/").endswith("src")]
sys.meta_path = [each for each in sys.meta_path if "editable" not in str(getattr(each, "__module__", each)).lower()]
import importlib.util
assert importlib.util.find_spec("coderet") is None
"""
ENCODE = """
import json, sys
import numpy as np
from sentence_transformers import SentenceTransformer
texts, out = json.loads(sys.argv[1]), {}
for folder in sys.argv[3:]:
    model = SentenceTransformer(folder, device="cpu", trust_remote_code=True, local_files_only=True)
    name = folder.rsplit("/", 1)[-1]
    for batch in (1, 5):
        out[f"{name} query {batch}"] = model.encode_query(texts, batch_size=batch)
        out[f"{name} document {batch}"] = model.encode_document(texts, batch_size=batch)
    out[f"{name} dim"] = np.array(model.get_embedding_dimension())
    out[f"{name} tokens"] = np.array(model.max_seq_length)
    model.save(folder + ".again", create_model_card=False)
code = sys.modules.get("coderet")
out["from"] = np.array(code.__file__ if code else "")
np.savez(sys.argv[2], **out)
"""
SETTINGS: dict[str, dict[str, Any]] = {
    "tied": {},
    "prefixed": {"query_prefix": "query: ", "marked": True, "max_query_tokens": 11, "max_document_tokens": 9},
    "separate": {"tied": False, "normalise": False},
}
PRETRAINED: dict[str, dict[str, Any]] = {
    "mean": {"normalise": True},
    "cls": {"pooling": "cls", "normalise": True, "max_tokens": 7, "query_prefix": "query: "},
    "last": {"pooling": "last", "normalise": False, "document_prefix": "passage: "},
    "max": {"pooling": "max", "normalise": True},
    "weighted": {"pooling": "weightedmean", "normalise": True, "truncate_dim": 5},
    "cut": {"normalise": False, "truncate_dim": 5},
}


def own(kind: str, settings: dict[str, Any], words: bool = False) -> DualEncoder:
    torch.manual_seed(1)
    tokenizer = (train_words if words else train_bpe)([TEXTS], 60, 1)
    return DualEncoder.build(tokenizer, {"kind": kind, "dim": 8, **settings}).eval()


def mixed() -> DualEncoder:
    torch.manual_seed(1)
    sides = {"query": {"kind": "attention", "dim": 8}, "document": {"kind": "nbow", "dim": 8}}
    return DualEncoder.build(train_bpe([TEXTS], 60, 1), {"kind": MIXED, **sides}).eval()


def tuned(model: Path, folder: Path) -> Tunable:
    """A model of sentence-transformers with other weights than those it began with."""
    Pretrained(model, precision="fp32", normalise=True).save(folder / "base")
    made = Tunable(folder / "base" / "model", precision="fp32", max_tokens=12, query_prefix="query: ")
    with torch.no_grad():
        for weights in made.parameters():
            weights += 0.01
    return made


def static() -> Static:
    tokenizer = over_code_words(train_bpe([TEXTS], 60, 1))
    return Static(tokenizer, torch.randn(60, 8, generator=torch.manual_seed(1)), max_tokens=9, code_words=True)


def encoded(folders: list[Path], place: Path) -> dict[str, np.ndarray]:
    """What sentence-transformers makes of TEXTS with the models in folders, in a process that has no coderet."""
    given = [json.dumps(TEXTS.to_pylist()), str(place), *map(str, folders)]
    environment = os.environ | {"HF_MODULES_CACHE": str(place.parent / "hub"), "HF_HUB_OFFLINE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", ALONE + ENCODE, *given],
        capture_output=True,
        text=True,
        cwd=place.parent,
        env=environment,
    )
    assert run.returncode == 0, run.stderr
    return dict(np.load(place))


def assert_same(encoder: Any, found: dict[str, np.ndarray], name: str, within: float = 1e-5) -> None:
    for batch in (1, 5):
        assert np.abs(found[f"{name} query {batch}"] - encoder.encode_queries(TEXTS)).max() < within
        assert np.abs(found[f"{name} document {batch}"] - encoder.encode_documents(TEXTS)).max() < within
    assert found[f"{name} dim"] == encoder.dim


@pytest.fixture(scope="module")
def towers(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, DualEncoder], Path, dict[str, np.ndarray]]:
    """Encoders of every kind that is trained here, their folder, and what a process without coderet makes of them."""
    root = tmp_path_factory.mktemp("towers")
    made = {f"nbow-{name}": own("nbow", settings) for name, settings in SETTINGS.items()}
    made |= {kind: own(kind, {}) for kind in TOWERS} | {"words": own("nbow", {"distinct": True}, words=True)}
    made |= {MIXED: mixed()}
    for name, encoder in made.items():
        encoder.save(root / name)
    return made, root, encoded([root / name for name in made], root / "vectors.npz")


def test_sentence_transformers_gives_the_vectors_of_every_architecture_where_coderet_is_not_installed(towers):
    made, root, found = towers
    assert str(found["from"]).startswith(str(root)) and set(TOWERS) <= set(made)
    for name, encoder in made.items():
        assert_same(encoder, found, name)


def test_where_coderet_is_installed_it_computes(towers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from sentence_transformers import SentenceTransformer
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path))
    made, root, _ = towers
    model = SentenceTransformer(str(root / "nbow-prefixed"), device="cpu", trust_remote_code=True)
    assert type(model[0].encoder) is DualEncoder
    assert np.abs(model.encode_query(TEXTS.to_pylist()) - made["nbow-prefixed"].encode_queries(TEXTS)).max() < 1e-5


def test_a_model_that_sentence_transformers_saved_again_is_the_same_encoder(towers):
    made, root, _ = towers
    for name, encoder in made.items():
        assert encoders.load(root / f"{name}.again").fingerprint == encoder.fingerprint


def test_only_the_code_that_an_encoder_takes_lies_in_its_folder(towers):
    _, root, _ = towers
    code = root / "nbow-tied" / exporting.CODE
    names = {path.relative_to(code / "coderet").as_posix() for path in code.rglob("*.py")}
    assert {"encoders/base.py", "encoders/nbow.py", "records.py"} <= names
    assert not {name for name in names if name.startswith(("corpora/", "training/")) or "pretrained" in name}


@pytest.fixture(scope="module")
def transformers(
    tiny_models: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path, dict[str, np.ndarray]]:
    root = tmp_path_factory.mktemp("transformers")
    made: dict[str, Any] = {
        name: Pretrained(tiny_models(), precision="fp32", **each) for name, each in PRETRAINED.items()
    }
    made |= {"tuned": tuned(tiny_models(), tmp_path_factory.mktemp("untuned")), "static": static()}
    for name, encoder in made.items():
        encoder.save(root / name)
    return made, root, encoded([root / name for name in made], root / "vectors.npz")


def test_sentence_transformers_gives_the_vectors_of_transformers_and_tables_without_any_code_of_ours(transformers):
    made, root, found = transformers
    assert str(found["from"]) == "" and not list(root.rglob("*.py"))
    for name in made:
        encoder = encoders.load(root / name)
        assert_same(encoder, found, name)
        if name != "static":  # a table itself has no limit; its tokenizer cuts
            assert found[f"{name} tokens"] == encoder.settings["max_tokens"]


def test_the_weights_of_a_transformer_are_written_once(transformers, tiny_models: Callable[..., Path]):
    _, root, _ = transformers
    size = (tiny_models() / "model.safetensors").stat().st_size
    files = [path for path in (root / "cls").rglob("*") if path.is_file() and path.stat().st_size >= size]
    assert files == [root / "cls" / "model" / "model.safetensors"]


def test_a_saved_transformer_has_the_fingerprint_it_had_before(transformers):
    made, root, _ = transformers
    for name in PRETRAINED:
        assert encoders.load(root / name).fingerprint == made[name].fingerprint


def test_a_model_folder_of_sentence_transformers_stays_byte_for_byte(
    tiny_models: Callable[..., Path], sentence_folder_of: Callable[..., None], tmp_path: Path
):
    shutil.copytree(tiny_models(), tmp_path / "base")
    sentence_folder_of(
        tmp_path / "base",
        {"pooling_mode": "mean"},
        ("Transformer", "Pooling", "Normalize"),
        sentence_bert_config={"max_seq_length": 9, "do_lower_case": False},
    )
    Pretrained(tmp_path / "base", precision="fp32").save(tmp_path / "saved")
    before, after = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "base", tmp_path / "saved" / "model")
    )
    assert before == after


def test_marks_of_ones_own_are_not_told_wrongly(tiny_models: Callable[..., Path], tmp_path: Path):
    Pretrained(tiny_models(), precision="fp32", marks_after=["[SEP]", "[SEP]"]).save(tmp_path / "saved")
    assert not (tmp_path / "saved" / "modules.json").exists()
