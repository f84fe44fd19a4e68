"""A training step of a checkpoint, part by part: attention, precision, memory, and what each saving costs or brings.

Forward and backward of both sides of real pairs, from one gradient of their vectors; no optimizer. Times are seconds
of the processor, kernel included, of one thread unless OMP_NUM_THREADS says more, so that a machine that is shared can
be measured on. Everything but the named thing is as `Tunable` has it by default.

    python bench/finetuning.py MODEL_FOLDER data/pairs/train.parquet
"""

import argparse
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from coderet.encoders import memory
from coderet.encoders.encoding import Role
from coderet.encoders.tuning import Tunable
from coderet.training.pairs import COLUMN_OF_ROLE

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "eager": {"attention": "eager"},
    "sdpa": {"attention": "sdpa"},
    "fp32": {"precision": "fp32"},
    "dropout 0.1": {"dropout": 0.1},
    "frozen embeddings": {"frozen_embeddings": True},
    "3 frozen layers": {"frozen_layers": 3},
    "LoRA, rank 16": {"lora": {"rank": 16}},
    "gradient checkpointing": {"gradient_checkpointing": True},
    "documents to 64 tokens": {"max_document_tokens": 64},
    "documents to 256 tokens": {"max_document_tokens": 256},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=4.0, help="of the processor, for each line")
    parser.add_argument("--compile", action="store_true", help="by torch.compile too, which takes minutes")
    given = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    table = pq.read_table(given.pairs, columns=list(COLUMN_OF_ROLE.values()))
    pairs = table.take(pa.array(np.random.default_rng(0).permutation(len(table))[: given.batch]))

    def measured(name: str, settings: dict[str, Any], compiled: bool = False) -> None:
        settings = {"max_tokens": 256, "max_query_tokens": 48, "max_document_tokens": 128} | settings
        encoder = Tunable(given.model, **settings).train()
        if compiled:
            encoder.model = torch.compile(encoder.model, dynamic=True)
        act, tokens = step(encoder, pairs)
        report(name, act, tokens, given.batch, given.seconds)

    measured("memory given back to the system", {})
    memory.keep_freed()
    for name, settings in VARIANTS.items():
        measured(name, settings)
    if given.compile:
        measured("eager, compiled", {"attention": "eager"}, compiled=True)


def step(encoder: Tunable, pairs: pa.Table) -> tuple[Callable[[], None], int]:
    """What one step does with the encoder, and how many tokens it reads."""
    sides: list[tuple[Role, Any, Any]] = []
    count = 0
    for role, column in COLUMN_OF_ROLE.items():
        tokens = encoder.tokens(pairs[column], role)
        ids, mask = tokens.padded(np.arange(len(tokens)), fill=encoder.fill)
        sides.append((role, torch.from_numpy(ids), torch.from_numpy(mask)))
        count += int(tokens.lengths.sum())
    torch.manual_seed(0)
    gradients = [torch.randn(len(pairs), encoder.dim) for _ in sides]

    def act() -> None:
        encoder.zero_grad()
        torch.autograd.backward([encoder(*side) for side in sides], gradients)

    return act, count


def report(name: str, act: Callable[[], None], tokens: int, pairs: int, seconds: float) -> None:
    act()  # the first step makes what the others reuse
    start, done = used(), 0
    while (used() - start)[:2].sum() < seconds:
        act()
        done += 1
    user, kernel, faults = (used() - start) / done
    print(
        f"{name:32} {1e6 * (user + kernel) / tokens:7.0f} us a token {pairs / (user + kernel):6.1f} pairs/s"
        f"  {kernel / (user + kernel):4.0%} in the kernel, {faults:9,.0f} page faults"
        f"  {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:5.1f} GiB so far",
        flush=True,
    )


def used() -> np.ndarray:
    """Seconds of this process in its own code and in the kernel, and its page faults."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([usage.ru_utime, usage.ru_stime, usage.ru_minflt])


if __name__ == "__main__":
    main()
