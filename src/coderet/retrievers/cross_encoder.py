"""Any cross-encoder of transformers or sentence-transformers, as it is: a query and a document read together.

The score is the logit of a model with one label, unsquashed: a sigmoid would turn large logits into ties. Of a model
with two labels it is the logit of label 1 less that of label 0, the log-odds of `relevant` by the habit of MS MARCO
models; models with more are refused, and so are folders without the weights of a classifier, whose scores would be
random.

On a processor every pair is read alone, so that its score depends on that pair only, bit for bit. Read in batches
(`batch_tokens`; always on a graphics processor), a pair's score moves with the pairs beside it: with 768 dimensions by
2e-6 in fp32 and by 0.02 in bf16, of a spread of 0.7.
"""

import hashlib
import json
import shutil
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging as transformers_logging

from coderet.corpora import sources
from coderet.encoders import encoding
from coderet.encoders.pretrained import BATCH_TOKENS, fetched_model
from coderet.encoders.tokenizer import Tokens
from coderet.precision import computing_type
from coderet.records import DataError
from coderet.registry import check_range

_MODEL = "model"
_SOME = 16  # tokens that every model takes: what a pair may have is set later, when reranking
_BATCH_TOKENS = {"cpu": 1, "cuda": BATCH_TOKENS["cuda"]}
_CUTS = {"longest-first": "longest_first", "document": "only_second"}


class CrossEncoder:
    """kind `cross-encoder`, from a model folder.

    max_tokens: of a pair, marks included. cut: where a pair is longer, `longest-first` takes from the longer side,
    token by token, as sentence-transformers does, and `document` from the document alone. precision: fp32, bf16, or
    auto, which is bf16 where the processor computes in it and fp32 elsewhere. batch_tokens: of pairs of one
    padded length that are read together; None is one pair at a time on a processor, 65,536 on a graphics processor.
    """

    def __init__(
        self,
        model_folder: Path,
        *,
        max_tokens: int = 512,
        cut: Literal["longest-first", "document"] = "longest-first",
        precision: Literal["auto", "fp32", "bf16"] = "auto",
        batch_tokens: int | None = None,
    ) -> None:
        self.model_folder = model_folder
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._dtype = computing_type(precision, self._device)
        self._tokenizer, self._model = _open(model_folder, self._dtype)
        self._model.to(self._device)
        if cut not in _CUTS:
            raise DataError(f"cut is {cut!r}; known: {', '.join(_CUTS)}")
        self._marks = self._tokenizer.num_special_tokens_to_add(pair=True)
        check_range("max_tokens", max_tokens, self._marks + 2)
        self._places: int | None = getattr(self._model.config, "max_position_embeddings", None)
        if self._places is not None and max_tokens > self._places:
            raise DataError(f"max_tokens is {max_tokens}, but the model has {self._places} places")
        self._budget = _BATCH_TOKENS[self._device] if batch_tokens is None else batch_tokens
        check_range("batch_tokens", self._budget, 1)
        self.settings: dict[str, Any] = {"max_tokens": max_tokens, "cut": cut, "precision": precision}

    @classmethod
    def prepare(cls, work: Path, *, source: str, folder: str = ".") -> "CrossEncoder":
        """The reranker of a pinned source (a spec of `corpora.sources`), fetched into work; folder: where in it."""
        return cls(fetched_model(source, folder, work), max_tokens=_SOME)

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        max_tokens: int = 512,
        cut: Literal["longest-first", "document"] = "longest-first",
        precision: Literal["auto", "fp32", "bf16"] = "auto",
        batch_tokens: int | None = None,
    ) -> "CrossEncoder":
        """The reranker that `save` wrote, with these settings; DataError if a file is missing or cut short."""
        return cls(folder / _MODEL, max_tokens=max_tokens, cut=cut, precision=precision, batch_tokens=batch_tokens)

    def save(self, folder: Path) -> None:
        """Write a copy of the model's files into folder."""
        shutil.copytree(self.model_folder, folder / _MODEL)

    @property
    def parameters(self) -> int:
        """Numbers in the model."""
        return sum(weights.numel() for weights in self._model.parameters())

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the model's files, the settings, and the precision, batches and kind of device that compute."""
        facts = [self.settings, str(self._dtype), self._device, self._budget, sources.digest(self.model_folder)]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def scores(self, queries: pa.ChunkedArray, documents: pa.ChunkedArray) -> np.ndarray:
        """(N,) float32 scores of the pairs of queries and documents, row by row; higher is better."""
        tokens, sides = self._tokens(queries.to_pylist(), documents.to_pylist())
        found = np.empty(len(tokens), np.float32)
        with torch.inference_mode():
            for rows in encoding.batches(tokens.lengths, self._budget):
                ids, mask = tokens.padded(rows, encoding.LENGTH_STEP, self._tokenizer.pad_token_id or 0)
                given = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
                if sides is not None:
                    given["token_type_ids"] = sides.padded(rows, encoding.LENGTH_STEP)[0]
                # What is padded beyond the model's last place holds no token.
                placed = {
                    name: torch.from_numpy(each[:, : self._places]).to(self._device) for name, each in given.items()
                }
                logits = self._model(**placed).logits.float()
                block = logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits[:, 0]
                found[rows] = block.cpu().numpy()
        return found

    def _tokens(self, queries: list[str], documents: list[str]) -> tuple[Tokens, Tokens | None]:
        """The ids of every pair, and which side each is of, where the model wants to know."""
        cut = self.settings["cut"]
        if cut == "document":
            self._check_room(queries)
        if not queries:
            return Tokens.of([]), None
        pairs = self._tokenizer(
            queries,
            documents,
            truncation=_CUTS[cut],
            max_length=self.settings["max_tokens"],
            return_attention_mask=False,
            verbose=False,
        )
        return Tokens.of(pairs["input_ids"]), Tokens.of(pairs["token_type_ids"]) if "token_type_ids" in pairs else None

    def _check_room(self, queries: list[str]) -> None:
        """DataError for a query that leaves no token to its documents."""
        room = self.settings["max_tokens"] - self._marks - 1
        distinct = list(dict.fromkeys(queries))
        found = self._tokenizer(distinct, add_special_tokens=False, verbose=False)["input_ids"] if distinct else []
        for query, ids in zip(distinct, found, strict=True):
            if len(ids) > room:
                raise DataError(
                    f"the query {query[:60]!r} has {len(ids)} tokens, which leaves no room for a document in "
                    f"{self.settings['max_tokens']}; raise max_tokens, or cut longest-first"
                )


