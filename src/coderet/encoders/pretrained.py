"""Any model folder of transformers or sentence-transformers as an encoder, as it is: inference only.

What a sentence-transformers folder says of itself (pooling, normalisation, prompts, length) is the default; each of
these can be set instead. Vectors are pooled and normalised in float32 whatever the precision of the model.

A checkpoint that brings code of its own (auto_map in its config.json) is never run without being asked for: see
`remote_code`. Weights that a model lacks are an error, for transformers would make them up.

Texts are always padded on the right, with the real tokens numbered from the first place on, so that models of either
padding habit see each text as if it stood alone.
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from coderet.corpora import sources
from coderet.encoders import encoding, exporting, identifiers, remote_code, sentence_folder
from coderet.encoders import settings as settings_file
from coderet.encoders.encoding import Role
from coderet.encoders.pooling import POOLINGS
from coderet.encoders.tokenizer import Tokens, fast_content, truncated
from coderet.precision import computing_type
from coderet.records import DataError
from coderet.registry import check_range, nearest

MODEL = "model"  # the model's own files, in the folder of a saved encoder
BATCH_TOKENS = {"cpu": 4096, "cuda": 65_536}  # bounds the memory of a batch
UNLIMITED = 1_000_000  # tokenizers that know no limit give an absurd one
HEADS = ("pooler.",)  # weights that no vector is made of

Pooling = Literal["mean", "cls", "last", "max", "weightedmean"]


class Pretrained:
    """An encoder from a model folder.

    pooling: mean, cls, last, max, weightedmean. max_tokens: marks and prefix included. normalise: vectors of length 1.
    precision: fp32, bf16, or auto, which is bf16 where the processor computes in it and fp32 elsewhere. truncate_dim:
    only the first so many dimensions are kept, before normalisation. marks_before, marks_after: the tokens put around
    each text, by name, in the place of the tokenizer's own. trust_remote_code: run the checkpoint's own code (true), or
    read it with transformers' class of that name (false). None leaves a setting to what the folder says. opened: the
    tokenizer and the model of the folder, for one who has opened them another way.
    """

    CACHED = True

    def __init__(
        self,
        model_folder: Path,
        opened: tuple[Any, Any] | None = None,
        *,
        pooling: Pooling | None = None,
        max_tokens: int | None = None,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        normalise: bool | None = None,
        precision: Literal["auto", "fp32", "bf16"] = "auto",
        truncate_dim: int | None = None,
        marks_before: Sequence[str] | None = None,
        marks_after: Sequence[str] | None = None,
        trust_remote_code: bool | None = None,
    ) -> None:
        said = usage(model_folder)
        self.model_folder, self._transformer = model_folder, said.model
        self._lower_case = said.lower_case
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._dtype = computing_type(precision, self._device)
        if opened is None:
            self.tokenizer, self.model = open_model(model_folder / said.model, self._dtype, trust_remote_code)
            self.model.to(self._device).eval()
        else:
            self.tokenizer, self.model = opened
        before, after = _marks(self.tokenizer)
        self._before = before if marks_before is None else self._named(marks_before)
        self._after = after if marks_after is None else self._named(marks_after)
        size = int(self.model.config.hidden_size)
        self.dim = size if truncate_dim is None else truncate_dim
        if not 1 <= self.dim <= size:
            raise DataError(f"truncate_dim is {truncate_dim}; this model has {size} dimensions")
        self.settings: dict[str, Any] = {
            "kind": "pretrained",
            "pooling": said.pooling if pooling is None else pooling,
            "max_tokens": self._limit(max_tokens, said.max_tokens),
            "query_prefix": said.query_prefix if query_prefix is None else query_prefix,
            "document_prefix": said.document_prefix if document_prefix is None else document_prefix,
            "normalise": said.normalise if normalise is None else normalise,
            "precision": precision,
            "truncate_dim": truncate_dim,
        }
        rare = {"marks_before": marks_before, "marks_after": marks_after, "trust_remote_code": trust_remote_code}
        self.settings |= {name: value for name, value in rare.items() if value is not None}
        if self.settings["pooling"] not in POOLINGS:
            raise DataError(
                f"pooling is {pooling!r}; known: {', '.join(POOLINGS)}.{nearest(self.settings['pooling'], POOLINGS)}"
            )
        self._keep = {role: self._prefix_tokens(self.settings[f"{role}_prefix"]) for role in ("query", "document")}

    @classmethod
    def prepare(
        cls,
        work: Path,
        *,
        source: str,
        folder: str = ".",
        pooling: Pooling | None = None,
        max_tokens: int | None = None,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        normalise: bool | None = None,
        precision: Literal["auto", "fp32", "bf16"] = "auto",
        truncate_dim: int | None = None,
        marks_before: Sequence[str] | None = None,
        marks_after: Sequence[str] | None = None,
        trust_remote_code: bool | None = None,
        code_source: str | None = None,
        split_identifiers: bool = False,
    ) -> "Pretrained":
        """The encoder of a pinned source, which `fetched_model` fetches into work."""
        return cls(
            fetched_model(source, folder, work, code_source, split_identifiers),
            pooling=pooling,
            max_tokens=max_tokens,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
            normalise=normalise,
            precision=precision,
            truncate_dim=truncate_dim,
            marks_before=marks_before,
            marks_after=marks_after,
            trust_remote_code=trust_remote_code,
        )

    def save(self, folder: Path) -> None:
        """Write settings and a copy of the model's files into folder, and what tells sentence-transformers of them."""
        settings_file.write(folder, self.settings)
        shutil.copytree(self.model_folder, folder / MODEL)
        self.describe(folder)

    def describe(self, folder: Path) -> None:
        """Tell sentence-transformers how the model that lies in folder is used.

        Marks of one's own cannot be told there: such a folder is coderet's alone.
        """
        said = self.settings
        if "marks_before" in said or "marks_after" in said:
            return
        exporting.describe_transformer(
            folder,
            (Path(MODEL) / self._transformer).as_posix(),
            pooling=said["pooling"],
            dimensions=int(self.model.config.hidden_size),
            kept=self.dim,
            normalise=said["normalise"],
            max_tokens=said["max_tokens"],
            lower_case=self._lower_case,
            query_prompt=said["query_prefix"],
            document_prompt=said["document_prefix"],
        )

    @classmethod
    def load(cls, folder: Path) -> "Pretrained":
        """The encoder that `save` wrote; DataError if a file is missing or cut short."""
        settings = settings_file.read(folder)
        settings.pop("kind")
        return cls(folder / MODEL, **settings)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the settings, every file of the model, and the precision and kind of device that compute.

        The file that `save` may write anew for sentence-transformers is left out: what it says is in the settings.
        """
        digest = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode())
        digest.update(f"{self._dtype} {self._device} {self._lower_case}".encode())
        files = {path for path in self.model_folder.rglob("*") if path.is_file() and path.name != exporting.LENGTHS}
        for path in sorted(files):
            digest.update(path.relative_to(self.model_folder).as_posix().encode() + b"\0")
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    @property
    def fill(self) -> int:
        """The token id that stands where a text has ended."""
        return int(self.tokenizer.pad_token_id or 0)

    @property
    def parameters_count(self) -> int:
        """Numbers in the model."""
        return sum(weights.numel() for weights in self.model.parameters())

    def tokens(self, texts: pa.Array | pa.ChunkedArray, role: Role, limit: int | None = None) -> Tokens:
        """What the model reads of texts, and how many of them were cut; limit: in the place of max_tokens."""
        content = fast_content(
            self.tokenizer, pc.utf8_lower(texts) if self._lower_case else texts, self.settings[f"{role}_prefix"]
        )
        limit = self.settings["max_tokens"] if limit is None else limit
        return truncated(content, limit, self._before, self._after, keep=self._keep[role])

    def pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        """Vectors (B, dim) float32 of what the model makes of tokens, (B, T, D) under a bool mask (B, T)."""
        vectors = POOLINGS[self.settings["pooling"]](states.float(), mask)[:, : self.dim]
        return normalize(vectors, dim=1) if self.settings["normalise"] else vectors

    def encode_queries(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        return self._encode(texts, "query")

    def encode_documents(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        return self._encode(texts, "document")

    def _encode(self, texts: pa.Array | pa.ChunkedArray, role: Role) -> np.ndarray:
        tokens = self.tokens(texts, role)
        vectors = np.empty((len(tokens), self.dim), dtype=np.float32)
        with torch.inference_mode():
            for rows in encoding.batches(tokens.lengths, BATCH_TOKENS[self._device]):
                ids, mask = (
                    torch.from_numpy(each).to(self._device)
                    for each in tokens.padded(rows, encoding.LENGTH_STEP, self.fill)
                )
                states = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
                vectors[rows] = self.pooled(states, mask).cpu().numpy()
        return vectors

    def _prefix_tokens(self, prefix: str) -> int:
        return len(fast_content(self.tokenizer, pa.array([""], pa.large_string()), prefix).ids)

    def _named(self, marks: Sequence[str]) -> list[int]:
        """The ids of tokens, each of which the vocabulary must have."""
        known = self.tokenizer.get_vocab()
        for mark in marks:
            if mark not in known:
                raise DataError(f"{mark!r} is no token of {self.model_folder.name}.{nearest(mark, known)}")
        return [int(known[mark]) for mark in marks]

    def _places(self) -> int | None:
        """How many tokens the model has positions for: RoBERTa's begin behind that of its padding."""
        places = getattr(self.model.config, "max_position_embeddings", None)
        positions = getattr(getattr(self.model, "embeddings", None), "position_embeddings", None)
        padding = getattr(positions, "padding_idx", None)
        return places if places is None or padding is None else places - padding - 1

    def _limit(self, asked: int | None, said: int | None) -> int:
        """What was asked, else what the folder says, else what the tokenizer and the model bear."""
        if asked is not None:
            check_range("max_tokens", asked, len(self._before) + len(self._after) + 1)
        places = self._places()
        known = [limit for limit in (self.tokenizer.model_max_length, places) if limit and limit < UNLIMITED]
        limit = asked or said or (min(known) if known else None)
        if limit is None:
            raise DataError(f"{self.model_folder} names no limit of tokens; set max_tokens")
        if places is not None and limit > places:
            raise DataError(f"max_tokens is {limit}, but the model has {places} places")
        return int(limit)


