"""A few mined pairs on disk, and a tokenizer made from them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet.records import PAIRS
from coderet.training.vocabulary import train_vocabulary

# What queries say and what code says: nothing is the same, so it must be learned.
VERBS = dict(
    zip("sort read write open close parse".split(), "ordne lies schreibe oeffne schliesse zerlege".split(), strict=True)
)
NOUNS = dict(zip("list file tree graph socket table".split(), "liste datei baum netz dose tafel".split(), strict=True))
PAIRS_OF_WORDS = [(verb, noun, place) for verb in VERBS for noun in NOUNS for place in ("here", "there")]


def pairs_table(queries: list[str], codes: list[str]) -> pa.Table:
    count = len(queries)
    columns = {
        "pair_id": [str(number) for number in range(count)],
        "repository": ["package"] * count,
        "path": ["module.py"] * count,
        "language": ["python"] * count,
        "name": ["f"] * count,
        "query": queries,
        "code": codes,
        "start_line": [1] * count,
        "end_line": [2] * count,
    }
    return pa.table(columns, schema=PAIRS)


@pytest.fixture(scope="session", name="pairs_table")
def pairs_table_for_tests() -> Callable[..., pa.Table]:
    """pairs_table(queries, codes), for tests that make pairs of their own."""
    return pairs_table


@pytest.fixture
def write_pairs(tmp_path: Path) -> Callable[..., Path]:
    """write_pairs(): a folder of 60 training and 20 validation pairs whose queries and code share no word."""

    def write(train: int = 60, valid: int = 20) -> Path:
        folder = tmp_path / "pairs"
        folder.mkdir(exist_ok=True)
        order = np.random.default_rng(0).permutation(len(PAIRS_OF_WORDS))
        for name, rows in (("train", order[:train]), ("valid", order[:valid])):
            words = [PAIRS_OF_WORDS[row] for row in rows]
            queries = [f"{verb} the {noun} {place}" for verb, noun, place in words]
            codes = [f"def {VERBS[v]}_{NOUNS[n]}(x):\n    return {VERBS[v]}({len(p) * 'x'})" for v, n, p in words]
            pq.write_table(pairs_table(queries, codes), folder / f"{name}.parquet")
        return folder

    return write


@pytest.fixture
def tokenizers_folder(write_pairs: Callable[..., Path], tmp_path: Path) -> Path:
    train_vocabulary(write_pairs(), tmp_path / "tokenizers", kind="words", size=200, min_count=1)
    return tmp_path / "tokenizers"
