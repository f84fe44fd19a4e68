from collections.abc import Callable
from math import log
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet.encoders.tokenizer import Tokens
from coderet.records import DataError
from coderet.training.vocabulary import LARGEST_WEIGHT, load_vocabulary, rarity, read_texts, train_vocabulary


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_a_vocabulary_is_learned_from_queries_and_code_of_the_training_pairs(
    write_pairs: Callable[..., Path], tmp_path: Path, kind: str
):
    facts = train_vocabulary(write_pairs(), tmp_path / "out", kind=kind, size=300, min_count=1)
    tokenizer = load_vocabulary(tmp_path / "out")
    assert facts == {"kind": kind, "tokens": len(tokenizer), "pairs": 60}
    lengths = tokenizer.content(pa.array(["sort", "ordne"], pa.large_string())).lengths
    assert lengths.tolist() == [1, 1]


def test_rare_tokens_weigh_more_than_common_ones():
    texts = [Tokens.of([[0, 1, 1], [0]]), Tokens.of([[0, 2], [0]])]
    weights = rarity(texts, 4)
    raw = np.array([log(1 + 4 / 5), log(1 + 4 / 2), log(1 + 4 / 2), log(1 + 4 / 1)])
    assert np.allclose(weights, raw / raw[3] * LARGEST_WEIGHT)


def test_a_file_of_pairs_that_is_missing_cut_short_or_empty_is_refused(
    write_pairs: Callable[..., Path], tmp_path: Path
):
    path = write_pairs() / "train.parquet"
    whole, table = path.read_bytes(), pq.read_table(path)
    path.write_bytes(whole[:-20])
    with pytest.raises(DataError, match="cut short or is no Parquet file"):
        read_texts(path)
    pq.write_table(table.slice(0, 0), path)
    with pytest.raises(DataError, match="has no pairs"):
        read_texts(path)
    with pytest.raises(DataError, match=r"none\.parquet is missing; run: dvc repro mine"):
        read_texts(tmp_path / "none.parquet")
