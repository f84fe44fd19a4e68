import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from coderet.corpora import store
from coderet.metrics import scorecards
from coderet.records import Benchmark, Draft
from coderet.retrievers.answering import answer
from coderet.retrievers.lucene import Lucene


@pytest.fixture
def write_lines(tmp_path) -> Callable[[str, Iterable[dict]], Path]:
    """Write records as a file of JSON lines under tmp_path; returns tmp_path."""

    def write(name: str, records: Iterable[dict]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def bm25_of(tmp_path_factory) -> Callable[..., dict[str, float]]:
    """Collect a benchmark and search it by BM25 over white space: the mean nDCG@10 in percent of each dataset.

    A dataset that has no judged query is left out.
    """

    def figures(benchmark: Benchmark, folder: Path, depth: int = 100, **settings) -> dict[str, float]:
        place = tmp_path_factory.mktemp("bm25")
        store.write_benchmark(place / "b", benchmark.collect(folder, **settings))
        retriever, searchers, found = Lucene(), {}, {}
        for name in store.datasets(place / "b"):
            dataset = store.read_dataset(place / "b", name)
            index = place / dataset.corpus.name.replace("/", "_")
            if index not in searchers:
                retriever.index(dataset.corpus, index)
                searchers[index] = retriever.open(dataset.corpus, index)
            run, _ = answer(searchers[index], dataset, depth, 256)
            card = scorecards.score(dataset, run, ("ndcg@10",))
            if len(card.query_ids):
                found[name] = 100 * float(np.mean(card.values["ndcg@10"]))
        return found

    return figures


@pytest.fixture
def documents_of() -> Callable[[Draft], dict[str, dict]]:
    """The documents of a draft by id."""

    def read(draft: Draft) -> dict[str, dict]:
        return {row["id"]: row for batch in draft.documents for row in pa.Table.from_batches([batch]).to_pylist()}

    return read
