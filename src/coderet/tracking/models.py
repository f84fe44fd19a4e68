"""Trained encoders in MLflow's model registry, where an alias names the one in use.

What is registered is one folder three times over: coderet's, sentence-transformers' and MLflow's own, with its card.
`mlflow.pyfunc.load_model("models:/<name>@champion").predict(texts)` gives vectors, wherever coderet is installed; the
parameter `side` says whether texts are queries (the default) or documents. MLflow loads the folder through this module.
"""

import hashlib
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

from coderet.tracking import server

ALIAS = "champion"
CARD, CARD_TAG = "README.md", "card"


def register(
    name: str, folder: Path, run_id: str, *, card: str = "", alias: str = ALIAS, uri: str | None = None
) -> str:
    """The version of registered model `name` that holds folder's encoder; made if no version does. alias moves there.

    folder is what `encoders.load` reads; run_id the system's run, which keeps the files. card goes along as README.md,
    in the place of folder's; another one replaces it and makes no version. Raises as `log` does.
    """
    client, _ = server.connect(uri)
    from mlflow.exceptions import MlflowException

    contents = _contents(folder)
    try:
        client.create_registered_model(name, description="A trained code retriever's encoder: text to vectors")
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    versions = client.search_model_versions(f"name = '{name}'")
    version = next((each for each in versions if each.tags.get("contents") == contents), None)
    place = f"encoder-{contents[:12]}"  # a run may get several, and earlier versions keep theirs
    tags = {"contents": contents, CARD_TAG: hashlib.sha256(card.encode()).hexdigest()}
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch, "encoder")
        if version is None:
            _save(folder, model)
            if card:
                (model / CARD).write_text(card, encoding="utf-8")
            client.log_artifacts(run_id, str(model), place)
            source = f"{client.get_run(run_id).info.artifact_uri}/{place}"
            version = client.create_model_version(name, source, run_id, tags=tags)
        elif card and version.tags.get(CARD_TAG) != tags[CARD_TAG]:
            Path(scratch, CARD).write_text(card, encoding="utf-8")
            client.log_artifact(version.run_id, str(Path(scratch, CARD)), place)
            client.set_model_version_tag(name, version.version, CARD_TAG, tags[CARD_TAG])
    client.set_registered_model_alias(name, alias, version.version)
    return str(version.version)


def _save(folder: Path, model: Path) -> None:
    import mlflow.pyfunc
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema, TensorSpec
    from numpy import dtype

    signature = ModelSignature(
        inputs=Schema([ColSpec("string")]),
        outputs=Schema([TensorSpec(dtype("float32"), (-1, -1))]),
        params=ParamSchema([ParamSpec("side", "string", "queries")]),
    )
    with warnings.catch_warnings():
        # An example would run the model, which takes longer than all else here; the signature says what it takes.
        warnings.filterwarnings("ignore", ".*An input example was not provided")
        mlflow.pyfunc.save_model(
            str(model),
            loader_module=__name__,
            pip_requirements=["coderet"],
            signature=signature,
        )
    # Not as MLflow's data_path, which would be a folder within: here all three find their files at the top.
    shutil.copytree(folder, model, dirs_exist_ok=True)


def _load_pyfunc(path: str) -> "ServedEncoder":
    """MLflow's hook: the model in the folder that `register` made."""
    from coderet import encoders

    return ServedEncoder(encoders.load(Path(path)))


class ServedEncoder:
    """An encoder as MLflow calls it."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """(N, dim) float32 of the texts in the only column of a frame."""
        import pyarrow as pa

        side = (params or {}).get("side", "queries")
        if side not in ("queries", "documents"):
            raise ValueError(f"side is {side!r}; wanted queries or documents")
        texts = pa.chunked_array([pa.array(model_input.iloc[:, 0].tolist(), pa.large_string())])
        return self.encoder.encode_queries(texts) if side == "queries" else self.encoder.encode_documents(texts)


def _contents(folder: Path) -> str:
    """A hash of all files but the card, which tells of the encoder and is no part of it."""
    whole = hashlib.sha256()
    for path in sorted(each for each in folder.rglob("*") if each.is_file() and each != folder / CARD):
        whole.update(path.relative_to(folder).as_posix().encode() + b"\0" + str(path.stat().st_size).encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(2**20):
                whole.update(block)
    return whole.hexdigest()
