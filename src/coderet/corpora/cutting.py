"""Training pairs cut against the benchmarks, so that nothing that is measured was learned.

A pair goes if its repository is one that a benchmark is made of, if its code is an exact or near copy of a benchmark
document, or if its text has the words of a benchmark query that is more than a few words long.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coderet.corpora import store
from coderet.corpora.fingerprints import Fingerprints, Threshold, copies_of, equal_texts, fingerprint, first_copies

EXAMPLES = 5


def clean(
    pairs: pa.Table, benchmarks: Sequence[Path], threshold: Threshold, min_query_words: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """(N,) bool, True for the pairs that stay: one of each group of copies, none that `cut` takes; and the counts."""
    prints = fingerprint(pairs["code"], pairs["language"])
    copies, copy_counts = first_copies(prints, threshold)
    held_out = [package for each in benchmarks for package in store.packages(each)]
    stays, leaks = cut(pairs, prints, benchmarks, held_out, threshold, min_query_words)
    return stays & (copies == np.arange(len(copies))), {"copies": copy_counts, "cut": leaks}


def cut(
    pairs: pa.Table,
    prints: Fingerprints,
    benchmarks: Iterable[Path],
    held_out: Sequence[str],
    threshold: Threshold,
    min_query_words: int,
) -> tuple[np.ndarray, dict[str, Any]]:
    """(N,) bool, True for the pairs that stay, and the leak report: counts and a few examples for each benchmark.

    pairs has the columns of PAIRS and prints their fingerprints; benchmarks are folders that `store.write_benchmark`
    wrote, and held_out names the repositories they are made of.
    """
    stays = ~pc.is_in(pairs["repository"], value_set=pa.array(held_out, pa.large_string())).to_numpy()
    report: dict[str, Any] = {"held_out_repositories": int((~stays).sum())}
    by_language = {
        language: (places := pc.equal(pairs["language"], language).to_numpy().nonzero()[0], prints.take(places))
        for language in pc.unique(pairs["language"]).to_pylist()
    }
    for folder in benchmarks:
        documents, queries = _texts(folder)
        copies = np.zeros(len(pairs), bool)
        for language, (places, ours) in by_language.items():
            # The language of a benchmark's documents is not known: they are read as the pairs they are held against.
            read_as = pa.chunked_array([pa.array([language] * len(documents), pa.large_string())])
            copies[places] = copies_of(ours, fingerprint(documents, read_as), threshold) >= 0
        asked = equal_texts(pairs["query"], queries, min_query_words) >= 0
        report[folder.name] = {
            "copies_of_documents": int((copies & stays).sum()),
            "equal_to_queries": int((asked & stays & ~copies).sum()),
            "examples": pairs["pair_id"].filter(pa.array((copies | asked) & stays)).slice(0, EXAMPLES).to_pylist(),
        }
        stays &= ~(copies | asked)
    return stays, report


def _texts(folder: Path) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """The distinct documents and the queries of all datasets of a benchmark."""
    documents = [chunk for name in store.corpora(folder) for chunk in store.read_corpus(folder, name).texts().chunks]
    queries = [
        chunk
        for name in store.datasets(folder)
        for chunk in store.read_dataset(folder, name, judged=False).queries.texts.chunks
    ]
    texts = (pa.chunked_array(chunks, pa.large_string()) for chunks in (documents, queries))
    first, second = (pa.chunked_array([pc.unique(each)], pa.large_string()) for each in texts)
    return first, second
