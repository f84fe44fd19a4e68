"""A few mined pairs on disk, and a tokenizer made from them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet.records import PAIRS
from coderet.training.vocabulary import train_vocabulary

VERBS = "sort read write open close parse send merge split join".split()
NOUNS = "list file tree graph socket table".split()


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


@pytest.fixture
def write_pairs(tmp_path: Path) -> Callable[..., Path]:
    """write_pairs(): a folder of 60 training and 20 validation pairs whose queries and code share words."""

    def write(train: int = 60, valid: int = 20) -> Path:
        folder = tmp_path / "pairs"
        folder.mkdir(exist_ok=True)
        random = np.random.default_rng(0)
        for name, count in (("train", train), ("valid", valid)):
            words = [(VERBS[random.integers(10)], NOUNS[random.integers(6)], str(n)) for n in range(count)]
            queries = [f"{verb} the {noun} number {n}" for verb, noun, n in words]
            codes = [f"def {verb}_{noun}(x):\n    return {verb}(x, {n})" for verb, noun, n in words]
            pq.write_table(pairs_table(queries, codes), folder / f"{name}.parquet")
        return folder

    return write


@pytest.fixture
def tokenizers_folder(write_pairs: Callable[..., Path], tmp_path: Path) -> Path:
    train_vocabulary(write_pairs(), tmp_path / "tokenizers", kind="words", size=200, min_count=1)
    return tmp_path / "tokenizers"
