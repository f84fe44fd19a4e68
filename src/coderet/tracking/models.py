"""Trained encoders in MLflow's model registry, where an alias names the one in use.

`mlflow.pyfunc.load_model("models:/<name>@champion").predict(texts)` gives vectors, wherever coderet is installed; the
parameter `side` says whether texts are queries (the default) or documents. MLflow loads the folder through this module.
"""

import hashlib
import tempfile
import warnings
from pathlib import Path
from typing import Any

from coderet.tracking import server

ALIAS = "champion"


def register(name: str, folder: Path, run_id: str, *, alias: str = ALIAS, uri: str | None = None) -> str:
    """The version of registered model `name` that holds folder's encoder; made if no version does. alias moves there.

    folder is what `encoders.load` reads; run_id the system's run, which keeps the files. Raises as `log` does.
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
    if version is None:
        place = f"encoder-{contents[:12]}"  # a run may get several, and earlier versions keep theirs
        with tempfile.TemporaryDirectory() as scratch:
            _save(folder, Path(scratch, "encoder"))
            client.log_artifacts(run_id, str(Path(scratch, "encoder")), place)
        source = f"{client.get_run(run_id).info.artifact_uri}/{place}"
        version = client.create_model_version(name, source, run_id, tags={"contents": contents})
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
            data_path=str(folder),
            pip_requirements=["coderet"],
            signature=signature,
        )


def _load_pyfunc(path: str) -> "ServedEncoder":
    """MLflow's hook: the model in the folder that `register` was given."""
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
    whole = hashlib.sha256()
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        whole.update(path.relative_to(folder).as_posix().encode() + b"\0" + str(path.stat().st_size).encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(2**20):
                whole.update(block)
    return whole.hexdigest()
