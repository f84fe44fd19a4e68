"""A table of token vectors that stands in for a transformer: `encoders.static` made from a teacher and mined pairs.

In two steps. First, as model2vec does it, the teacher reads every token of the vocabulary alone; the mean of what it
says is taken off, and a token weighs a / (a + p), p being its share of all tokens (Arora et al., 2017). Here p is
counted in the pairs, not guessed from the token's rank. Then the table is trained: each text's vector is drawn to the
one that the teacher has for it, and each query's to its own code and away from the others' (`losses.info_nce`).

Fewer dimensions than the teacher's are those directions in which its vectors of texts are longest (their right singular
vectors, nothing taken off first), so that dot products are kept as well as so many dimensions can.

>>> encoder, facts = distil(encoders.load(Path("models/retrievers/minilm-code/encoder")), Path("data/pairs"),
...                         Path(".work/distil"), seed=13, epochs=5)
>>> encoder.save(Path("models/retrievers/static-code/encoder"))
"""

import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from coderet import registry
from coderet.encoders import encoding, memory
from coderet.encoders.encoding import Role
from coderet.encoders.static import Static, means, over_code_words
from coderet.encoders.tokenizer import BpeTokenizer, Tokens, train_bpe
from coderet.records import DataError, Encoder
from coderet.training import augmentation, optimising
from coderet.training.batches import RandomBatches, random_of
from coderet.training.keys import text_keys
from coderet.training.losses import info_nce, reciprocal_ranks, same_text
from coderet.training.mixture import gathered
from coderet.training.variants import COLUMN_OF_ROLE, ROLES

VALID_BLOCK = 1000


