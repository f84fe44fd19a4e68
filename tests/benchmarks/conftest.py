import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from measured import bm25_figures

from coderet.benchmarks import benchmark
from coderet.corpora import store
from coderet.records import Benchmark, Draft


@pytest.fixture
def write_lines(tmp_path) -> Callable[[str, Iterable[dict]], Path]:
    """Write records as a file of JSON lines under tmp_path; returns tmp_path."""

    def write(name: str, records: Iterable[dict]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture(scope="session")
def bm25_indexes(tmp_path_factory) -> Path:
    """Where indexes lie that several tests search."""
    return tmp_path_factory.mktemp("indexes")


@pytest.fixture
def bm25_of(tmp_path, bm25_indexes) -> Callable[..., dict[str, float]]:
    """Collect a benchmark and search it by BM25 over white space: the mean nDCG@10 in percent of each dataset.

    A dataset that has no judged query is left out.
    """

    def figures(of: Benchmark, folder: Path, depth: int = 100, **settings) -> dict[str, float]:
        store.write_benchmark(tmp_path / "b", of.collect(folder, **settings))
        return bm25_figures(tmp_path / "b", bm25_indexes, depth)

    return figures


@pytest.fixture(scope="session")
def devdocs(real_data, tmp_path_factory) -> Callable[[str], Path]:
    """All that is asked of the DevDocs documentation, as one stored benchmark whose datasets share the corpus.

    The ending is that of the benchmarks' names: "devdocs" or "devdocs-pages". Datasets are called after their kinds.
    """
    place = tmp_path_factory.mktemp("devdocs")

    def drafts(ending: str) -> Iterator[Draft]:
        kinds = [f"odex-{ending}", f"ds1000-{ending}-paper"]
        for kind in [*kinds, "ds1000-devdocs", "docprompting"] if ending == "devdocs" else kinds:
            (draft,) = benchmark(kind).collect(real_data)
            documents = draft.documents if kind == kinds[0] else kinds[0]
            yield draft._replace(name=kind, documents=documents)

    def collected(ending: str) -> Path:
        if not (place / ending).is_dir():
            store.write_benchmark(place / ending, drafts(ending))
        return place / ending

    return collected


@pytest.fixture
def documents_of() -> Callable[[Draft], dict[str, dict]]:
    """The documents of a draft by id."""

    def read(draft: Draft) -> dict[str, dict]:
        return {row["id"]: row for batch in draft.documents for row in pa.Table.from_batches([batch]).to_pylist()}

    return read
