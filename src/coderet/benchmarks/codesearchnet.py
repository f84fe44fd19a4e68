"""CodeSearchNet's test functions: docstring to code in six languages (Husain et al., 2019, arXiv 1909.09436).

A query is a function's docstring tokens, its document the function's tokens, each joined by a space: as the released
models read them, and so that no Python docstring stands in a document. Three readings of one set:

- `pool`: every query against all functions;
- `block-000`, `block-001`, ...: a query, its function and 999 distractors, scored in both directions: `mrr-1000-paper`
  ranks the block's docstrings for each function, which is what the released code did for the published figures, and
  `mrr-1000` the functions for each docstring, which is what paper and README say.

Blocks are those of the released code: files in sorted order, a shuffle by NumPy's generator of seed 0, 1,000 at a time,
the last ones that fill no block dropped, one smaller block if there are fewer than 1,000. A block's ids are its corpus.
`codesearchnet-all` shuffles all languages together, as the paper's last MRR column did: no mean of the six, and higher
than that, for a distractor of another language is easily told.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coderet.corpora import codesearchnet
from coderet.corpora.codesearchnet import LANGUAGES
from coderet.metrics.scorecards import BLOCK_METRICS
from coderet.records import DOCUMENTS, Benchmark, DataError, Draft, Published, qrels_table, queries_table

FOLDER = "codesearchnet"
SPLIT = "test"
BLOCK = 1000
SEED = 0
FUNCTIONS = {"go": 14_291, "java": 26_909, "javascript": 6_483, "php": 28_391, "python": 22_176, "ruby": 2_279}
PAIRS = pa.schema([(name, pa.large_string()) for name in ("id", "title", "text", "query")])


def readings(folder: Path, languages: Sequence[str], expected: int, block: int = BLOCK) -> Iterator[Draft]:
    """The pool and its blocks; DataError unless the files have just the expected number of functions."""
    pairs = pa.Table.from_batches(_pairs(folder, languages), PAIRS)
    if len(pairs) != expected:
        raise DataError(
            f"{folder / FOLDER} has {len(pairs)} {SPLIT} functions of {', '.join(languages)}, expected {expected}: a "
            "file is missing or another; fetch them again"
        )
    yield _draft("pool", pairs)
    for number, rows in enumerate(blocks(len(pairs), block)):
        yield _draft(f"block-{number:03}", pairs.take(rows))._replace(depth=len(rows), metrics=BLOCK_METRICS)


def blocks(count: int, size: int = BLOCK) -> np.ndarray:
    """(B, size) rows of each block of a set of count functions, in the order of the released code."""
    order = np.random.RandomState(SEED).permutation(count)
    size = min(size, count)
    return order[: count // size * size].reshape(-1, size) if size else np.empty((0, 0), np.int64)


def _pairs(folder: Path, languages: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Ids, names, code and docstrings; an id is language and row in the order of the files, as in "go-000017"."""
    for language in languages:
        row = 0
        for batch in codesearchnet.functions(folder / FOLDER, language, SPLIT):
            ids = pa.array([f"{language}-{row + place:06}" for place in range(len(batch))], pa.large_string())
            code, query = (
                pc.binary_join(batch[name], pa.scalar(" ", pa.large_string()))
                for name in ("code_tokens", "docstring_tokens")
            )
            row += len(batch)
            yield pa.RecordBatch.from_arrays([ids, batch["name"], code, query], schema=PAIRS)


def _draft(name: str, pairs: pa.Table) -> Draft:
    ids = pairs["id"].combine_chunks()
    documents = pairs.select(DOCUMENTS.names).combine_chunks().to_batches()
    return Draft(name, documents, queries_table(ids, pairs["query"].combine_chunks()), qrels_table(ids, ids))


def _benchmark(name: str, column: str, languages: Sequence[str], differs: str = "") -> Benchmark:
    count = sum(FUNCTIONS[language] for language in languages)

    def collect(folder: Path) -> Iterator[Draft]:
        return readings(folder, languages, count)

    return Benchmark(
        name=name,
        collect=collect,
        metrics=("mrr", "ndcg@10", "recall@10", "recall@100", "hit@1"),
        licence="of each repository (code); CodeSearchNet kept those that allow redistribution",
        source=f"the test split of CodeSearchNet, {', '.join(languages)}",
        files=tuple(codesearchnet.shards_as_released(FOLDER, language, SPLIT) for language in languages),
        choices={
            "query": "docstring tokens joined by a space",
            "document": "code tokens joined by a space, no docstring in them",
            "blocks": f"of {BLOCK}, files sorted, NumPy seed {SEED}, the rest dropped",
            "ties": "count against, in blocks",
        },
        queries=f"{count:,}",
        documents=f"{count:,}",
        defects=(
            "The published MRR ranks docstrings for code, not code for docstrings: both are given, by their names.",
            "Blocks leave out what fills none; the pool has all.",
            "Functions of one repository may stand in training and test files, whatever the README promises.",
        ),
        published=Published("codesearchnet", f"mrr-{column}", differs),
    )


ALL = "That the paper's last column is this run is inferred from the released code."
BENCHMARKS = {
    **{f"codesearchnet-{each}": _benchmark(f"codesearchnet-{each}", each, (each,)) for each in LANGUAGES},
    "codesearchnet-all": _benchmark("codesearchnet-all", "all", LANGUAGES, ALL),
}