def distil(
    teacher: Encoder,
    pairs_folder: Path,
    cache: Path | None,
    seed: int,
    *,
    files: Mapping[str, Any] | None = None,
    questions: float = 0.0,
    vocabulary: int = 40_000,
    min_count: int = 2,
    dim: int | None = None,
    max_tokens: int | None = 512,
    rarity: float = 1e-3,
    taught: int | None = None,
    faithfulness: float = 0.7,
    temperature: float = 0.05,
    epochs: int = 5,
    batch: int = 1024,
    learning_rate: float = 0.005,
    warmup: int = 50,
) -> tuple[Static, dict[str, Any]]:
    """The encoder, and the facts of its making for a results file.

    cache: where the teacher's vectors are kept between calls. files: further pairs, files by name as in
    `mixture.gathered`. questions: part of the pairs whose query is put as people ask (`augmentation.asked`), for both
    the teacher and the table: of questions, their first words say least, and doc comments do not show it. vocabulary:
    token ids, learned from the pairs' code words; min_count: how often pieces must meet to become one. dim: of the
    vectors, by default the teacher's. max_tokens: of a text, when training and ever after. rarity: a of the tokens'
    weights at the start; larger ones make them more alike. taught: pairs, drawn by the seed, whose texts the teacher
    reads, by default all: what takes the time. faithfulness: the share of the loss that is the distance to the
    teacher's vectors (1 - cosine); the rest is info_nce over batches of pairs, both ways, at this temperature. epochs
    may be 0: then the first step is all.
    """
    for name, value, low, high in (
        ("questions", questions, 0, 1),
        ("vocabulary", vocabulary, 5, math.inf),
        ("min_count", min_count, 1, math.inf),
        ("dim", teacher.dim if dim is None else dim, 1, teacher.dim),
        ("max_tokens", max_tokens or 1, 1, math.inf),
        ("rarity", rarity, 1e-12, math.inf),
        ("taught", 1 if taught is None else taught, 1, math.inf),
        ("faithfulness", faithfulness, 0, 1),
        ("temperature", temperature, 1e-4, math.inf),
        ("epochs", epochs, 0, math.inf),
        ("batch", batch, 2, math.inf),
        ("learning_rate", learning_rate, 1e-12, math.inf),
        ("warmup", warmup, 0, math.inf),
    ):
        registry.check_range(f"fit.{name}", value, low, high)
    memory.keep_freed()
    torch.manual_seed(seed)
    start = time.perf_counter()
    found = {
        "train": gathered(pairs_folder / "train.parquet", files),
        "valid": gathered(pairs_folder / "valid.parquet"),
    }
    pairs = {name: each.table for name, each in found.items()}
    texts: dict[Role, pa.ChunkedArray] = {role: pairs["train"][COLUMN_OF_ROLE[role]] for role in ROLES}
    if questions:
        texts["query"] = _asked(pairs["train"], questions, seed)
    if len(pairs["train"]) < 2:
        raise DataError("train.parquet has 1 pair; wanted two at least, which are each other's negatives")
    pieces = train_bpe(texts.values(), vocabulary, min_count)
    tokenizer = over_code_words(pieces)
    rows = np.sort(random_of(seed, 0).permutation(len(pairs["train"]))[:taught])
    said = {role: _said(teacher, each.take(pa.array(rows)), role, cache) for role, each in texts.items()}
    directions = _directions(np.concatenate(list(said.values())), dim or teacher.dim)
    reader = Static(tokenizer, torch.zeros(len(pieces), 1), max_tokens=max_tokens, code_words=True)
    tokens = {role: reader.tokens(each, role) for role, each in texts.items()}
    if not all(len(each.ids) for each in tokens.values()):
        raise DataError("the queries or the code of train.parquet hold no word, only signs; wanted words in both")
    table = _first_table(teacher, pieces, tokens.values(), rarity, cache) @ directions
    seconds = {"teacher_seconds": time.perf_counter() - start}

    start = time.perf_counter()
    lesson = _Lesson(
        tokens,
        {role: text_keys(each) for role, each in texts.items()},
        {role: normalize(torch.from_numpy(each) @ directions, dim=1) for role, each in said.items()},
        _places(rows, len(pairs["train"])),
    )
    valid = {role: reader.tokens(pairs["valid"][COLUMN_OF_ROLE[role]], role) for role in ROLES}
    untrained_mrr = _validation_mrr(table, valid)
    weights = nn.Parameter(table)
    optimizer = torch.optim.Adam([weights], lr=learning_rate, fused=True)
    batches = RandomBatches(len(pairs["train"]), min(batch, len(pairs["train"])), seed)
    schedule = optimising.schedule(optimizer, "linear", warmup, max(1, epochs * len(batches)))
    curve: list[dict[str, float]] = []
    for epoch in range(epochs):
        total = 0.0
        for chosen in batches.plan(epoch):
            optimizer.zero_grad()
            loss = lesson.loss(weights, chosen, faithfulness, temperature)
            if not torch.isfinite(loss):
                raise DataError(
                    f"the loss is {loss.item()} in epoch {epoch + 1}; lower fit.learning_rate or raise fit.temperature"
                )
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        curve.append(
            {
                "step": (epoch + 1) * len(batches),
                "epoch": epoch,
                "seconds": time.perf_counter() - start,
                "loss": total / len(batches),
                "validation_mrr": _validation_mrr(weights.detach(), valid),
            }
        )
    seconds["seconds"] = time.perf_counter() - start
    encoder = Static(tokenizer, weights.detach(), max_tokens=max_tokens, code_words=True)
    return encoder, {
        **seconds,
        "pairs": len(pairs["train"]),
        "pairs_by_source": found["train"].facts["pairs_by_source"],
        "pairs_taught": len(rows),
        "pairs_without_a_side": found["train"].facts["pairs_without_a_side"],
        "validation_pairs": sum(map(len, _blocks(len(pairs["valid"])))),
        "pairs_left_over": batches.left_over,
        "pairs_per_second": epochs * len(batches) * batches.batch / seconds["seconds"],
        "epochs": epochs,
        "steps": epochs * len(batches),
        "best_epoch": epochs,  # the last one is kept: validation pairs are of one language and one kind of query
        "best_validation_mrr": curve[-1]["validation_mrr"] if curve else untrained_mrr,
        "untrained_validation_mrr": untrained_mrr,
        "parameters": encoder.parameters_count,
        "documents_cut": tokens["document"].cut,
        "document_tokens_lost": tokens["document"].lost,
        "curve": curve,
    }


