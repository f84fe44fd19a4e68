"""Mined pairs as batches of token ids, in an order that a seed fixes and a killed run finds again.

Pairs are tokenised once into flat arrays in the work folder and memory-mapped from there. Which pairs make a batch is
said by `batches`. The training loader carries its place as state, so Lightning resumes inside an epoch; the number of
its workers changes nothing.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from lightning.pytorch import LightningDataModule
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from coderet.encoders.base import DualEncoder
from coderet.encoders.encoding import Role
from coderet.encoders.tokenizer import Tokens
from coderet.training.batches import Batches, Plan, Traits, random_of
from coderet.training.laps import Laps
from coderet.training.vocabulary import read_texts

COLUMN_OF_ROLE: dict[Role, str] = {"query": "query", "document": "code"}
CLUSTERS = {"repository": "repository", "file": "path"}
ROLES: tuple[Role, ...] = ("query", "document")


class Side(NamedTuple):
    """B texts. ids: (B, T) int64, mask: (B, T) bool, keys: (B,) int64, equal where the texts are equal."""

    ids: Tensor
    mask: Tensor
    keys: Tensor


class Batch(NamedTuple):
    """B pairs. negatives: N documents a pair, B * N of them, those of pair i from i * N on; None where there are none.

    teacher: (B, 1 + N) a teacher's scores of own document and negatives.
    """

    queries: Side
    documents: Side
    negatives: Side | None = None
    teacher: Tensor | None = None


@dataclass(frozen=True, eq=False)
class TokenPairs:
    """N pairs as token ids; keys (N,) int64 are hashes of the texts, normalised line ends and outer white space.

    clusters: (N,) int64 labels, equal for pairs of one repository and of one file.
    """

    tokens: dict[Role, Tokens]
    keys: dict[Role, np.ndarray]
    clusters: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys["query"])

    @property
    def traits(self) -> Traits:
        """What `batches_of` goes by."""
        return Traits(self.keys["query"], self.keys["document"], self.clusters)

    def batch(self, rows: np.ndarray) -> Batch:
        """The pairs in rows, each side padded to its longest."""
        return Batch(self._side("query", rows), self._side("document", rows))

    def _side(self, role: Role, rows: np.ndarray) -> Side:
        ids, mask = self.tokens[role].padded(rows)
        return Side(torch.from_numpy(ids), torch.from_numpy(mask), torch.from_numpy(self.keys[role][rows]))


def tokenised(path: Path, encoder: DualEncoder, folder: Path) -> TokenPairs:
    """The pairs of a Parquet file as the encoder reads them, kept in folder and mapped from there.

    A folder that is there is taken as it is: name it for what it was made from.
    """
    if not folder.is_dir():
        table = read_texts(path, *CLUSTERS.values())
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}.", suffix=".part"))
        try:
            for role in ROLES:
                texts = table[COLUMN_OF_ROLE[role]]
                tokens = encoder.tokens(texts, role)
                for name, array in _arrays(tokens, text_keys(texts)).items():
                    np.save(temporary / f"{role}.{name}.npy", array)
            for name, labels in _clusters(table).items():
                np.save(temporary / f"{name}.npy", labels)
            os.replace(temporary, folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    tokens_of, keys_of = {}, {}
    for role in ROLES:
        ids, offsets, lost, keys = (
            np.load(folder / f"{role}.{name}.npy", mmap_mode="r") for name in ("ids", "offsets", "lost", "keys")
        )
        tokens_of[role], keys_of[role] = Tokens(ids, offsets, *lost.tolist()), np.array(keys)
    return TokenPairs(tokens_of, keys_of, {name: np.load(folder / f"{name}.npy") for name in CLUSTERS})


def text_keys(texts: pa.ChunkedArray) -> np.ndarray:
    """(N,) int64, equal for texts that are equal but for their kind of line ends and outer white space."""
    keys = (
        hashlib.blake2b((text or "").replace("\r\n", "\n").strip().encode("utf-8"), digest_size=8).digest()
        for chunk in texts.chunks
        for start in range(0, len(chunk), 4096)
        for text in chunk.slice(start, 4096).to_pylist()
    )
    return np.frombuffer(b"".join(keys), dtype="<i8").astype(np.int64)


class Epochs:
    """The training loader: an iteration is what is left of the epoch that was last set. Its state is its place.

    batches: `len` and `plan(epoch)`, the rows of each batch.
    """

    def __init__(self, pairs: TokenPairs, batches: Batches, workers: int = 0) -> None:
        self.pairs, self.batches, self.workers = pairs, batches, workers
        self.epoch, self.position = 0, 0
        self.sampler = self  # where Lightning looks for set_epoch

    def __len__(self) -> int:
        return len(self.batches)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of epoch, unless that is where the loader is."""
        if epoch != self.epoch or self.position >= len(self):
            self.epoch, self.position = epoch, 0

    def __iter__(self) -> Iterator[Batch]:
        remaining = _Planned(self.pairs, self.batches.plan(self.epoch)[self.position :])
        for batch in DataLoader(remaining, batch_size=None, shuffle=False, num_workers=self.workers):
            self.position += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch, self.position = state["epoch"], state["position"]


class PairsModule(LightningDataModule):
    """Training batches of all pairs, and validation blocks of block pairs, the same ones every epoch.

    batches: which pairs make a training batch, as `laps.Laps` says it. blocks: at most so many; pairs after the last
    whole block are not used, but if there are fewer than one block, that block is smaller.
    """

    def __init__(
        self,
        train: TokenPairs,
        valid: TokenPairs,
        *,
        seed: int,
        batches: Batches,
        block: int = 1000,
        blocks: int = 5,
        workers: int = 0,
    ) -> None:
        super().__init__()
        self.batches = batches
        self._epochs = Epochs(train, self.batches, workers)
        self._valid = valid
        block = min(block, len(valid))
        order = random_of(seed, 0).permutation(len(valid))[: min(blocks, len(valid) // block) * block]
        self.blocks = order.reshape(-1, block)

    def setup(self, stage: str) -> None:
        """On several devices each takes its rows of every batch, and its share of the validation blocks."""
        if self.trainer is not None and isinstance(self.batches, Laps):
            self.batches.share(self.trainer.global_rank, self.trainer.world_size)

    def train_dataloader(self) -> Epochs:
        return self._epochs

    def val_dataloader(self) -> Any:
        blocks = self.blocks
        if self.trainer is not None:
            # Uneven rather than padded; an empty block where there are fewer than devices, for all must validate.
            own = blocks[self.trainer.global_rank :: self.trainer.world_size]
            blocks = own if len(own) else blocks[:1, :0]
        return DataLoader(_Planned(self._valid, blocks), batch_size=None, shuffle=False)


class _Planned(Dataset[Batch]):
    def __init__(self, pairs: TokenPairs, plan: Plan) -> None:
        self._pairs, self._plan = pairs, plan

    def __len__(self) -> int:
        return len(self._plan)

    def __getitem__(self, number: int) -> Batch:
        return self._pairs.batch(self._plan[number])


def _arrays(tokens: Tokens, keys: np.ndarray) -> dict[str, np.ndarray]:
    return {"ids": tokens.ids, "offsets": tokens.offsets, "lost": np.array([tokens.cut, tokens.lost]), "keys": keys}


def _clusters(table: pa.Table) -> dict[str, np.ndarray]:
    repository, file = (
        pc.fill_null(table[name], "").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        for name in ("repository", "path")
    )
    return {"repository": repository, "file": repository * (int(file.max(initial=0)) + 1) + file}
