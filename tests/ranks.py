"""What processes do that train together, for training/test_devices.py: run by torchrun, or called for a reference.

    torchrun --standalone --nproc-per-node 2 tests/ranks.py FOLDER

FOLDER has pairs/ and tokenizers/; each rank writes what it found to FOLDER/rank-<n>.pt.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningDataModule
from torch import Tensor, nn
from torch.distributed import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.futures import Future
from torch.nn.functional import cross_entropy, normalize
from torch.utils.data import DataLoader

from coderet.training import devices
from coderet.training.batches import RandomBatches
from coderet.training.fitting import fit
from coderet.training.gradient_cache import GradientCache
from coderet.training.laps import Laps
from coderet.training.module import ContrastiveModule
from coderet.training.objectives import Marks, Objective, build
from coderet.training.pairs import Batch, Side
from coderet.training.running import Running

PAIRS, NEGATIVES, WORDS, DIM = 8, 2, 30, 5

# Case D9: by name, the objective, and what is special about batch or encoder.
GRADIENTS: dict[str, dict[str, Any]] = {
    "one direction": {"objective": {"both_directions": False}},
    "both directions": {},
    "a learned temperature": {"objective": {"learn_temperature": True}},
    "hard negatives": {"negatives": True},
    "duplicates": {"keys": [1, 2, 3, 4, 1, 6, 3, 8]},  # pairs 0 and 4, 2 and 6: on different devices
    "mini-batches": {"mini_batch": 2, "objective": {"learn_temperature": True}},
    "hard negatives in mini-batches": {"mini_batch": 2, "negatives": True},
    "mini-batches and duplicates": {"mini_batch": 3, "keys": [1, 2, 3, 4, 1, 6, 3, 8]},
    "uneven devices": {"pairs": 7},
    "uneven devices in mini-batches": {"pairs": 7, "mini_batch": 3, "negatives": True},
    "accumulation": {"accumulate": 2},
    "accumulation in mini-batches": {"accumulate": 2, "mini_batch": 2},
}

FIT: dict[str, Any] = {
    "encoder": {"kind": "nbow", "dim": 4},
    "batches": {"size": 128},
    "training": {"max_steps": 20, "epochs": 99, "valid_every": 10, "warmup": 2, "valid_block": 10, "patience": 9},
}
CACHED: dict[str, Any] = {
    "encoder": {"kind": "nbow", "dim": 16, "tied": False, "dropout": 0.2},
    "batches": {"size": 30, "mini_batch": 4},
    "training": {"epochs": 2, "accumulate": 2, "checkpoint_steps": 1, "valid_block": 10, "patience": 9, "clip_norm": 1},
}


class Towers(nn.Module):
    """A linear encoder with a tower a side, and weights that no vector depends on."""

    def __init__(self) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(1)
        self.towers = nn.ModuleDict({role: nn.Linear(WORDS, DIM, bias=False) for role in ("query", "document")})
        for tower in self.towers.values():
            tower.weight.data = torch.randn(DIM, WORDS, generator=random)
        self.idle = nn.Linear(2, 2)

    def forward(self, role: str, ids: Tensor, mask: Tensor) -> Tensor:
        counts = (nn.functional.one_hot(ids, WORDS) * mask.unsqueeze(-1)).sum(1).float()
        return normalize(self.towers[role](counts), dim=1)


def side(seed: int, count: int, keys: list[int] | None = None) -> Side:
    random = torch.Generator().manual_seed(seed)
    mask = torch.arange(6) < torch.randint(1, 7, (count, 1), generator=random)
    ids = torch.randint(0, WORDS, mask.shape, generator=random)
    own = keys or [seed * 100 + row for row in range(count)]
    return Side(ids, mask, torch.tensor(own[:count]))


class WithNegatives(Objective):
    """A query picks its document out of all documents and the negatives of all pairs, at a learned temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.log_temperature = nn.Parameter(torch.tensor(-0.7))

    def forward(self, queries: Tensor, documents: Tensor, negatives: Tensor | None, marks: Marks) -> Tensor:
        assert negatives is not None and marks.negative_keys is not None
        assert negatives.shape[:2] == marks.negative_keys.shape
        others = torch.cat([documents, negatives.flatten(0, 1)])
        return cross_entropy(queries @ others.T / self.log_temperature.exp(), torch.arange(len(queries)))


