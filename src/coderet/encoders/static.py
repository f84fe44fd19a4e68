"""A text's vector is the mean of its tokens' vectors, out of one table: no network, thousands of texts a second.

Any folder of sentence-transformers' StaticEmbedding is read as it is, and one is written: `tokenizer.json` of the
`tokenizers` library and `model.safetensors` with the table. What tokens weigh is folded into their vectors: the mean's
length carries no meaning once it is normalised, so that a weighted mean and this one have the same direction.

Encoders that are distilled here (`training.distillation`) cut texts into code words first and these into pieces. A
word is then always cut alike, so that its pieces are remembered, which is what makes them fast; the same cut is written
into `tokenizer.json` as rules of that library, for whoever reads it there.
"""

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.nn.functional import embedding_bag, normalize

from coderet.corpora import sources
from coderet.encoders import exporting
from coderet.encoders import settings as settings_file
from coderet.encoders.encoding import Role
from coderet.encoders.tokenizer import BpeTokenizer, FastTokenizer, Tokens, truncated
from coderet.records import DataError
from coderet.registry import check_range

TOKENIZER, WEIGHTS, TABLE = "tokenizer.json", "model.safetensors", "embedding.weight"
UNLIMITED = 1_000_000_000  # tokens, where nothing is to be cut

# `words.code_words` in the words of the tokenizers library, whose normalisers lower case before words are cut: first a
# space wherever the case says that a word begins.
_WORD_BEGINS = r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][^\W\d_A-Z])"
_WORD = r"[^\W\d_]+|\d+"


class Static:
    """tokenizer: JSON of the tokenizers library. table: (V, dim) float32, a row a token id.

    max_tokens: of a text, the rest is cut; None cuts nothing. normalise: vectors of length 1; a text without tokens has
    the zero vector. code_words: the tokenizer is one that `over_code_words` made.
    """

    def __init__(
        self,
        tokenizer: str,
        table: torch.Tensor,
        *,
        max_tokens: int | None = None,
        normalise: bool = True,
        code_words: bool = False,
    ) -> None:
        if max_tokens is not None:
            check_range("max_tokens", max_tokens, 1)
        self.settings: dict[str, Any] = {
            "kind": "static",
            "max_tokens": max_tokens,
            "normalise": normalise,
            "code_words": code_words,
        }
        self._table, self.dim = table.float(), int(table.shape[1])
        self._tokenizer = (BpeTokenizer if code_words else FastTokenizer)(_limited(tokenizer, max_tokens))
        if len(self._tokenizer) > len(table):
            raise DataError(f"the tokenizer has {len(self._tokenizer)} ids, but the table {len(table)} rows")

    @classmethod
    def prepare(
        cls, work: Path, *, source: str, folder: str = ".", max_tokens: int | None = None, normalise: bool = True
    ) -> "Static":
        """The StaticEmbedding in folder of a pinned source (a spec of `corpora.sources`), fetched into work."""
        sources.fetch([source], work)
        place = work / sources.parse(source).name / folder
        return cls(*_read(place), max_tokens=max_tokens, normalise=normalise)

    def save(self, folder: Path) -> None:
        """Write settings, table and tokenizer into folder; sentence-transformers reads the last two."""
        settings_file.write(folder, self.settings)
        save_file({TABLE: self._table.contiguous()}, folder / WEIGHTS)
        (folder / TOKENIZER).write_text(self._tokenizer.model, encoding="utf-8")
        exporting.describe_static(folder, normalise=self.settings["normalise"])

    @classmethod
    def load(cls, folder: Path) -> "Static":
        """The encoder that `save` wrote; DataError if a file is missing, cut short or does not fit the others."""
        settings = settings_file.read(folder)
        settings.pop("kind")
        return cls(*_read(folder), **settings)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of table, tokenizer and settings."""
        digest = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode())
        digest.update(self._tokenizer.model.encode())
        digest.update(np.ascontiguousarray(self._table.numpy()).data)
        return digest.hexdigest()

    @property
    def parameters_count(self) -> int:
        """Numbers in the table."""
        return self._table.numel()

    def tokens(self, texts: pa.Array | pa.ChunkedArray, role: Role) -> Tokens:
        """The tokens of texts, and how many texts were cut; both roles are read alike."""
        return truncated(self._tokenizer.content(texts), self.settings["max_tokens"] or UNLIMITED)

    def encode_queries(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        return self.encode_tokens(self.tokens(texts, "query"), "query")

    def encode_documents(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        return self.encode_tokens(self.tokens(texts, "document"), "document")

    def encode_tokens(self, tokens: Tokens, role: Role) -> np.ndarray:
        """(N, dim) float32 of texts whose `tokens` somebody wanted to see first; both roles are read alike."""
        with torch.inference_mode():
            vectors = means(torch.from_numpy(tokens.ids), torch.from_numpy(tokens.offsets), self._table)
            return (normalize(vectors, dim=1) if self.settings["normalise"] else vectors).numpy()


def means(ids: torch.Tensor, offsets: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """(N, dim) means of the rows of table that ids name, text i being ids[offsets[i]:offsets[i + 1]]; empty ones zero.

    One pass over the tokens that are there: no padding, so that a text's vector cannot depend on its neighbours.
    """
    return embedding_bag(ids.long(), table, offsets.long(), mode="mean", include_last_offset=True)


def over_code_words(tokenizer: BpeTokenizer) -> str:
    """The JSON of a tokenizer that reads whole texts and gives the ids that this one gives."""
    from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers

    description = json.loads(tokenizer.model)
    # Marks are no words: a text that holds `<pad>` has the word `pad`.
    fast = Tokenizer.from_str(json.dumps(description | {"added_tokens": []}))
    fast.normalizer = normalizers.Sequence(  # type: ignore[assignment]
        [normalizers.Replace(Regex(_WORD_BEGINS), " "), normalizers.Lowercase()]
    )
    fast.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), behavior="removed", invert=True)  # type: ignore[assignment]
    made: str = fast.to_str()
    return made


def _limited(tokenizer: str, max_tokens: int | None) -> str:
    """The same tokenizer with that limit and no other, for whoever reads it in our place."""
    from tokenizers import Tokenizer

    try:
        fast = Tokenizer.from_str(tokenizer)
    except Exception as error:  # the library raises nothing narrower
        raise DataError(f"the tokenizer is none of the tokenizers library ({error}); make or fetch it again") from error
    fast.no_padding()
    if max_tokens is None:
        fast.no_truncation()
    else:
        fast.enable_truncation(max_tokens)
    limited: str = fast.to_str()
    return limited


def _read(folder: Path) -> tuple[str, torch.Tensor]:
    try:
        text = (folder / TOKENIZER).read_text(encoding="utf-8")
        table = load_file(folder / WEIGHTS)[TABLE]
    except (OSError, SafetensorError, KeyError) as error:
        raise DataError(
            f"{folder} does not hold a whole {TOKENIZER} and a {WEIGHTS} with {TABLE} "
            f"({type(error).__name__}: {error}); make or fetch it again"
        ) from error
    return text, table
