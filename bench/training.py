"""Pairs a second of training: our `nbow` against sentence-transformers' StaticEmbedding, side by side on one set.

The peer is used as its documentation uses it: SentenceTransformerTrainer with MultipleNegativesRankingLoss over a
data set of (anchor, positive), its default optimiser. Ours is `training.fit`, as the stage `fit` calls it. Both have
256 dimensions, batches of 1,024, a byte-pair vocabulary of the same size learned from the same pairs beforehand, up to
200 tokens a document and no dropout. All of the work is counted, from the texts to the weights: tokenising them, which
the peer does in every epoch and we once; our validation after every epoch and our checkpoints, which the peer goes
without. Each side has a process of its own, for either may set how its process keeps memory. Rounds alternate, so that
a busy machine slows both, and the median of the rounds' ratios is printed, of wall time and of processor time, which
other work on the machine does not stretch.

The pairs are documented functions of a few installed packages; give a folder of mined ones for real figures:

    python bench/training.py [--pairs data/pairs] [--most 20000] [--epochs 1 4] [--rounds 5]
"""

import argparse
import contextlib
import io
import json
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coderet import training
from coderet.corpora import mining, store
from coderet.records import PAIRS

PACKAGES = ("networkx", "pandas", "scipy", "sklearn", "sqlalchemy", "sympy", "torch", "transformers")
DIM, BATCH, VOCABULARY = 256, 1024, 16_000
MAX_QUERY_TOKENS, MAX_DOCUMENT_TOKENS = 64, 200
LEARNING_RATE, SCALE = 0.006, 25.0
VALID_SHARE = 20  # one in so many pairs validates
Seconds = dict[str, float]
OURS: Mapping[str, Mapping[str, Any]] = {
    "encoder": {
        "kind": "nbow",
        "dim": DIM,
        "max_query_tokens": MAX_QUERY_TOKENS,
        "max_document_tokens": MAX_DOCUMENT_TOKENS,
    },
    "objective": {"kind": "info-nce", "temperature": 1 / SCALE, "both_directions": False},
    "batches": {"size": BATCH},
}


def write_pairs(source: Path | None, most: int, folder: Path) -> int:
    """Write folder/{train,valid}.parquet of at most so many pairs; how many of them are to be trained on."""
    if source is not None:
        tables = {name: pq.read_table(source / f"{name}.parquet") for name in ("train", "valid")}
    else:
        packages = Path(sysconfig.get_paths()["purelib"])
        found = {name: packages / name for name in PACKAGES if (packages / name).is_dir()}
        batches = mining.mine(found, ["python"], mining.Filters(), 1, mining.Report())
        pairs = pa.Table.from_batches(batches, PAIRS)
        rows = pa.array(range(len(pairs)))
        valid = pa.array([row % VALID_SHARE == 0 for row in range(len(pairs))])
        tables = {
            "train": pairs.take(rows.filter(pa.compute.invert(valid))),
            "valid": pairs.take(rows.filter(valid)),
        }
    for name, table in tables.items():
        store.write_pairs(folder / f"{name}.parquet", [table.slice(0, most)])
    return min(most, len(tables["train"]))


@contextlib.contextmanager
def clocked(seconds: dict[str, float]) -> Iterator[None]:
    """Put the block's wall and processor seconds, of all threads, into seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    yield
    seconds |= {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}


def by_coderet(pairs: Path, tokenizers: Path, settings: Mapping[str, Any], epochs: int) -> tuple[Seconds, float]:
    """Seconds of the whole fit, and its best validation MRR."""
    seconds: Seconds = {}
    with tempfile.TemporaryDirectory() as work, clocked(seconds):
        _, facts = training.fit(
            pairs,
            tokenizers,
            {**OURS, "training": {"epochs": epochs, "learning_rate": LEARNING_RATE, **settings}},
            Path(work),
            seed=13,
        )
    return seconds, facts["best_validation_mrr"]


def by_sentence_transformers(pairs: Path, model: str, epochs: int) -> tuple[Seconds, None]:
    """Seconds of the whole training."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(model)
    tokenizer.enable_truncation(MAX_DOCUMENT_TOKENS)
    seconds: Seconds = {}
    with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()), clocked(seconds):
        table = pq.read_table(pairs / "train.parquet", columns=["query", "code"])
        encoder = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=DIM)], device="cpu")
        trainer = SentenceTransformerTrainer(
            model=encoder,
            args=SentenceTransformerTrainingArguments(
                output_dir=work,
                num_train_epochs=epochs,
                per_device_train_batch_size=BATCH,
                learning_rate=LEARNING_RATE,
                warmup_steps=50,
                dataloader_drop_last=True,
                use_cpu=True,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                logging_strategy="no",
                seed=13,
            ),
            train_dataset=Dataset(table.rename_columns(["anchor", "positive"])),
            loss=MultipleNegativesRankingLoss(encoder, scale=SCALE),
        )
        trainer.train()
    return seconds, None


def peer_vocabulary(pairs: Path) -> str:
    """A byte-level BPE of the peer's library over the same pairs, of the size of ours."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    table = pq.read_table(pairs / "train.parquet", columns=["query", "code"])
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        (text for column in table.columns for text in column.to_pylist()),
        trainers.BpeTrainer(vocab_size=VOCABULARY, show_progress=False),
    )
    return tokenizer.to_str()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, help="a folder of train.parquet and valid.parquet")
    parser.add_argument("--most", type=int, default=20_000, help="pairs of each side at most")
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--training", type=json.loads, default={}, help="settings of fit.training, as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        folder, tokenizers = Path(place) / "pairs", Path(place) / "tokenizers"
        folder.mkdir()
        count = write_pairs(arguments.pairs, arguments.most, folder)
        training.train_vocabulary(folder, tokenizers, kind="bpe", size=VOCABULARY, min_count=2)
        vocabulary = peer_vocabulary(folder)
        sides = {
            "sentence-transformers": partial(by_sentence_transformers, folder, vocabulary),
            "coderet": partial(by_coderet, folder, tokenizers, arguments.training),
        }
        pools = {name: stack.enter_context(ProcessPoolExecutor(1, get_context("spawn"))) for name in sides}
        for name, side in sides.items():  # warm: imports, file cache, threads
            pools[name].submit(side, 1).result()
        for epochs in arguments.epochs:
            taken: dict[str, list[Seconds]] = {name: [] for name in sides}
            for _ in range(arguments.rounds):
                for name, side in sides.items():
                    seconds, score = pools[name].submit(side, epochs).result()
                    taken[name].append(seconds)
            done = epochs * (count // BATCH) * BATCH
            result: dict[str, Any] = {"pairs": count, "epochs": epochs, "rounds": arguments.rounds}
            for clock in ("wall", "processor"):
                speeds = {name: [done / each[clock] for each in rounds] for name, rounds in taken.items()}
                ratios = [ours / peer for peer, ours in zip(*speeds.values(), strict=True)]
                result[f"pairs_per_{clock}_second"] = {
                    name: round(statistics.median(each)) for name, each in speeds.items()
                }
                result[f"{clock}_ratio_median"] = round(statistics.median(ratios), 2)
                result[f"{clock}_ratio_lowest"] = round(min(ratios), 2)
            result["validation_mrr"] = round(score, 4)
            print(json.dumps(result, indent=2), flush=True)


if __name__ == "__main__":
    main()
