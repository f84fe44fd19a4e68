"""Dual encoders that are trained here: a tower for queries, a tower for documents, and the tokenizer both read with.

A tower is an architecture; both sides have the same, or of kind `mixed` each its own. Everything around it is the same
for all: prefixes, marks, length limits, normalisation, batches, saving and loading. A saved encoder is a folder of
three files: `encoder.json` (settings), `tokenizer.json` and `weights.safetensors`; what lies beside them makes it a
folder of sentence-transformers too (see `exporting`).
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import normalize

from coderet import registry
from coderet.encoders import MIXED, TOWERS, TRAINED, encoding, exporting
from coderet.encoders import settings as settings_file
from coderet.encoders import tokenizer as tokenizers
from coderet.encoders.encoding import Role
from coderet.encoders.tokenizer import BEGIN, END, SPECIAL, Tokenizer, Tokens, truncated
from coderet.records import DataError

TOKENIZER, WEIGHTS = "tokenizer.json", "weights.safetensors"
SIDES: tuple[Role, ...] = ("query", "document")
BATCH_TOKENS = 65_536  # bounds the memory of a batch; vectors do not depend on it


class Tower(nn.Module):
    """What a new architecture implements: token ids (B, T) int64 and a mask (B, T) bool to vectors (B, dim) float32.

    The mask is true on real tokens; padding may lie on either side; a text may have no token at all. The first argument
    of the constructor is the number of token ids, the others are keyword-only: they are the architecture's params.
    longest: tokens of the longest text that it can read, None if there is no limit.
    """

    longest: int | None = None

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        raise NotImplementedError

    def start_from(self, weights: np.ndarray) -> None:
        """Begin training from token weights (V,), each in (0, 1); architectures that weigh no tokens do nothing."""


class DualEncoder(nn.Module):
    """Two towers of one kind, or one for both sides if tied; of kind `mixed`, a tower of its own kind for each side.

    A text is read as prefix, then itself; marked puts a begin and an end mark around; what is over the side's limit of
    tokens is cut from the end of the text, never from prefix or marks. An empty text has the zero vector where nothing
    marks it. settings holds the constructor's arguments under their names, `architecture` those of the towers: of kind
    `mixed` a map for `query` and one for `document`, each with its `kind`. BadValue for sides whose vectors differ in
    dimension, and for a limit of tokens that is more than a tower can read.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        kind: str,
        architecture: Mapping[str, Any],
        tied: bool = True,
        max_query_tokens: int = 64,
        max_document_tokens: int = 256,
        query_prefix: str = "",
        document_prefix: str = "",
        marked: bool = False,
        normalise: bool = True,
    ) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.settings: dict[str, Any] = {
            "kind": kind,
            "architecture": dict(architecture),
            "tied": tied,
            "max_query_tokens": max_query_tokens,
            "max_document_tokens": max_document_tokens,
            "query_prefix": query_prefix,
            "document_prefix": document_prefix,
            "marked": marked,
            "normalise": normalise,
        }
        sides = {side: architecture[side] if kind == MIXED else {"kind": kind, **architecture} for side in SIDES}
        self.query_tower: Tower = _tower(len(tokenizer), sides["query"])
        self.document_tower: Tower = self.query_tower if tied else _tower(len(tokenizer), sides["document"])
        self.dim = self.query_tower.dim
        self._check_towers()

    def forward(self, role: Role, ids: Tensor, mask: Tensor) -> Tensor:
        """Vectors (B, dim) of one side, of length 1 if the encoder normalises; a zero vector stays zero."""
        vectors = (self.query_tower if role == "query" else self.document_tower)(ids, mask)
        return normalize(vectors.float(), dim=1) if self.settings["normalise"] else vectors.float()

    @property
    def marks(self) -> list[int]:
        """Token ids that say nothing of a text, that of what is not known among them."""
        return list(range(len(SPECIAL)))

    def tokens(self, texts: pa.Array | pa.ChunkedArray, role: Role) -> Tokens:
        """What the tower of role reads of texts, and how many of them were cut."""
        prefix = self.settings[f"{role}_prefix"]
        content = self.tokenizer.content(texts)
        keep = 0
        if prefix:
            before = self.tokenizer.content(pa.array([prefix], pa.large_string()))
            keep = len(before.ids)
            content = content.after(before.ids)
        marks = ([BEGIN], [END]) if self.settings["marked"] else ([], [])
        return truncated(content, self.settings[f"max_{role}_tokens"], *marks, keep=keep)

    def encode_queries(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        return self.encode_tokens(self.tokens(texts, "query"), "query")

    def encode_documents(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        return self.encode_tokens(self.tokens(texts, "document"), "document")

    @classmethod
    def build(cls, tokenizer: Tokenizer, settings: Mapping[str, Any], where: str = "fit.encoder") -> "DualEncoder":
        """A new encoder from one flat map: `kind`, this constructor's arguments and those of the kind's tower.

        Of kind `mixed` it has, in place of a tower's arguments, a map under `query` and one under `document`: a kind
        and the arguments of its tower. where is the place in params.yaml that settings come from; UnknownName for a
        key that neither knows.
        """
        given = dict(settings)
        kind = str(given.pop("kind", None))
        registry.load(TRAINED, kind, "encoders that are trained", f"{where}.kind")
        own = set(registry.named_arguments(cls)) - {"kind", "architecture"}
        theirs = set(SIDES) if kind == MIXED else set(registry.named_arguments(_architecture(kind, where)))
        _check_known(given, own | theirs, kind, where)
        around = {key: value for key, value in given.items() if key in own}
        architecture = {key: value for key, value in given.items() if key in theirs}
        registry.check_types(cls, around, where)
        for side in SIDES:
            registry.check_range(f"{where}.max_{side}_tokens", around.get(f"max_{side}_tokens", 1), 1)
        if kind != MIXED:
            registry.check_types(_architecture(kind, where), architecture, where)
            return cls(tokenizer, kind=kind, architecture=architecture, **around)
        if around.setdefault("tied", False):
            raise registry.BadValue(f"{where}.tied is true; two kinds of tower cannot be one: leave it out")
        for side in SIDES:
            _check_side(architecture.get(side), f"{where}.{side}")
        return cls(tokenizer, kind=kind, architecture=architecture, **around)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of weights, tokenizer and settings. Ask for it once training is over: it is computed once."""
        digest = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode())
        digest.update(json.dumps(self.tokenizer.description(), sort_keys=True).encode())
        for name, weights in self._weights().items():
            digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
            digest.update(weights.cpu().numpy().data)
        return digest.hexdigest()

    @property
    def parameters_count(self) -> int:
        """Numbers that were learned, tied ones once."""
        return sum(weights.numel() for weights in self._weights().values())

    def save(self, folder: Path) -> None:
        """Write the three files and what sentence-transformers takes into folder, which is made if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self._weights(), folder / WEIGHTS)
        tokenizers.save(self.tokenizer, folder / TOKENIZER)
        settings_file.write(folder, self.settings)
        exporting.ship_code(folder, {type(each).__module__ for each in self.modules()})

    @classmethod
    def load(cls, folder: Path) -> "DualEncoder":
        """The encoder that `save` wrote; DataError if a file is missing, cut short or does not fit the others."""
        encoder = cls(tokenizers.load(folder / TOKENIZER), **settings_file.read(folder))
        try:
            weights = load_file(folder / WEIGHTS)
            encoder.load_state_dict(encoder._both_sides(weights))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise DataError(
                f"{folder / WEIGHTS} does not hold the weights of this encoder ({error}); train it again"
            ) from error
        return encoder.eval()

    def encode_tokens(self, tokens: Tokens, role: Role) -> np.ndarray:
        """(N, dim) float32 of texts whose `tokens` somebody wanted to see first."""
        vectors = np.empty((len(tokens), self.dim), dtype=np.float32)
        device = next(self.parameters()).device
        was_training = self.training
        self.eval()
        with torch.inference_mode():
            for rows in encoding.batches(tokens.lengths, BATCH_TOKENS):
                ids, mask = tokens.padded(rows, encoding.LENGTH_STEP)
                block = self(role, torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device))
                vectors[rows] = block.cpu().numpy()
        self.train(was_training)
        return vectors

    def _check_towers(self) -> None:
        query, document = self.query_tower.dim, self.document_tower.dim
        if query != document:
            raise registry.BadValue(
                f"encoder.query.dim is {query} and encoder.document.dim {document}; wanted the same, for their vectors "
                "are compared"
            )
        for side, tower in (("query", self.query_tower), ("document", self.document_tower)):
            limit, longest = self.settings[f"max_{side}_tokens"], tower.longest
            if longest is not None and limit > longest:
                raise registry.BadValue(
                    f"encoder.max_{side}_tokens is {limit}, but its tower has positions for {longest} tokens; lower it "
                    "or raise positions"
                )

    def _weights(self) -> dict[str, Tensor]:
        """Every learned number once, by name: the document tower's only if it is another."""
        return {
            name: weights.detach().contiguous()
            for name, weights in self.state_dict().items()
            if not (self.settings["tied"] and name.startswith("document_tower."))
        }

    def _both_sides(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if not self.settings["tied"]:
            return dict(weights)
        own = cast(dict[str, Tensor], dict(weights))
        return own | {name.replace("query_tower.", "document_tower.", 1): each for name, each in own.items()}


def _architecture(kind: str, where: str) -> type[Tower]:
    made: type[Tower] = registry.load(TOWERS, kind, "architectures", f"{where}.kind")
    return made


def _tower(vocabulary: int, settings: Mapping[str, Any]) -> Tower:
    """A new tower from its kind and its arguments."""
    arguments = dict(settings)
    made = _architecture(arguments.pop("kind"), "encoder")
    return made(vocabulary, **registry.fit_arguments(made, arguments, "encoder"))


def _check_side(settings: Any, where: str) -> None:
    """Whether one side of a mixed encoder is a kind and arguments of its tower."""
    if not isinstance(settings, Mapping):
        raise registry.BadValue(f"{where} is {settings!r}; wanted a mapping: a kind and its settings")
    kind = str(settings.get("kind"))
    tower = _architecture(kind, where)
    _check_known(settings, {"kind", *registry.named_arguments(tower)}, kind, where)
    registry.check_types(tower, settings, where)


def _check_known(given: Mapping[str, Any], known: set[str], kind: str, where: str) -> None:
    for key in given:
        if key not in known:
            raise registry.UnknownName(
                f"{where}.{key} is not a setting of {kind}; known settings: {', '.join(sorted(known))}."
                f"{registry.nearest(key, known)}"
            )
