"""Which mined negatives stand in a batch."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet import paths
from coderet.encoders.base import DualEncoder
from coderet.registry import BadValue
from coderet.training import negatives
from coderet.training.mixture import NO_ROW
from coderet.training.negatives import Negatives
from coderet.training.pairs import tokenised
from coderet.training.vocabulary import load_vocabulary

ROWS = np.array([[3, 4, 5], [0, NO_ROW, NO_ROW], [NO_ROW] * 3, [0, 1, NO_ROW], [0, 1, 2], [0, 1, 2]])
SCORES = np.where(ROWS == NO_ROW, np.nan, 0.1 * ROWS).astype(np.float32)
OWN = np.array([0.9, 0.8, np.nan, 0.7, 0.6, 0.5], np.float32)
EVERY = np.arange(6)


def test_negatives_are_drawn_anew_for_every_epoch_without_repetition():
    drawn = Negatives(ROWS, SCORES, OWN, 2, seed=1)
    seen = set()
    for epoch in range(20):
        rows, scores = drawn.drawn(EVERY, epoch)
        assert rows.shape == (6, 2) and scores.shape == (6, 3) and scores.dtype == np.float32
        seen |= {frozenset(rows[0].tolist())}
        assert len(set(rows[4].tolist())) == 2 and set(rows[3].tolist()) == {0, 1}
        assert np.allclose(scores[0], [0.9, *(0.1 * rows[0])])
        again = drawn.drawn(np.array([4, 0]), epoch)[0]
        assert np.array_equal(again, rows[[4, 0]])
    assert seen == {frozenset(each) for each in ({3, 4}, {3, 5}, {4, 5})}


def test_a_pair_with_too_few_gets_its_own_code_and_no_score_for_it():
    rows, scores = Negatives(ROWS, SCORES, OWN, 2, seed=1).drawn(EVERY, 0)
    assert rows[1].tolist() == [0, 1] and rows[2].tolist() == [2, 2]
    assert np.allclose(scores[1], [0.8, 0.0, np.nan], equal_nan=True) and np.isnan(scores[2]).all()


def test_what_is_written_is_read_again(write_pairs: Callable[..., Path], tmp_path: Path):
    pairs = write_pairs(train=6) / "train.parquet"
    ids = pq.read_table(pairs)["pair_id"]
    batches = (
        negatives.batch_of(ids.slice(start, 4), *(each[start : start + 4] for each in (ROWS, SCORES, OWN)))
        for start in (0, 4)
    )
    negatives.write(tmp_path / "n.parquet", pairs, batches)
    found = negatives.read(tmp_path / "n.parquet", pairs)
    assert np.array_equal(found.rows, ROWS) and found.pair_ids.to_pylist() == ids.to_pylist()
    assert np.array_equal(found.scores, SCORES, equal_nan=True) and np.array_equal(found.own, OWN, equal_nan=True)


@pytest.fixture
def mined(
    tokenizers_folder: Path, write_pairs: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A file of six pairs, the third of which has no query; negatives for it are in data/negatives."""
    monkeypatch.chdir(tmp_path)
    path = write_pairs(train=6) / "train.parquet"
    table = pq.read_table(path)
    queries = table["query"].to_pylist()
    queries[2] = " "
    pq.write_table(table.set_column(table.schema.get_field_index("query"), "query", pa.array(queries)), path)
    rows = np.where((ROWS == 2) | (np.arange(6) == 2)[:, None], NO_ROW, ROWS)
    rows[4:] = [0, 1, NO_ROW]
    negatives.write(paths.negatives("own"), path, [negatives.batch_of(table["pair_id"], rows, SCORES, OWN)])
    return path


def test_a_batch_has_the_tokens_and_keys_of_its_negatives(mined: Path, tokenizers_folder: Path, tmp_path: Path):
    encoder = DualEncoder.build(load_vocabulary(tokenizers_folder), {"kind": "nbow", "dim": 4})
    pairs = tokenised(mined, encoder, tmp_path / "work", 1, negatives="own", negatives_a_pair=2)
    assert len(pairs) == 5 and pairs.facts["pairs_without_a_side"] == 1  # so the rows behind it move up
    assert pairs.negatives is not None and pairs.facts["pairs_without_negatives"] == 0
    assert pairs.negatives.rows.tolist() == [[2, 3, 4], [0, -1, -1], [0, 1, -1], [0, 1, -1], [0, 1, -1]]
    rows = np.array([3, 0])
    batch = pairs.batch(rows, epoch=0)
    chosen, scores = pairs.negatives.drawn(rows, 0)
    assert batch.negatives is not None and batch.teacher is not None
    assert batch.negatives.keys.tolist() == pairs.keys["document"][chosen.ravel()].tolist()
    for place, row in enumerate(chosen.ravel().tolist()):
        tokens = pairs.tokens["document"]
        own = tokens.ids[tokens.offsets[row] : tokens.offsets[row + 1]]
        assert batch.negatives.ids[place][batch.negatives.mask[place]].tolist() == own.tolist()
    assert np.array_equal(batch.teacher.numpy(), scores, equal_nan=True)
    assert pairs.batch(rows).negatives is None  # validation has none


def test_more_negatives_than_were_mined_are_refused(mined: Path, tokenizers_folder: Path, tmp_path: Path):
    encoder = DualEncoder.build(load_vocabulary(tokenizers_folder), {"kind": "nbow", "dim": 4})
    with pytest.raises(BadValue, match="negatives_a_pair is 4, but no pair has more than 3"):
        tokenised(mined, encoder, tmp_path / "work", 1, negatives="own", negatives_a_pair=4)
