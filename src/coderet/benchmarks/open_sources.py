"""The five sources of CodeRAG-Bench's open retrieval: what any benchmark's questions may be searched in.

Each is a data set of the hub, `code-rag-bench/<id>`, read from a folder of that name under the raw files: `text` is the
document, `title` its title if there is one, its id the number of its row. Two may be had without the hub, where its
folder is not there: the solutions are made of HumanEval and all four splits of MBPP, the documentation is
DocPrompting's file. The documentation made of DevDocs is a source of another name, for it is another corpus.
StackOverflow is 23.5 million documents and GitHub 1.7 million: all are streamed. Any source can be cut into chunks, as
it is read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from coderet.benchmarks import humaneval, library_docs, mbpp
from coderet.corpora import chunking, hub
from coderet.corpora.chunking import Chunker
from coderet.records import DOCUMENTS, DataError, Released
from coderet.registry import nearest

OWNER = "code-rag-bench"
SPLIT = "train"
SOLUTIONS = 1138


@dataclass(frozen=True)
class Source:
    """hub_id: its data set of OWNER, empty if none.

    made: its documents without the hub, from made_of; None if there is no way.
    """

    name: str
    hub_id: str
    made: Callable[[Path], Iterator[pa.RecordBatch]] | None = None
    made_of: tuple[Released, ...] = ()

    @property
    def files(self) -> tuple[Released, ...]:
        """What it is read from: files that it is made of if there is a way, for they have addresses and hashes."""
        if self.made is not None:
            return self.made_of
        how = (
            f"the data set {OWNER}/{self.hub_id} of the hub, all its files in a folder of this name; no commit is known"
        )
        return (Released(f"{OWNER}/{self.hub_id}/", None, how=how),)

    def batches(self, folder: Path, chunker: Chunker | None = None) -> Iterator[pa.RecordBatch]:
        """The documents, or with a chunker their chunks, streamed; DataError if they are not there."""
        documents = self._documents(folder)
        return documents if chunker is None else chunking.chunks(documents, chunker)

    def _documents(self, folder: Path) -> Iterator[pa.RecordBatch]:
        place = folder / OWNER / self.hub_id
        if self.hub_id and place.is_dir():
            return _of_hub(place)
        if self.made is not None:
            return self.made(folder)
        raise DataError(
            f"{folder} lacks the source {self.name}; put the data set {OWNER}/{self.hub_id} of the hub into {place}"
        )


def source(name: str) -> Source:
    """The source of that name; DataError offers the nearest."""
    if name not in SOURCES:
        raise DataError(f"no source is called {name!r}; known: {', '.join(SOURCES)}.{nearest(name, SOURCES)}")
    return SOURCES[name]


def _of_hub(place: Path) -> Iterator[pa.RecordBatch]:
    """The rows of a data set as documents; config and split are those there are, if there is one of each."""
    configs = hub.configs(place)
    config = configs[0] if len(configs) == 1 else hub.DEFAULT
    split = hub.split_or_only(place, config, SPLIT)
    has_title = "title" in hub.columns(place, config, split)
    row = 0
    for batch in hub.batches(place, config, split, ["title", "text"] if has_title else ["text"]):
        ids = pa.array(map(str, range(row, row + len(batch))), pa.large_string())
        text = pc.fill_null(hub.column(batch, "text", pa.large_string()), "")
        empty = pa.repeat(pa.scalar("", pa.large_string()), len(batch))
        title = pc.fill_null(hub.column(batch, "title", pa.large_string()), "") if has_title else empty
        row += len(batch)
        yield pa.RecordBatch.from_arrays([ids, title, text], schema=DOCUMENTS)


def _solutions(folder: Path) -> Iterator[pa.RecordBatch]:
    yield humaneval.solutions(folder)
    tasks = list(mbpp.problems(folder))
    found = humaneval.PROBLEMS + len(tasks)
    if found != SOLUTIONS:
        raise DataError(
            f"{folder} has {found} solutions of HumanEval and MBPP, expected {SOLUTIONS}; a file is not whole"
        )
    yield mbpp.solutions(tasks)


SOURCES = {
    each.name: each
    for each in (
        Source("programming-solutions", "programming-solutions", _solutions, (humaneval.RELEASED, mbpp.FILE)),
        Source("online-tutorials", "online-tutorials"),
        Source(
            "library-documentation",
            "library-documentation",
            library_docs.OFFICIAL.batches,
            library_docs.OFFICIAL.files,
        ),
        Source("stackoverflow-posts", "stackoverflow-posts"),
        Source("github-repos", "github-repos-python"),
        Source("library-documentation-devdocs", "", library_docs.LINES.batches, library_docs.LINES.files),
        Source("library-documentation-devdocs-pages", "", library_docs.PAGES.batches, library_docs.PAGES.files),
    )
}