class Given(LightningDataModule):
    """Batches made by hand, a device's rows of each."""

    def __init__(self, case: dict[str, Any]) -> None:
        super().__init__()
        self._case = case

    def train_dataloader(self) -> DataLoader[Batch]:
        batches = [self._batch(number) for number in range(self._case.get("accumulate", 1))]
        return DataLoader(batches, batch_size=None)  # type: ignore[arg-type]

    def _batch(self, number: int) -> Batch:
        pairs = self._case.get("pairs", PAIRS)
        rows = torch.arange(pairs).tensor_split(self.trainer.world_size)[self.trainer.global_rank]
        of_pair = (rows[:, None] * NEGATIVES + torch.arange(NEGATIVES)).flatten()
        queries, documents = side(10 * number + 1, pairs), side(10 * number + 2, pairs, self._case.get("keys"))
        negatives = side(10 * number + 3, pairs * NEGATIVES) if self._case.get("negatives") else None
        return Batch(
            Side(*(each[rows] for each in queries)),
            Side(*(each[rows] for each in documents)),
            negatives and Side(*(each[of_pair] for each in negatives)),
        )


class Watch(Callback):
    """Gradients as the optimiser gets them, losses, and how often devices exchanged gradients."""

    def __init__(self) -> None:
        self.exchanges = 0
        self.losses: list[float] = []
        self.gradients: dict[str, Tensor] = {}

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if devices.count() > 1:
            trainer.model.register_comm_hook(None, self._counted)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        named = pl_module.named_parameters()
        self.gradients = {name: each.grad.clone() for name, each in named if each.grad is not None}

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, *_: Any) -> None:
        self.losses.append(float(outputs["loss"]))

    def _counted(self, state: Any, bucket: GradBucket) -> Future[Tensor]:
        self.exchanges += 1
        return default_hooks.allreduce_hook(None, bucket)


def gradients(case: dict[str, Any], ranks: int, work: Path) -> dict[str, Any]:
    """One step of a case, as the optimiser sees it."""
    pairs, accumulate = case.get("pairs", PAIRS), case.get("accumulate", 1)
    module = ContrastiveModule(
        Towers(),
        WithNegatives() if case.get("negatives") else build(case.get("objective", {}) | {"temperature": 0.5}),
        seed=1,
        laps=Laps(RandomBatches(pairs * accumulate, pairs, seed=1), accumulate=accumulate),
        cache=GradientCache(mini_batch=case.get("mini_batch", 0)),
        optimiser={"kind": "adam", "learning_rate": 0.01},
    )
    watch = Watch()
    running = Running(devices=ranks)
    running.fit(module, Given(case), [watch], epochs=1, work=work, checkpoint=None, logger=None)
    return {"gradients": watch.gradients, "losses": watch.losses, "exchanges": watch.exchanges}


class Stop(BaseException):
    """What is thrown into training."""


@contextlib.contextmanager
def watched(stop_at: int = -1) -> Iterator[list[list[int]]]:
    """The keys of the queries of every batch that is trained on; before the step stop_at training is stopped."""
    usual: Callable[..., Any] = ContrastiveModule.training_step
    seen: list[list[int]] = []

    def step_or_stop(self: ContrastiveModule, batch: Batch, number: int) -> Any:
        if self.global_step == stop_at:
            raise Stop
        seen.append(batch.queries.keys.tolist())
        return usual(self, batch, number)

    ContrastiveModule.training_step = step_or_stop  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        ContrastiveModule.training_step = usual  # type: ignore[method-assign]


def fitted(folder: Path, settings: dict[str, Any], ranks: int, work: str, stop_at: int = -1) -> dict[str, Any]:
    """A whole fit: the batches of this rank and, on the first, weights and facts."""
    result: dict[str, Any] = {}
    with watched(stop_at) as seen, contextlib.suppress(Stop, SystemExit):
        encoder, facts = fit(
            folder / "pairs",
            folder / "tokenizers",
            {**settings, "trainer": {"devices": ranks}},
            folder / work,
            seed=5,
        )
        result = {"weights": encoder.state_dict(), "facts": facts}
    return result | {"seen": seen, "finished": bool(result)}


def mean_of_five(rank: int) -> float:
    """Case D12: the module's own mean of 1, 0, 0, 0, 0, of which the first device has three."""
    module = ContrastiveModule(
        Towers(),
        build({}),
        seed=1,
        laps=Laps(RandomBatches(8, 8, seed=1)),
        cache=GradientCache(),
        optimiser={"kind": "adam", "learning_rate": 0.01},
    )
    module._reciprocal_ranks = [torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0]][rank])]
    logged: dict[str, float] = {}
    module.log = lambda name, value, **_: logged.update({name: float(value)})  # type: ignore[method-assign,assignment]
    module.on_validation_epoch_end()
    return logged["validation_mrr"]


def main(folder: Path) -> None:
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    found = {
        "gradients": {name: gradients(case, ranks, folder / "work") for name, case in GRADIENTS.items()},
        "mean_of_five": mean_of_five(rank),
        "plain": fitted(folder, FIT, ranks, "plain"),
        "whole": fitted(folder, CACHED, ranks, "whole"),
        "stopped": fitted(folder, CACHED, ranks, "stopped", stop_at=7),
        "resumed": fitted(folder, CACHED, ranks, "stopped"),
    }
    torch.save(found, folder / f"rank-{rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
