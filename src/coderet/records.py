"""The glossary: what corpora, queries, qrels, runs and scorecards are.

Whatever grows with a corpus is columns: Arrow tables with `large_string` columns and NumPy arrays, memory-mapped where
they come from disk, never lists of small objects. Records check themselves once, when made, so nothing below checks
again.

One order rules everything. The documents of a corpus lie in *descending id*, by UTF-8 bytes. Equal scores rank in
descending document id, which is trec_eval's rule; so among equal scores the lowest row comes first, and an index that
keeps the lowest row among ties obeys the rule at its cutoff too.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DOCUMENTS = pa.schema([("id", pa.large_string()), ("title", pa.large_string()), ("text", pa.large_string())])
QUERIES = pa.schema(
    [
        ("id", pa.large_string()),
        ("text", pa.large_string()),
        ("excluded", pa.large_list(pa.large_string())),
        ("withheld", pa.large_list(pa.large_string())),
    ]
)
QRELS = pa.schema(
    [("query_id", pa.large_string()), ("document_id", pa.large_string()), ("grade", pa.float32())],
)
PROBLEMS = pa.schema([("id", pa.large_string()), ("query_id", pa.large_string()), ("problem", pa.large_string())])
PAIRS = pa.schema(
    [
        ("pair_id", pa.large_string()),
        ("repository", pa.large_string()),
        ("path", pa.large_string()),
        ("language", pa.large_string()),
        ("name", pa.large_string()),
        ("query", pa.large_string()),
        ("code", pa.large_string()),
        ("start_line", pa.int32()),
        ("end_line", pa.int32()),
    ]
)

NO_HIT = -1
DIGEST = b"digest"


class DataError(ValueError):
    """Data that would give a wrong number: says what was found, what was wanted and what to do."""


def check_schema(table: pa.Table, schema: pa.Schema, what: str) -> None:
    """Raise DataError unless table has exactly schema's columns and types."""
    if table.schema.remove_metadata() != schema:
        raise DataError(f"{what} has columns {table.schema.names}, wanted {schema.names}")


