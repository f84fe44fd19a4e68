"""A dual encoder of coderet as a module of sentence-transformers: a copy of this file lies in each saved encoder.

>>> model = SentenceTransformer("models/retrievers/nbow/encoder", trust_remote_code=True)
>>> model.encode_query(["sort a list"]), model.encode_document(["def sort(a): ..."])

Where coderet is installed it computes; elsewhere the modules of it that lie in the folder `code` do. A text is read as
a document unless the task is `query`, which `encode_query` says.
"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import torch
from sentence_transformers.base.modules.input_module import InputModule

FILES = ("encoder.json", "tokenizer.json", "weights.safetensors")


class CoderetEncoder(InputModule):
    """encoder: a `coderet.encoders.base.DualEncoder`, which is trained on if the model is."""

    forward_kwargs = {"task"}  # noqa: RUF012

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.tokenizer = encoder.tokenizer

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, task: str | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Token ids and mask, both (B, T), of texts as documents, or as queries if that is the task."""
        role = "query" if task == "query" else "document"
        texts = [(prompt or "") + str(each) for each in inputs]
        tokens = self.encoder.tokens(pa.array(texts, pa.large_string()), role)
        ids, mask = tokens.padded(np.arange(len(tokens)))
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask), "task": role}

    def forward(self, features: dict[str, Any], task: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Adds `sentence_embedding` (B, dim) float32."""
        role = features.get("task") or task or "document"
        mask = features["attention_mask"].bool()
        features["sentence_embedding"] = self.encoder(role, features["input_ids"], mask)
        return features

    @property
    def max_seq_length(self) -> int:
        """Tokens of a document; a query may have another limit."""
        return int(self.encoder.settings["max_document_tokens"])

    def get_embedding_dimension(self) -> int:
        return int(self.encoder.dim)

    def get_config_dict(self) -> dict[str, Any]:
        return dict(self.encoder.settings)

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        self.encoder.save(Path(output_path))

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        init_defaults: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """The encoder in a folder or in a repository of the hub."""
        where = (token, cache_folder, revision, local_files_only)
        found = [cls.load_file_path(model_name_or_path, name, subfolder, *where) for name in FILES]
        missing = [name for name, path in zip(FILES, found, strict=True) if path is None]
        if missing:
            raise FileNotFoundError(f"{model_name_or_path} holds no encoder of coderet: it lacks {', '.join(missing)}")
        _make_importable(cls.load_dir_path(model_name_or_path, "code", *where))
        return cls(importlib.import_module("coderet.encoders.base").DualEncoder.load(Path(str(found[0])).parent))


def _make_importable(code: str | None) -> None:
    """Let coderet's modules be found in code where they are found nowhere else.

    Several models bring several copies, each with what it takes: the first is the package, the others add to it.
    """
    if code is None:
        return
    sys.path.append(code)
    for name in ("coderet", "coderet.encoders"):
        place = str(Path(code, *name.split(".")))
        package = importlib.import_module(name)
        if place not in package.__path__:
            package.__path__.append(place)
