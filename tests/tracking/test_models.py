"""The encoder is a stand-in here, a table of hashes: what is tested is the way into the registry and out again."""

import hashlib

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