class TableDigest:
    """SHA-256 of a table of strings that does not depend on how the table is cut into chunks."""

    def __init__(self, schema: pa.Schema) -> None:
        self._columns = {name: (hashlib.sha256(), hashlib.sha256()) for name in schema.names}

    def update(self, rows: pa.Table | pa.RecordBatch) -> "TableDigest":
        """Add rows; null counts as the empty string."""
        for name, (lengths, content) in self._columns.items():
            column = rows[name]
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
                if chunk.null_count:
                    chunk = pc.fill_null(chunk, "")
                lengths.update(pc.binary_length(chunk).to_numpy(zero_copy_only=False).tobytes())
                offsets = np.frombuffer(chunk.buffers()[1], np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
                if len(chunk) and offsets[-1] > offsets[0]:
                    content.update(memoryview(chunk.buffers()[2])[offsets[0] : offsets[-1]])
        return self

    def hexdigest(self) -> str:
        parts = [part.digest() for pair in self._columns.values() for part in pair]
        return hashlib.sha256(b"".join(parts)).hexdigest()


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents in descending id. A document's *row* is its place here.

    table has the columns of DOCUMENTS: ids are distinct and not empty; a missing title is the empty string.
    """

    name: str
    table: pa.Table

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def ids(self) -> pa.ChunkedArray:
        return self.table["id"]

    @cached_property
    def digest(self) -> str:
        """Identity of the documents: their `TableDigest`, read from the file's metadata where it was written there."""
        known = (self.table.schema.metadata or {}).get(DIGEST)
        return known.decode() if known else TableDigest(DOCUMENTS).update(self.table).hexdigest()

    def texts(self, fields: Iterable[str] = ("text",), rows: slice = slice(None)) -> pa.ChunkedArray:
        """What an encoder or an index reads of the documents in rows: the fields that are not empty, joined by a space.

        `("text",)` is CoIR's assembly, `("title", "text")` is MTEB's. Missing and empty titles give the same text.
        """
        table = self.table if rows == slice(None) else self.table.slice(rows.start, rows.stop - rows.start)
        return assemble(table, fields)

    def rows_of(self, ids: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N,) int64 rows of the documents with these ids, NO_HIT where there is none."""
        found = pc.index_in(ids, value_set=self.ids.combine_chunks())
        return pc.fill_null(found, NO_HIT).to_numpy(zero_copy_only=False).astype(np.int64)


def queries_table(
    ids: Iterable[str],
    texts: Iterable[str],
    excluded: Iterable[Iterable[str]] | None = None,
    withheld: Iterable[Iterable[str]] | None = None,
) -> pa.Table:
    """A table of QUERIES from sequences of equal length; without excluded or withheld, none are."""
    columns = [pa.array(ids, pa.large_string()), pa.array(texts, pa.large_string())]
    for each in (excluded, withheld):
        lists: Iterable[Iterable[str]] = [[]] * len(columns[0]) if each is None else each
        columns.append(pa.array(lists, pa.large_list(pa.large_string())))
    return pa.Table.from_arrays(columns, schema=QUERIES)


def qrels_table(
    query_ids: Iterable[str], document_ids: Iterable[str], grades: Iterable[float] | None = None
) -> pa.Table:
    """A table of QRELS from sequences of equal length; without grades, each is 1."""
    queries, documents = pa.array(query_ids, pa.large_string()), pa.array(document_ids, pa.large_string())
    values = pa.array(np.ones(len(queries), np.float32)) if grades is None else pa.array(grades, pa.float32())
    return pa.Table.from_arrays([queries, documents, values], schema=QRELS)


def problems_table(ids: Iterable[str], query_ids: Iterable[str], problems: Iterable[Mapping[str, Any]]) -> pa.Table:
    """A table of PROBLEMS from sequences of equal length; a problem becomes JSON, its keys in order."""
    texts = [json.dumps(each, ensure_ascii=False, sort_keys=True) for each in problems]
    columns = [pa.array(column, pa.large_string()) for column in (ids, query_ids, texts)]
    return pa.Table.from_arrays(columns, schema=PROBLEMS)


def documents_batch(ids: Iterable[str], titles: Iterable[str | None], texts: Iterable[str]) -> pa.RecordBatch:
    """A batch of DOCUMENTS from sequences of equal length; a title that is None becomes empty."""
    columns = [
        pa.array(ids, pa.large_string()),
        pc.fill_null(pa.array(titles, pa.large_string()), ""),
        pa.array(texts, pa.large_string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENTS)


def assemble(table: pa.Table, fields: Iterable[str]) -> pa.ChunkedArray:
    """The named text columns of table joined by a space, empty and missing ones left out; joined text is stripped."""
    fields = tuple(fields)
    unknown = set(fields) - {"title", "text"}
    if unknown or not fields:
        raise DataError(f"text_fields is {list(fields)}; wanted one or both of title, text")
    if fields == ("text",):
        return table["text"]
    columns = [pc.fill_null(table[name], "") for name in fields]
    # Trimming takes the separator beside an empty field. null_handling="skip" drops rows whose fields are all empty.
    joined = pc.binary_join_element_wise(*columns, pa.scalar(" ", pa.large_string()))
    return pc.utf8_trim_whitespace(joined)


@dataclass(frozen=True, eq=False)
class Queries:
    """Questions in the order given. table has the columns of QUERIES.

    excluded names documents that may never be a hit of that query (itself, where queries are documents too);
    withheld names its own canonical answer, kept out of a generator's context but not out of the run.
    """

    table: pa.Table

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def ids(self) -> pa.ChunkedArray:
        return self.table["id"]

    @property
    def texts(self) -> pa.ChunkedArray:
        return self.table["text"]

    @cached_property
    def largest_exclusion(self) -> int:
        """How much deeper than k a search must go so that k hits are left once the excluded ones are taken out."""
        return int(pc.max(pc.list_value_length(self.table["excluded"])).as_py() or 0) if len(self) else 0


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgements. table has the columns of QRELS; a document that is not named counts as not relevant."""

    table: pa.Table

    def __len__(self) -> int:
        return self.table.num_rows


@dataclass(frozen=True, eq=False)
class Dataset:
    """A corpus, its queries and their qrels.

    depth: hits kept a query, None for the depth of the benchmark's params. metrics: those this dataset is judged by,
    empty for the benchmark's. mixed_of: the datasets whose runs make up this one's, instead of a search.
    """

    name: str
    corpus: Corpus
    queries: Queries
    qrels: Qrels
    depth: int | None = None
    metrics: tuple[str, ...] = ()
    mixed_of: tuple[str, ...] = ()

    @property
    def exclusions(self) -> tuple[np.ndarray, np.ndarray]:
        """(E,) int64 places of queries and (E,) int64 rows of the documents that each may not hit."""
        return _exclusions(self.corpus, self.queries.table["excluded"])


class Draft(NamedTuple):
    """A dataset on its way to disk: what a benchmark's `collect` yields. documents are streamed, in any order.

    mixed_of: earlier datasets of the same queries. The documents are then theirs, which the store puts together, each
    with the id `<dataset>/<id>`; none are given. problems: what a generator is asked, a table of PROBLEMS, if the
    benchmark wants answers; query_id names the query whose hits are a problem's context. posed: the name of the
    problems where they are not all of the dataset's, which then have a name and a count of their own. answering: how
    they are asked, where that is not said by the benchmark's record.
    """

    name: str
    documents: Iterable[pa.RecordBatch] | str  # the batches, or the name of a corpus that an earlier draft brought
    queries: pa.Table
    qrels: pa.Table
    depth: int | None = None
    metrics: tuple[str, ...] = ()
    documents_expected: int | None = None
    queries_expected: int | None = None
    judged: bool = True  # False: there are only questions, so that a run can be searched but not scored
    mixed_of: tuple[str, ...] = ()
    problems: pa.Table | None = None
    problems_expected: int | None = None
    posed: str = ""
    answering: str = ""
    shared: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Problems:
    """What a generator is asked. table has the columns of PROBLEMS; dataset is the one whose queries they are of.

    answering: how they are asked, empty where the benchmark's record says so. shared: what they have in common, as one
    object in the field `shared` of each of their contents; None where they have nothing.
    """

    name: str
    dataset: str
    table: pa.Table
    answering: str = ""
    shared: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def ids(self) -> list[str]:
        found: list[str] = self.table["id"].to_pylist()
        return found

    @cached_property
    def contents(self) -> list[dict[str, Any]]:
        """The problems themselves, objects of the benchmark's own fields, in the order given."""
        common = {} if self.shared is None else {"shared": self.shared}
        return [json.loads(each) | common for each in self.table["problem"].to_pylist()]

    def without(self, ids: Iterable[str]) -> "Problems":
        """These less the ones named; DataError if one is not among them."""
        left_out = set(ids)
        if stray := sorted(left_out - set(self.ids)):
            raise DataError(
                f"params.yaml: answering.left_out.{self.name} names {stray[0]!r}, which is no problem of it; its ids "
                f"read like {self.ids[0]!r}"
            )
        kept = pc.invert(pc.is_in(self.table["id"], value_set=pa.array(sorted(left_out), pa.large_string())))
        return replace(self, table=self.table.filter(kept)) if left_out else self


@dataclass(frozen=True, eq=False)
class Run:
    """The hits of every query, best first: the only currency between what retrieves and what judges.

    query_ids: (Q,) ids. rows: (Q, k) int64 rows of `corpus`, NO_HIT after the last hit of a query. scores: (Q, k)
    float32, higher is better, -inf where there is no hit. Made by `Run.of`, which puts equal scores into the one order.
    """

    corpus: Corpus
    query_ids: pa.ChunkedArray
    rows: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, corpus: Corpus, query_ids: pa.ChunkedArray | pa.Array, rows: np.ndarray, scores: np.ndarray) -> "Run":
        """A run from hits in any order; NaN scores, rows outside the corpus and repeated documents raise DataError."""
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        scores = np.ascontiguousarray(scores, dtype=np.float32)
        if isinstance(query_ids, pa.Array):
            query_ids = pa.chunked_array([query_ids])
        if rows.shape != scores.shape or rows.ndim != 2 or len(rows) != len(query_ids):
            raise DataError(
                f"{len(query_ids)} queries, rows {rows.shape} and scores {scores.shape} do not belong together"
            )
        if rows.size and (rows.max() >= len(corpus) or rows.min() < NO_HIT):
            raise DataError(
                f"rows reach from {rows.min()} to {rows.max()} but corpus {corpus.name} has {len(corpus)} documents; "
                "this index does not belong to this corpus: index it again"
            )
        if rows.shape[1] == 0:  # a run is at least one column wide, if only of NO_HIT
            rows, scores = np.full((len(rows), 1), NO_HIT), np.zeros((len(rows), 1), np.float32)
        missing = rows == NO_HIT
        if np.isnan(scores[~missing]).any():
            raise DataError(f"{int(np.isnan(scores[~missing]).sum())} hits have a score that is not a number")
        scores = np.where(missing, np.float32(-np.inf), scores)
        order = np.lexsort((np.where(missing, len(corpus), rows), -scores, missing), axis=1) if rows.size else None
        if order is not None:
            rows, scores = np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)
            by_row = np.sort(rows, axis=1)
            if ((by_row[:, 1:] == by_row[:, :-1]) & (by_row[:, 1:] != NO_HIT)).any():
                raise DataError("a query has the same document twice among its hits")
        return cls(corpus, query_ids, rows, scores)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def depth(self) -> int:
        return self.rows.shape[1]

    def top(self, k: int) -> "Run":
        """The first k hits of every query."""
        return Run(self.corpus, self.query_ids, self.rows[:, :k], self.scores[:, :k])

    def without(self, excluded: pa.ChunkedArray) -> "Run":
        """This run less each query's excluded documents: a (Q,) column of id lists, as in `Queries`. Hits close up."""
        owners, taken = _exclusions(self.corpus, excluded)
        if not len(owners):
            return self
        stride = len(self.corpus) + 1
        keys = np.arange(len(self))[:, None] * stride + self.rows
        gone = np.isin(keys, owners * stride + taken) & (self.rows != NO_HIT)
        rows = np.where(gone, NO_HIT, self.rows)
        scores = np.where(gone, np.float32(-np.inf), self.scores)
        order = np.argsort(rows == NO_HIT, axis=1, kind="stable")
        return Run(
            self.corpus, self.query_ids, np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)
        )


