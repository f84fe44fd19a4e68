"""The tokenizer of own encoders, from the training pairs, and what its tokens weigh there.

>>> train_vocabulary(Path("data/pairs"), Path("models/tokenizers"), kind="bpe", size=16_000, min_count=2)
{'tokens': 16000, ...}
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from coderet.corpora import store
from coderet.encoders import tokenizer as tokenizers
from coderet.encoders.tokenizer import Tokenizer, Tokens
from coderet.records import DataError

FILE = "tokenizer.json"
COLUMNS = ("query", "code")
LARGEST_WEIGHT = 0.98  # of the rarest token: below 1, where a sigmoid can still move


def train_vocabulary(
    pairs_folder: Path, folder: Path, *, kind: str = "bpe", size: int = 16_000, min_count: int = 2
) -> dict[str, int | str]:
    """Write folder/tokenizer.json, learned from the queries and code of pairs_folder/train.parquet; facts about it.

    kind: words or bpe, as in `encoders.tokenizer`. size: token ids, marks included. min_count: how often a word, or a
    pair of pieces to be joined, must occur.
    """
    pairs = read_texts(pairs_folder / "train.parquet")
    tokenizer = tokenizers.train([pairs[name] for name in COLUMNS], kind, size, min_count)
    tokenizers.save(tokenizer, folder / FILE)
    return {"kind": kind, "tokens": len(tokenizer), "pairs": len(pairs)}


def load_vocabulary(folder: Path) -> Tokenizer:
    """The tokenizer that `train_vocabulary` wrote into folder."""
    return tokenizers.load(folder / FILE)


def read_texts(path: Path, columns: Iterable[str] = COLUMNS) -> pa.Table:
    """The query and code columns of a file of pairs, or others; DataError if it is missing, cut short or empty."""
    table = store.read_pairs(path, columns)
    if not len(table):
        raise DataError(f"{path} has no pairs; mine from more sources, or from packages that fall on this side")
    return table


def rarity(texts: Iterable[Tokens], vocabulary: int) -> np.ndarray:
    """(V,) float64 weights in (0, LARGEST_WEIGHT]: inverse document frequency, as a share of the largest.

    ln(1 + N / (n + 1)) of a token that stands in n of all N texts.
    """
    counts, total = np.zeros(vocabulary), 0
    for tokens in texts:
        owners = np.repeat(np.arange(len(tokens), dtype=np.int64), tokens.lengths)
        distinct = np.unique(owners * vocabulary + tokens.ids)
        counts += np.bincount(distinct % vocabulary, minlength=vocabulary)
        total += len(tokens)
    weights = np.log1p(total / (counts + 1))
    return weights / weights.max() * LARGEST_WEIGHT
