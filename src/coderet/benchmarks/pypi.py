"""Functions of Python packages that nothing here is trained on: docstring to code.

A query is the first paragraph of a function's docstring, its document the function without it. The pairs are made as
CodeSearchNet's are (Husain et al., 2019), copies taken out, and at most so many of a package drawn by the seed, so that
no package rules the mean. Two readings of one set:

- `pool`: every query against all functions;
- `block-00`, `block-01`, ...: 1,000 queries and their functions each, CodeSearchNet's MRR with 999 distractors; what is
  left over after the last whole block is in the pool only. The ids of a block are its corpus.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coderet.corpora import mining
from coderet.corpora.fingerprints import Threshold, fingerprint, first_copies
from coderet.metrics.scorecards import BLOCK_METRICS
from coderet.records import PAIRS, Benchmark, DataError, Draft, documents_batch, qrels_table, queries_table


def collect(
    folder: Path,
    *,
    functions: int,
    functions_a_package: int = 600,
    block: int = 1000,
    seed: int = 13,
    processes: int = 2,
) -> Iterator[Draft]:
    """The pool and its blocks; DataError unless the pool has just the expected number of functions."""
    batches = mining.mine(mining.repositories(folder), ("python",), processes=processes)
    pairs = pa.Table.from_batches(batches, PAIRS)
    copies, _ = first_copies(fingerprint(pairs["code"], pairs["language"]), Threshold())
    pairs = pairs.filter(pa.array(copies == np.arange(len(pairs))))
    pairs = pairs.take(_drawn(pairs, functions_a_package, seed))
    if len(pairs) != functions:
        raise DataError(
            f"{folder} gives {len(pairs)} functions, expected {functions}: packages, limits or the way functions "
            f"are cut have changed; if that is meant, set `functions: {len(pairs)}` in params.yaml"
        )
    yield _draft("pool", pairs)
    order = np.random.default_rng(seed).permutation(len(pairs))
    for number in range(len(pairs) // block):
        chosen = pairs.take(np.sort(order[number * block : (number + 1) * block]))
        yield _draft(f"block-{number:02}", chosen)._replace(depth=block, metrics=BLOCK_METRICS)


def _drawn(pairs: pa.Table, limit: int, seed: int) -> np.ndarray:
    """Rows of at most limit pairs of each repository, those of the lowest hash of seed and id, in order."""
    hashes = [hashlib.sha256(f"{seed}:{each}".encode()).digest()[:8] for each in pairs["pair_id"].to_pylist()]
    lottery = np.frombuffer(b"".join(hashes), ">u8")
    repository = pc.dictionary_encode(pairs["repository"]).combine_chunks().indices.to_numpy()
    order = np.lexsort((lottery, repository))
    first = np.searchsorted(repository[order], repository[order])
    return np.sort(order[np.arange(len(order)) - first < limit])


def _draft(name: str, pairs: pa.Table) -> Draft:
    ids = pairs["pair_id"].to_pylist()
    return Draft(
        name,
        [documents_batch(ids, pairs["name"].to_pylist(), pairs["code"].to_pylist())],
        queries_table(ids, pairs["query"].to_pylist()),
        qrels_table(ids, ids),
    )


BENCHMARK = Benchmark(
    name="pypi",
    collect=collect,
    metrics=("ndcg@10", "mrr", "recall@10", "recall@100", "hit@1"),
    licence="of each package, see params.yaml",
    source="packages of PyPI, pinned by hash",
)