def _exclusions(corpus: Corpus, excluded: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Lists of ids, one a query, as places of queries and rows of corpus; ids that it has not are left out."""
    lists = excluded.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not lengths.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    rows = corpus.rows_of(pc.list_flatten(lists))
    return owners[rows != NO_HIT], rows[rows != NO_HIT]


class Searcher(Protocol):
    """An opened index: answers queries with hits."""

    def search(self, queries: pa.ChunkedArray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(Q, k) int64 rows and (Q, k) float32 scores, best first, NO_HIT and -inf where there are fewer than k."""
        ...


class Retriever(Protocol):
    """What lies in models/retrievers/<name> and answers queries once a corpus is indexed.

    parameters: how many numbers of it were learned, None where nobody says. description: what it is, beyond its
    settings in params.yaml.
    """

    @property
    def parameters(self) -> int | None: ...

    @property
    def description(self) -> Mapping[str, Any]: ...

    def save(self, folder: Path) -> None:
        """Write everything that `load` needs into folder, which is new and empty."""
        ...

    def index(self, corpus: Corpus, folder: Path) -> Mapping[str, float | str]:
        """Index corpus into folder, which is new and empty; returns facts for the results."""
        ...

    def truncation(self, corpus: Corpus) -> Mapping[str, int]:
        """What of corpus is too long to be read: documents_cut and tokens_lost; empty where nothing is cut."""
        ...

    def open(self, corpus: Corpus, folder: Path) -> Searcher:
        """The searcher over an index made by `index`; DataError if it does not belong to corpus."""
        ...


class Encoder(Protocol):
    """Text to vectors. fingerprint names weights, revision, prefixes, lengths, pooling, precision: half a cache key."""

    dim: int
    fingerprint: str

    def encode_queries(self, texts: pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        ...

    def encode_documents(self, texts: pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        ...


@dataclass(frozen=True)
class Released:
    """A file of a benchmark as its authors released it, or a whole folder of them.

    name: its path under data/raw/<benchmark>, with a slash at the end if it is a folder. sha256: of its content,
    unpacked if it is a `.gz`; None for what is pinned otherwise, by a hub's commit. place: where it is to be had, a
    line as in `corpora.pins` (`url:`, `hub:`); empty where no address gives it, and then how says how to come by it.
    """

    name: str
    sha256: str | None
    place: str = ""
    how: str = ""


@dataclass(frozen=True)
class Published:
    """Which figures of a paper a benchmark's are to be laid beside.

    page: a file of data/published, without `.yaml`; column: the benchmark's name in its tables. differs: what of the
    benchmark is not as it was in the paper, so that the figures may differ; empty where nothing is known to.
    """

    page: str
    column: str
    differs: str = ""


@dataclass(frozen=True)
class Benchmark:
    """Facts about a benchmark; where its files come from may be changed in params.

    collect: yields the drafts of its datasets from the folder of its raw files; its settings in params are the
    keyword-only arguments.
    metrics: what is computed; the first is the headline; none if it has no judgements, only questions. mean: over all
    queries, or over datasets with equal weight. resampled: what intervals are drawn of, queries, or whole datasets
    where the queries of one depend on each other.
    files: what its raw files are, for `source: [official]`; chosen_files: further ones that turn on its settings, which
    it takes as `collect` does. choices: what was decided where a protocol leaves a choice;
    written into every result. queries and documents: how many there are, in words. defects: what is known to be wrong
    with it, and what is done about that. packages: names of the PyPI packages whose code its official files hold, from
    which nothing is learned. gauged: metrics that say how hard it is when it is built, by BM25 and by a random order
    (`metrics.difficulty`).
    """

    name: str
    collect: Callable[..., Iterator[Draft]]
    metrics: tuple[str, ...]
    mean: Literal["queries", "datasets"] = "queries"
    resampled: Literal["queries", "datasets"] = "queries"
    licence: str = ""
    source: str = ""
    files: tuple[Released, ...] = ()
    chosen_files: Callable[..., tuple[Released, ...]] | None = None
    choices: Mapping[str, str] = field(default_factory=dict, compare=False)
    queries: str = ""
    documents: str = ""
    defects: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    published: Published | None = None
    gauged: tuple[str, ...] = ()
    answering: str = ""  # "module:attribute" of its Answering, if it wants answers

    def files_of(self, settings: Mapping[str, Any]) -> tuple[Released, ...]:
        """All its raw files under these settings, each once."""
        chosen = self.chosen_files(**settings) if self.chosen_files else ()
        return tuple(dict.fromkeys(self.files + chosen))

    @property
    def headline(self) -> str:
        """The metric that the benchmark is told by; empty if it has no judgements."""
        return self.metrics[0] if self.metrics else ""