class _Lesson:
    """tokens, keys (N,) and the teacher's unit vectors (n, dim), by role; places (N,): whose row of these, or -1."""

    def __init__(
        self,
        tokens: dict[Role, Tokens],
        keys: dict[Role, np.ndarray],
        said: dict[Role, Tensor],
        places: np.ndarray,
    ) -> None:
        self._tokens, self._keys, self._said, self._places = tokens, keys, said, places

    def loss(self, table: Tensor, rows: np.ndarray, faithfulness: float, temperature: float) -> Tensor:
        """The scalar of a batch of pairs; pairs that the teacher has not read are in its contrastive part only."""
        vectors = {role: normalize(_vectors(table, each, rows), dim=1) for role, each in self._tokens.items()}
        keys = (torch.from_numpy(self._keys[role][rows]) for role in ROLES)
        apart = info_nce(
            vectors["query"], vectors["document"], temperature, same=same_text(*keys), both_directions=True
        )
        places = self._places[rows]
        read = torch.from_numpy(np.flatnonzero(places >= 0))
        if not faithfulness or not len(read):
            return apart
        wanted = torch.from_numpy(places[places >= 0])
        distances = [1 - (vectors[role][read] * self._said[role][wanted]).sum(1).mean() for role in ROLES]
        return (1 - faithfulness) * apart + faithfulness * (distances[0] + distances[1]) / 2


def _asked(pairs: pa.Table, share: float, seed: int) -> pa.ChunkedArray:
    languages = [each or "" for each in pairs["language"].to_pylist()]
    texts = augmentation.asked(pairs["query"].to_pylist(), languages, share, seed)
    return pa.chunked_array([pa.array(texts, pairs["query"].type)])


def _said(teacher: Encoder, texts: pa.ChunkedArray, role: Role, cache: Path | None) -> np.ndarray:
    return encoding.encode(teacher, texts, role, cache=cache, progress=f"teacher, {role}")


def _directions(vectors: np.ndarray, dim: int) -> Tensor:
    """(D, dim) orthonormal columns along which vectors (N, D) are longest; the identity if dim is D."""
    if dim == vectors.shape[1]:
        return torch.eye(dim)
    # By the D x D matrix of second moments in float64: exact enough, and no (N, D) factor.
    _, found = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)
    return torch.from_numpy(found[:, ::-1][:, :dim].astype(np.float32))


def _first_table(teacher: Encoder, pieces: BpeTokenizer, tokens: Any, rarity: float, cache: Path | None) -> Tensor:
    """(V, D) what the teacher says of each token alone, less the mean, by the token's weight."""
    names = pa.chunked_array([pa.array(pieces.names(), pa.large_string())])
    vectors = _said(teacher, names, "document", cache)
    counts = np.sum([np.bincount(each.ids, minlength=len(pieces)) for each in tokens], axis=0)
    weights = rarity / (rarity + counts / counts.sum())
    return torch.from_numpy(((vectors - vectors.mean(0)) * weights[:, None]).astype(np.float32))


def _vectors(table: Tensor, tokens: Tokens, rows: np.ndarray) -> Tensor:
    """(B, dim) means of the texts in rows."""
    chosen = tokens.chosen(rows)
    return means(torch.from_numpy(chosen.ids), torch.from_numpy(chosen.offsets), table)


def _places(rows: np.ndarray, count: int) -> np.ndarray:
    places = np.full(count, -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    return places


def _validation_mrr(table: Tensor, tokens: dict[Role, Tokens]) -> float:
    """The mean over blocks of VALID_BLOCK pairs, each query against the code of its block."""
    with torch.inference_mode():
        found = [
            reciprocal_ranks(*(normalize(_vectors(table, tokens[role], rows), dim=1) for role in ROLES))
            for rows in _blocks(len(tokens["query"]))
        ]
    return float(torch.cat(found).mean())


def _blocks(count: int) -> Iterator[np.ndarray]:
    block = min(VALID_BLOCK, count)
    for start in range(0, count - block + 1, block):
        yield np.arange(start, start + block)
