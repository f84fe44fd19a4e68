from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from coderet import encoders, training
from coderet.encoders.tokenizer import Tokens
from coderet.training import trying
from coderet.training.pairs import TokenPairs
from coderet.training.trying import Trial

NBOW = {"encoder": {"kind": "nbow", "dim": 8}}


def test_sizes_are_doubled_up_to_all_pairs(
    write_pairs: Callable[..., Path], tokenizers_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(trying, "SLOWER", 0.0)  # on a busy machine a trial may be slower by chance
    tried = list(training.mini_batches(write_pairs(), tokenizers_folder, NBOW, tmp_path / "work", 1))
    assert [each.pairs for each in tried] == [8, 16, 32, 60]
    assert all(each.pairs_per_second > 0 and each.memory_bytes > 1_000_000 for each in tried)


def test_a_machine_that_runs_out_of_memory_ends_the_search(
    write_pairs: Callable[..., Path], tokenizers_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    usual = trying._step

    def step(encoder, batch, device, precision):
        if len(batch.queries.keys) > 16:
            torch.empty(2**60)  # torch's own words
        return usual(encoder, batch, device, precision)

    monkeypatch.setattr(trying, "_step", step)
    monkeypatch.setattr(trying, "SLOWER", 0.0)
    tried = list(training.mini_batches(write_pairs(), tokenizers_folder, NBOW, tmp_path / "work", 1))
    assert [each.pairs for each in tried] == [8, 16]


def test_the_longest_pairs_are_tried(tokenizers_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen = []
    monkeypatch.setattr(trying, "_step", lambda encoder, batch, *_: (seen.append(batch), (1.0, 1))[1])
    texts = Tokens.of([[4] * length for length in range(1, 11)])
    pairs = TokenPairs(dict.fromkeys(("query", "document"), texts), dict.fromkeys(("query", "document"), np.arange(10)))
    encoder = encoders.trainable(NBOW["encoder"], tokenizers_folder, tmp_path)
    next(trying.of_encoder(encoder, pairs, torch.device("cpu")))
    assert seen[0].documents.mask.sum(1).tolist() == [10, 9, 8, 7, 6, 5, 4, 3]


def test_the_best_is_the_smallest_that_is_about_as_fast_as_the_fastest():
    tried = [Trial(8, 50.0, 1), Trial(16, 96.0, 2), Trial(32, 100.0, 4), Trial(64, 90.0, 8)]
    assert trying.best(tried).pairs == 16
    assert training.told(tried).splitlines()[-1] == "best: batches.mini_batch: 16"
    assert "not even 8 pairs fit into memory" in training.told([])
