"""Case D11, one process: sampler lengths, orders and places."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from coderet.encoders.base import DualEncoder
from coderet.encoders.tokenizer import Tokens
from coderet.training.batches import RandomBatches, batches_of
from coderet.training.pairs import Batch, Epochs, PairsModule, TokenPairs, text_keys, tokenised
from coderet.training.vocabulary import load_vocabulary

SHARED = np.array([0] * 12 + list(range(1, 9)))  # 20 pairs of which 12 share one positive


def numbered(documents: np.ndarray) -> TokenPairs:
    """Pairs whose query is their number; documents (N,) are keys."""
    count = len(documents)
    ids = Tokens.of([[number + 4] for number in range(count)])
    return TokenPairs(
        {"query": ids, "document": ids}, {"query": np.arange(count), "document": documents.astype(np.int64)}
    )


def same(one: Batch, other: Batch) -> bool:
    """Whether two batches without negatives hold the same numbers."""
    return all(
        torch.equal(a, b)
        for mine, theirs in ((one.queries, other.queries), (one.documents, other.documents))
        for a, b in zip(mine, theirs, strict=True)
    )


def rows(loader: Epochs) -> list[list[int]]:
    return [batch.queries.keys.tolist() for batch in loader]


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_the_loaders_length_is_the_number_of_batches_it_gives(distinct: bool, epoch: int):
    pairs = numbered(SHARED)
    batches = batches_of(pairs.traits, 3, kind="distinct" if distinct else "random", size=4)
    data = PairsModule(pairs, pairs, seed=3, batches=batches)
    loader = data.train_dataloader()
    loader.set_epoch(epoch)
    assert len(rows(loader)) == len(loader) == (2 if distinct else 5)


def test_a_loader_goes_on_where_its_state_says():
    batches = RandomBatches(20, 4, seed=1)
    whole = Epochs(numbered(SHARED), batches)
    whole.set_epoch(1)
    expected = rows(whole)
    stopped = Epochs(numbered(SHARED), batches)
    stopped.set_epoch(1)
    reading = iter(stopped)
    first = [next(reading).queries.keys.tolist() for _ in range(3)]
    resumed = Epochs(numbered(SHARED), batches)
    resumed.load_state_dict(stopped.state_dict())
    resumed.set_epoch(1)
    assert first + rows(resumed) == expected
    resumed.set_epoch(2)
    whole.set_epoch(2)
    assert rows(resumed) == rows(whole) != expected


@pytest.mark.parametrize("workers", [1, 2])
def test_the_number_of_workers_changes_nothing(workers: int):
    alone, helped = (Epochs(numbered(SHARED), RandomBatches(20, 4, seed=1), number) for number in (0, workers))
    for epoch in (0, 1):
        alone.set_epoch(epoch)
        helped.set_epoch(epoch)
        for one, other in zip(alone, helped, strict=True):
            assert same(one, other)


def test_validation_blocks_are_the_same_every_time_and_whole():
    data = PairsModule(numbered(SHARED), numbered(SHARED), seed=3, batches=RandomBatches(20, 4, 3), block=6, blocks=2)
    first, again = ([batch.queries.keys.tolist() for batch in data.val_dataloader()] for _ in range(2))
    assert first == again and [len(block) for block in first] == [6, 6]
    assert len({row for block in first for row in block}) == 12


def test_too_few_validation_pairs_make_one_smaller_block():
    data = PairsModule(numbered(SHARED), numbered(np.arange(5)), seed=3, batches=RandomBatches(20, 4, 3), block=1000)
    assert [len(batch.queries.keys) for batch in data.val_dataloader()] == [5]


def test_texts_are_the_same_but_for_line_ends_and_outer_white_space():
    keys = text_keys(pa.chunked_array([["a\r\nb", " a\nb\n", "a b", None, ""]], type=pa.large_string()))
    assert keys[0] == keys[1] != keys[2] and keys[3] == keys[4]


def test_pairs_are_tokenised_once_and_mapped(write_pairs: Callable[..., Path], tokenizers_folder: Path, tmp_path: Path):
    encoder = DualEncoder.build(
        load_vocabulary(tokenizers_folder), {"kind": "nbow", "dim": 4, "max_document_tokens": 3}
    )
    path = write_pairs() / "train.parquet"
    made = tokenised(path, encoder, tmp_path / "work" / "train")
    path.unlink()
    again = tokenised(path, encoder, tmp_path / "work" / "train")
    assert len(again) == 60 and isinstance(again.tokens["query"].ids, np.memmap)
    assert again.tokens["document"].lengths.max() == 3 and again.tokens["document"].cut == 60
    wanted, found = (each.batch(np.array([5, 59])) for each in (made, again))
    assert isinstance(found, Batch) and same(wanted, found)
    assert [each.name for each in (tmp_path / "work").iterdir()] == ["train"]
