"""Pairs as batches of token ids, in an order that a seed fixes and a killed run finds again.

Pairs, and the other texts that may stand for them (`augmentation`), are tokenised once into flat arrays in the work
folder and memory-mapped from there. Which pairs make a batch is said by `batches`. The training loader carries its
place as state, so Lightning resumes inside an epoch; the number of its workers changes nothing.
"""

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from lightning.pytorch import LightningDataModule
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from coderet import paths, registry
from coderet.encoders.encoding import Role
from coderet.encoders.tokenizer import PADDING, Tokens
from coderet.training.batches import Batches, Mixture, Plan, Traits, random_of
from coderet.training.laps import Laps
from coderet.training.mixture import NO_ROW, gathered
from coderet.training.negatives import Negatives, negatives_of
from coderet.training.variants import ROLES, Shares, Texts, Variants

CLUSTERS = ("repository", "file")


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

    The first N texts of a role are the pairs' own, those behind them what `variants` names. A question has the key of
    its doc comment and a renamed function that of the function. clusters: (N,) int64 labels, equal for pairs of one
    repository and of one file. facts: for the results file. fill: the token id that pads.
    """

    tokens: dict[Role, Tokens]
    keys: dict[Role, np.ndarray]
    clusters: dict[str, np.ndarray] = field(default_factory=dict)
    mixture: Mixture | None = None
    variants: Variants | None = None
    negatives: Negatives | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    fill: int = PADDING

    def __len__(self) -> int:
        return len(self.keys["query"])

    @property
    def traits(self) -> Traits:
        """What `batches_of` goes by."""
        own = np.arange(len(self))[:, None]
        places: dict[Role, list[np.ndarray]] = {"query": [own], "document": [own]}
        if self.variants is not None:
            places["query"] += [self.variants.names[:, None], self.variants.questions]
            places["document"] += [self.variants.masked[:, None], self.variants.titled[:, None], self.variants.renamed]
        longest = []
        for role in ROLES:
            each = np.concatenate(places[role], axis=1)
            longest.append(np.where(each == NO_ROW, 0, self.tokens[role].lengths[each]).max(axis=1))
        return Traits(self.keys["query"], self.keys["document"], self.clusters, np.stack(longest, axis=1), self.mixture)

    def batch(self, rows: np.ndarray, epoch: int | None = None) -> Batch:
        """The pairs in rows, each side padded to its longest; with an epoch, as they are drawn for it."""
        query_keys, document_keys = (self.keys[role][rows] for role in ROLES)
        queries, documents, variants = rows, rows, self.variants
        if epoch is not None and variants is not None:
            named = variants.named(rows, epoch)
            queries, documents = variants.queries(rows, epoch), variants.documents(rows, epoch)
            documents = np.where(named, variants.masked[rows], documents)
            query_keys = np.where(named, variants.name_keys[rows], query_keys)
        negatives, teacher = None, None
        if epoch is not None and self.negatives is not None:
            chosen, scores = self.negatives.drawn(rows, epoch)
            codes = chosen.ravel() if variants is None else variants.documents(chosen.ravel(), epoch)
            negatives = self._side("document", codes, self.keys["document"][chosen.ravel()])
            teacher = torch.from_numpy(scores)
        return Batch(
            self._side("query", queries, query_keys),
            self._side("document", documents, document_keys),
            negatives,
            teacher,
        )

    def _side(self, role: Role, places: np.ndarray, keys: np.ndarray) -> Side:
        ids, mask = self.tokens[role].padded(places, fill=self.fill)
        return Side(torch.from_numpy(ids), torch.from_numpy(mask), torch.from_numpy(keys))


def tokenised(
    path: Path,
    encoder: Any,
    folder: Path,
    seed: int = 0,
    *,
    files: Mapping[str, Any] | None = None,
    mixture: Mapping[str, Any] | None = None,
    smoothing: float | None = None,
    epoch_pairs: int = 0,
    names: float = 0.0,
    name_letters: int = 12,
    questions: float = 0.0,
    renamed: float = 0.0,
    variants: int = 3,
    names_from: Literal["corpus", "numbers"] = "corpus",
    titles: float = 0.0,
    unnamed: float = 0.0,
    a_repository: int = 0,
    negatives: str | None = None,
    negatives_a_pair: int = 1,
) -> TokenPairs:
    """The pairs of a Parquet file as the encoder reads them, kept in folder and mapped from there.

    A folder that is there is taken as it is: name it for what it was made from, the settings and `inputs` included.

    files, mixture, smoothing, epoch_pairs: as in `mixture.gathered`. names: the part of pairs whose query is the
    function's name in an epoch, of those whose name has name_letters characters. questions: the part of the others
    whose query is one of `augmentation.questions`. renamed: the part whose code has other local names, one of so many
    variants drawn from other functions (corpus) or numbered. titles: the part of mined pairs whose code stands behind
    its qualified name, as it does in an index that reads titles; unnamed: the part whose code has no name; renamed is
    for what is left. a_repository: at most so many pairs of a repository are used, 0 for all. negatives: what mined
    them, a name in data/negatives; negatives_a_pair of them stand in a batch.
    """
    shares = Shares(names, questions, renamed, titles, unnamed)
    for name, value, low, high in (
        *((name, value, 0, 1) for name, value in shares._asdict().items()),
        ("titles and unnamed together", titles + unnamed, 0, 1),
        ("name_letters", name_letters, 1, math.inf),
        ("a_repository", a_repository, 0, math.inf),
        ("variants", variants, 1, math.inf),
        ("negatives_a_pair", negatives_a_pair, 1, math.inf),
    ):
        registry.check_range(f"fit.pairs.{name}", value, low, high)
    if not folder.is_dir():
        found = gathered(path, files, mixture, smoothing, epoch_pairs, a_repository, seed)
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}.", suffix=".part"))
        try:
            texts = Texts(encoder, found.table)
            arrays = _clusters(found.table)
            if any(shares):
                mined = found.rows != NO_ROW
                arrays |= texts.varied(seed, shares, name_letters, variants, names_from == "corpus", mined)
            if found.mixture is not None:
                arrays["sources"] = found.mixture.sources
            if negatives is not None:
                arrays |= negatives_of(found, path, paths.negatives(negatives))
            for name, array in (arrays | texts.arrays()).items():
                np.save(temporary / f"{name}.npy", array)
            mixed = found.mixture and found.mixture._replace(sources=np.empty(0))._asdict() | {"sources": None}
            (temporary / "facts.json").write_text(json.dumps({"facts": found.facts, "mixture": mixed}))
            os.replace(temporary, folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    pairs = _read(folder, shares, negatives_a_pair, seed)
    return replace(pairs, fill=getattr(encoder, "fill", PADDING))


def inputs(*, files: Mapping[str, Any] | None = None, negatives: str | None = None, **_: Any) -> list[Path]:
    """The files that `tokenised` with these settings reads beside the mined pairs."""
    own = files.values() if isinstance(files, Mapping) else ()
    named = [Path(each) for each in own if isinstance(each, str | Path)]  # what is none is refused where it is read
    return [*named, *([paths.negatives(negatives)] if negatives is not None else [])]


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
        remaining = _Planned(self.pairs, self.batches.plan(self.epoch)[self.position :], self.epoch)
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
    """Batches of a plan, the pairs as they are in an epoch, or as they were written if it is None."""

    def __init__(self, pairs: TokenPairs, plan: Plan, epoch: int | None = None) -> None:
        self._pairs, self._plan, self._epoch = pairs, plan, epoch

    def __len__(self) -> int:
        return len(self._plan)

    def __getitem__(self, number: int) -> Batch:
        return self._pairs.batch(self._plan[number], self._epoch)


def _read(folder: Path, shares: Shares, negatives_a_pair: int, seed: int) -> TokenPairs:
    arrays = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}
    kept = json.loads((folder / "facts.json").read_text())
    facts, mixture, variants, negatives = kept["facts"], None, None, None
    if kept["mixture"]:
        mixture = Mixture(
            tuple(kept["mixture"]["names"]),
            np.array(arrays["sources"]),
            tuple(kept["mixture"]["shares"]),
            kept["mixture"]["pairs"],
        )
    if "names" in arrays:
        variants = Variants.of(arrays, shares, seed)
        facts |= variants.facts
    if "negative_rows" in arrays:
        negatives = Negatives.of(arrays, negatives_a_pair, seed)
        facts |= negatives.facts
    tokens = {
        role: Tokens(arrays[f"{role}.ids"], arrays[f"{role}.offsets"], *arrays[f"{role}.lost"].tolist())
        for role in ROLES
    }
    return TokenPairs(
        tokens,
        {role: np.array(arrays[f"{role}.keys"]) for role in ROLES},
        {name: np.array(arrays[name]) for name in CLUSTERS},
        mixture,
        variants,
        negatives,
        facts,
    )


def _clusters(table: pa.Table) -> dict[str, np.ndarray]:
    repository, file = (
        pc.fill_null(table[name], "").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        for name in ("repository", "path")
    )
    return {"repository": repository, "file": repository * (int(file.max(initial=0)) + 1) + file}
