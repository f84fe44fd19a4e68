"""The encoder is a stand-in here, a table of hashes: what is tested is the way into the registry and out again."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from coderet import encoders, tracking


class HashEncoder:
    def __init__(self, dim):
        self.dim = dim

    def encode_queries(self, texts):
        digests = [hashlib.sha256(text.encode()).digest()[: self.dim] for text in texts.to_pylist()]
        return np.array([list(digest) for digest in digests], np.float32)

    def encode_documents(self, texts):
        return -self.encode_queries(texts)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "load", lambda path: HashEncoder(int((path / "dim").read_text())), raising=False)
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder" / "dim").write_text("4")
    return tmp_path / "encoder"


@pytest.fixture
def run_id(store):
    return tracking.log([tracking.Entry("nbow", "system")], uri=store).runs["system", "nbow"]


def test_a_registered_encoder_is_loaded_by_its_alias_and_encodes(folder, store, run_id, monkeypatch):
    import mlflow

    tracking.register("coderet-nbow", folder, run_id, uri=store)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    loaded = mlflow.pyfunc.load_model("models:/coderet-nbow@champion")
    queries = loaded.predict(["sort a list", "open a file"])
    assert queries.shape == (2, 4) and queries.dtype == np.float32
    assert np.array_equal(loaded.predict(["sort a list"], params={"side": "documents"}), -queries[:1])
    with pytest.raises(ValueError, match="wanted queries or documents"):
        loaded.predict(["x"], params={"side": "query"})


def test_the_same_encoder_is_one_version_and_another_one_takes_the_alias(folder, store, run_id, client):
    first = tracking.register("coderet-versions", folder, run_id, uri=store)
    assert tracking.register("coderet-versions", folder, run_id, uri=store) == first
    (folder / "dim").write_text("5")
    second = tracking.register("coderet-versions", folder, run_id, uri=store)
    assert second != first
    champion = client.get_model_version_by_alias("coderet-versions", "champion")
    assert str(champion.version) == second


def test_what_is_registered_is_the_folder_itself_with_its_card(folder, store, run_id, client, tmp_path):
    (folder / "README.md").write_text("of the fit stage")
    version = tracking.register("coderet-card", folder, run_id, card="# first", uri=store)
    assert tracking.register("coderet-card", folder, run_id, card="# second", uri=store) == version
    source = client.get_model_version("coderet-card", version).source
    place = source.rpartition("/")[2]
    there = Path(client.download_artifacts(run_id, place, str(tmp_path)))
    assert (there / "dim").read_text() == "4" and (there / "MLmodel").exists()
    assert (there / "README.md").read_text() == "# second"


def test_a_registered_model_is_one_of_sentence_transformers(store, run_id, client, tmp_path, monkeypatch):
    import mlflow
    import pyarrow as pa
    from sentence_transformers import SentenceTransformer
    from transformers import dynamic_module_utils

    from coderet.encoders.base import DualEncoder
    from coderet.encoders.tokenizer import train_words

    texts = ["sort a list", "open the file"]
    encoder = DualEncoder.build(train_words([pa.array(texts)], 20, 1), {"kind": "nbow", "dim": 4}).eval()
    encoder.save(tmp_path / "real")
    version = tracking.register("coderet-real", tmp_path / "real", run_id, uri=store)
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "code"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    place = client.get_model_version("coderet-real", version).source.rpartition("/")[2]
    (tmp_path / "there").mkdir()
    there = client.download_artifacts(run_id, place, str(tmp_path / "there"))
    wanted = encoder.encode_queries(pa.array(texts))
    assert np.array_equal(mlflow.pyfunc.load_model("models:/coderet-real@champion").predict(texts), wanted)
    model = SentenceTransformer(there, device="cpu", trust_remote_code=True)
    assert np.abs(model.encode_query(texts) - wanted).max() < 1e-5
