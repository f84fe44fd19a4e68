"""How large a mini-batch this machine takes, found by trying: the longest real pairs, forward and backward.

A batch in mini-batches (`gradient_cache`) costs one more forward pass, so `batches.mini_batch` wants to be as large as
memory allows, and no larger than it gets faster. Sizes are doubled until memory, speed or time says stop.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch

from coderet import encoders, registry
from coderet.metrics import efficiency
from coderet.training import devices
from coderet.training.pairs import Batch, TokenPairs, tokenised
from coderet.training.running import Running, is_out_of_memory

FIRST, LARGEST = 8, 4096
MEMORY_SHARE = 0.8  # of what is free; the optimiser and the other vectors of a batch want some too
SLOWER = 0.8  # a size that does so much of the best pairs/s ends the search
AS_GOOD = 0.95  # the smallest size within this share of the best is the one
SECONDS = 60.0  # a trial that takes longer is the last


class Trial(NamedTuple):
    """A mini-batch of so many of the longest pairs; bytes at the peak, of the process or of the graphics processor."""

    pairs: int
    pairs_per_second: float
    memory_bytes: int


def trials(
    pairs_folder: Path, tokenizers_folder: Path, settings: Mapping[str, Any], work: Path, seed: int
) -> Iterator[Trial]:
    """Larger and larger mini-batches of a retriever's `fit` settings; ends before memory does, or soon after."""
    running = Running(**registry.fit_arguments(Running, settings.get("trainer", {}), "fit.trainer"))
    torch.manual_seed(seed)
    with devices.alone(work):
        encoder = encoders.trainable(settings["encoder"], tokenizers_folder, work)
        pairs = tokenised(pairs_folder / "train.parquet", encoder, work / "tokens-train")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    yield from of_encoder(encoder.to(device).train(), pairs, device, running.precision)


def of_encoder(encoder: Any, pairs: TokenPairs, device: torch.device, precision: str = "32-true") -> Iterator[Trial]:
    """The same, of an encoder on its device."""
    longest = np.argsort(-sum(tokens.lengths for tokens in pairs.tokens.values()), kind="stable")
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available
    size, fastest, before = FIRST, 0.0, 0
    while True:
        size = min(size, len(pairs), LARGEST)
        batch = pairs.batch(longest[:size])
        try:
            # Twice: the first time what a process needs only once is set up, and the faster one counts.
            seconds, used = min(_step(encoder, batch, device, precision) for _ in range(2))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return
        trial = Trial(size, size / seconds, used)
        yield trial
        fastest = max(fastest, trial.pairs_per_second)
        grown = used + max(0, used - before)  # what twice as many would take, if memory grows as it did
        if (
            size in (len(pairs), LARGEST)
            or trial.pairs_per_second < SLOWER * fastest
            or seconds > SECONDS
            or grown > MEMORY_SHARE * free
        ):
            return
        size, before = 2 * size, used


def best(tried: list[Trial]) -> Trial:
    """The smallest of those that are about as fast as the fastest."""
    fastest = max(each.pairs_per_second for each in tried)
    return min(each for each in tried if each.pairs_per_second >= AS_GOOD * fastest)


def told(tried: Iterable[Trial]) -> str:
    """A table of trials, and which is the best."""
    every = list(tried)
    if not every:
        return f"not even {FIRST} pairs fit into memory; lower encoder.max_document_tokens"
    lines = [f"{'pairs':>6} {'pairs/s':>9} {'memory, MB':>11}"]
    lines += [f"{each.pairs:>6} {each.pairs_per_second:>9.1f} {each.memory_bytes / 1e6:>11.0f}" for each in every]
    return "\n".join([*lines, f"best: batches.mini_batch: {best(every).pairs}"])


def _step(encoder: Any, batch: Batch, device: torch.device, precision: str) -> tuple[float, int]:
    """Seconds and bytes of both sides' forward and backward passes."""
    encoder.zero_grad()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    half = precision.endswith("-mixed")
    dtype = torch.float16 if precision.startswith("16") else torch.bfloat16
    with efficiency.peak_memory() as memory:
        start = time.perf_counter()
        with torch.autocast(device.type, dtype=dtype, enabled=half):
            queries = encoder("query", batch.queries.ids.to(device), batch.queries.mask.to(device))
            documents = encoder("document", batch.documents.ids.to(device), batch.documents.mask.to(device))
        (queries * documents).sum().backward()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - start
    return seconds, torch.cuda.max_memory_allocated(device) if device.type == "cuda" else memory.bytes