def _open(folder: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    _check_modules(folder)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    level = transformers_logging.get_verbosity()  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, facts = AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=dtype, local_files_only=True, output_loading_info=True
        )
    except Exception as error:  # transformers raises whatever a broken file makes of itself
        raise DataError(f"{folder} does not hold a whole cross-encoder that transformers reads: {error}") from error
    finally:
        transformers_logging.set_verbosity(level)  # type: ignore[no-untyped-call]
    lacking = sorted({*facts["missing_keys"], *(str(each[0]) for each in facts["mismatched_keys"])})
    if lacking:
        raise DataError(
            f"{folder} lacks the weights {', '.join(lacking)}: scores would be random; wanted a model that was trained "
            "for sequence classification"
        )
    if model.config.num_labels not in (1, 2):
        raise DataError(
            f"{folder} has {model.config.num_labels} labels; wanted one (a logit) or two (not relevant, relevant)"
        )
    if not tokenizer.is_fast:
        raise DataError(f"{folder} has a tokenizer without a fast version, which is not supported")
    return tokenizer, model.eval()


def _check_modules(folder: Path) -> None:
    """DataError for no folder, one with code of its own, or one that is more than one transformer."""
    if not folder.is_dir():
        raise DataError(f"there is no model folder {folder}")
    config = folder / "config.json"
    if config.exists() and "auto_map" in config.read_text("utf-8"):
        raise DataError(
            f"{folder} brings code of its own, which is not run for rerankers; wanted a model of transformers"
        )
    listed = folder / "modules.json"
    if not listed.exists():
        return
    try:
        modules = [
            (each["path"], str(each["type"]).rsplit(".", 1)[-1]) for each in json.loads(listed.read_text("utf-8"))
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{listed} is no list of modules ({error}); fetch the model again") from error
    if modules != [("", "Transformer")]:
        raise DataError(
            f"{folder} is made of {', '.join(kind for _, kind in modules)}; wanted a Transformer in the folder itself: "
            "what comes after it would be left out"
        )