def fetched_model(
    source: str, folder: str, work: Path, code_source: str | None = None, split_identifiers: bool = False
) -> Path:
    """The model folder of a pinned source (a spec of `corpora.sources`), fetched into work; folder: where in it.

    code_source: the pinned source of the repository that its code lies in, where that is another. split_identifiers:
    its tokenizer is made to read names as words (`identifiers`).
    """
    sources.fetch([source] if code_source is None else [source, code_source], work)
    model_folder = work / sources.parse(source).name / folder
    if not model_folder.is_dir():
        raise DataError(f"{source} has no folder {folder}; wanted that of a model, with its config.json")
    if code_source is not None:
        remote_code.bring(work / sources.parse(code_source).name, model_folder)
    return identifiers.split(model_folder, work / "split" / model_folder.name) if split_identifiers else model_folder


def usage(model_folder: Path) -> sentence_folder.Usage:
    """`sentence_folder.usage`; DataError also if there is no such folder."""
    if not model_folder.is_dir():
        raise DataError(f"there is no model folder {model_folder}")
    return sentence_folder.usage(model_folder)


def open_model(folder: Path, dtype: torch.dtype, trust: bool | None, **options: Any) -> tuple[Any, Any]:
    """The tokenizer and the model in folder; DataError unless both are whole and of a kind that is read here.

    options: of transformers' `from_pretrained`, such as how attention is computed.
    """
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    remote_code.check(folder, trust)
    try:
        with remote_code.runnable(trust):
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=bool(trust))
            model, loaded = AutoModel.from_pretrained(
                folder,
                dtype=dtype,
                local_files_only=True,
                trust_remote_code=bool(trust),
                output_loading_info=True,
                **(options | ({"attn_implementation": "eager"} if trust else {})),  # all that such code is sure to know
            )
            if trust:
                remote_code.compute_buffers(model)
    except Exception as error:  # transformers raises whatever a broken file, or a checkpoint's code, makes of itself
        raise DataError(
            f"{folder} does not hold a whole model that transformers reads: {error}"
            + (f". {remote_code.ADVICE}" if trust else "")
        ) from error
    missing = sorted(name for name in loaded["missing_keys"] if not name.startswith(HEADS))
    if missing:
        raise DataError(
            f"{folder} lacks {len(missing)} weights of a {type(model).__name__}, such as {missing[0]}: it is not "
            "whole, or its config.json names another architecture than its weights are of"
        )
    files = set(tokenizer.vocab_files_names.values())
    if not trust and not any((folder / name).is_file() for name in files):  # transformers makes up an empty one
        raise DataError(f"{folder} has no tokenizer; wanted {' or '.join(sorted(files))}: fetch the whole model folder")
    if not tokenizer.is_fast and not trust:
        raise DataError(f"{folder} has a tokenizer without a fast version, which is not supported")
    if getattr(model.config, "is_encoder_decoder", False):
        raise DataError(f"{folder} is an encoder-decoder; wanted a model that is one stack")
    return tokenizer, model


def _marks(tokenizer: Any) -> tuple[Sequence[int], Sequence[int]]:
    """The ids that tokenizer puts before and after every text."""
    bare, whole = (tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True))
    for start in range(len(whole) - len(bare) + 1):
        if whole[start : start + len(bare)] == bare:
            return whole[:start], whole[start + len(bare) :]
    raise DataError(f"the tokenizer turns one letter into {bare} and, with its marks, into {whole}: no marks found")
