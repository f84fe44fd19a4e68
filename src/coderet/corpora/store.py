"""Datasets, pairs, runs and scorecards on disk.

Corpora, queries, qrels, runs and scorecards are uncompressed Arrow IPC files, memory-mapped when read: a million
functions open in a hundredth of a second and cost no memory. Pairs are Parquet. A file or folder is written beside its
place and renamed when whole, so a killed writer leaves nothing that counts as done.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coderet.records import (
    DIGEST,
    DOCUMENTS,
    PAIRS,
    PROBLEMS,
    QRELS,
    QUERIES,
    Corpus,
    DataError,
    Dataset,
    Draft,
    Problems,
    Qrels,
    Queries,
    Run,
    TableDigest,
    check_schema,
)

ROWS_A_CHUNK = 65_536
LARGEST_GRADE = 1000
_INDEX = "datasets.json"
_CORPORA = "corpora.json"
_PACKAGES = "packages.json"
_PROBLEMS = "problems.json"
_SETTINGS = b"settings"


# Whole or not at all


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A place to write a file, which becomes path when the block ends well and vanishes when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}.partial"
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A new, empty folder, which becomes path when the block ends well and vanishes when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}.partial"
    shutil.rmtree(draft, ignore_errors=True)  # of a writer that was killed
    draft.mkdir()
    try:
        yield draft
        if path.exists():
            shutil.rmtree(path)
        os.replace(draft, path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    """value as readable JSON; ValueError if it holds a number that is not finite, for JSON has none."""
    with new_file(path) as draft:
        draft.write_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """What `write_json` wrote; DataError if path is missing or is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} is missing; run: dvc repro") from None
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}); remove it and run: dvc repro") from None


def write_table(path: Path, table: pa.Table) -> None:
    """table as one memory-mappable Arrow file."""
    with new_file(path) as draft, pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=ROWS_A_CHUNK)


def read_table(path: Path) -> pa.Table:
    """A memory-mapped table; DataError if path is missing or cut short."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(path), "r")).read_all()
    except FileNotFoundError:
        raise DataError(f"{path} is missing; run: dvc repro") from None
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is cut short or is no Arrow file ({error}); remove it and run: dvc repro") from None


# Corpora


def write_corpus(path: Path, documents: Iterable[pa.RecordBatch]) -> int:
    """Documents in any order to an Arrow file in descending id; returns how many.

    Streams: only ids are held in memory. Empty ids and ids that stand twice raise DataError.
    """
    with new_file(path) as draft, tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        unsorted, ordered = Path(scratch, "unsorted.arrow"), Path(scratch, "ordered.arrow")
        with _writer(unsorted, DOCUMENTS) as writer:
            for batch in documents:
                check_schema(batch, DOCUMENTS, "a batch of documents")
                _check_texts(batch, path.stem, "documents")
                if batch.num_rows:
                    writer.write_batch(batch)
        digest = TableDigest(DOCUMENTS)
        count = _sort(unsorted, ordered, digest, path.stem)
        unsorted.unlink()
        schema = DOCUMENTS.with_metadata({DIGEST: digest.hexdigest().encode()})
        with _writer(draft, schema) as writer:  # again, for the digest stands before the documents
            for batch in read_table(ordered).to_batches():
                writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return count


def _sort(unsorted: Path, ordered: Path, digest: TableDigest, name: str) -> int:
    """Write the documents of one file to the other in descending id, some at a time; returns how many."""
    table = read_table(unsorted)
    order = _descending(table["id"], name).to_numpy().astype(np.int64)
    with _writer(ordered, DOCUMENTS) as writer:
        for start in range(0, len(order), ROWS_A_CHUNK):
            part = _rows(table, order[start : start + ROWS_A_CHUNK])
            digest.update(part)
            writer.write_batch(part)
    return len(order)


def _rows(table: pa.Table, rows: np.ndarray) -> pa.RecordBatch:
    """These rows, chunk by chunk; `table.take` would first copy the whole table into one chunk."""
    batches = table.to_batches()
    ends = np.cumsum([len(batch) for batch in batches])
    by_place = np.argsort(rows)
    cuts = np.searchsorted(rows[by_place], ends)
    taken = [
        batch.take(pa.array(rows[by_place[low:high]] - (end - len(batch))))
        for batch, end, low, high in zip(batches, ends, np.append(0, cuts), cuts, strict=False)
        if low < high
    ]
    return pa.concat_batches(taken).take(pa.array(np.argsort(by_place)))


@contextlib.contextmanager
def _writer(path: Path, schema: pa.Schema) -> Iterator[Any]:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        yield writer


def _check_texts(table: pa.Table | pa.RecordBatch, name: str, what: str) -> None:
    """DataError if a text is null, which is no text; the empty one is."""
    if count := table["text"].null_count:
        example = table["id"].filter(pc.is_null(table["text"]))[0].as_py()
        raise DataError(f"{name}: {count} {what} have no text, {example!r} among them; give them one, if only ''")


def _descending(ids: pa.ChunkedArray, name: str) -> pa.Array:
    order = pc.sort_indices(ids, sort_keys=[("", "descending")])
    ordered = ids.take(order)
    if len(ids) and (ids.null_count or ordered[-1].as_py() == ""):
        raise DataError(f"{name}: a document has an empty id; give every document one")
    if len(ids) > 1:
        same = pc.equal(ordered.slice(1), ordered.slice(0, len(ids) - 1))
        twice = pc.sum(same).as_py()
        if twice:
            example = ordered.slice(1).filter(same)[0].as_py()
            raise DataError(f"{name}: {twice} document ids stand twice, {example!r} among them; make ids distinct")
    return order


def read_corpus(folder: Path, name: str) -> Corpus:
    """The corpus `name` of the benchmark in folder."""
    table = read_table(folder / "corpora" / f"{name}.arrow")
    check_schema(table, DOCUMENTS, f"corpus {name}")
    return Corpus(name, table)


def corpora(folder: Path) -> list[str]:
    """The names of the corpora that are searched of the benchmark in folder, in the order they were collected.

    Those of mixtures, whose documents have been searched where they are from, are not among them.
    """
    path = folder / "corpora" / _CORPORA
    names = read_json(path)
    if not isinstance(names, list) or not names or not all(isinstance(each, str) for each in names):
        raise DataError(f"{path} is no list of names; {_collect_again(folder)}")
    return names


def packages(folder: Path) -> list[str]:
    """The packages that the benchmark in folder is made of, from which nothing may be learned."""
    names: list[str] = read_json(folder / "corpora" / _PACKAGES)
    return names


# Benchmarks


def write_benchmark(folder: Path, drafts: Iterable[Draft], packages: Iterable[str] = ()) -> list[str]:
    """Datasets to corpora/, queries/, qrels/ and problems/ under folder; returns their names. packages: what they are
    made of. Where there are no problems, problems/ is empty.

    DataError if counts are not those expected, ids are empty or stand twice, a grade is not a number, or qrels or
    problems name queries or documents that there are not. folder is written whole or not at all.
    """
    written: list[dict[str, Any]] = []
    judged: list[dict[str, Any]] = []
    posed: list[dict[str, Any]] = []
    with new_folder(folder) as new:
        (new / "problems").mkdir()
        for draft in drafts:
            corpus = draft.documents if isinstance(draft.documents, str) else draft.name
            if not isinstance(draft.documents, str):
                documents = _mixture(new, draft, written) if draft.mixed_of else draft.documents
                count = write_corpus(new / "corpora" / f"{corpus}.arrow", documents)
                _expect(count, draft.documents_expected, f"{draft.name} has", "documents")
            _expect(draft.queries.num_rows, draft.queries_expected, f"{draft.name} has", "queries")
            _check(draft, read_corpus(new, corpus))
            write_table(new / "queries" / f"{draft.name}.arrow", draft.queries)
            write_table(new / "qrels" / f"{draft.name}.arrow", draft.qrels)
            parts = list(draft.mixed_of)
            written.append({"name": draft.name, "corpus": corpus, "depth": draft.depth, "mixed_of": parts})
            judged.append({"name": draft.name, "metrics": list(draft.metrics)})
            if draft.problems is not None:
                name = draft.posed or draft.name
                _check_problems(draft, draft.problems, name, [each["name"] for each in posed])
                write_table(new / "problems" / f"{name}.arrow", draft.problems)
                shared = None if draft.shared is None else f"{name}.shared.json"
                if shared:
                    write_json(new / "problems" / shared, draft.shared)
                posed.append({"name": name, "dataset": draft.name, "answering": draft.answering, "shared": shared})
        if not written:
            raise DataError(f"{folder.name} gave no dataset at all")
        searched = [each["corpus"] for each in written if not each["mixed_of"]]
        write_json(new / "corpora" / _CORPORA, list(dict.fromkeys(searched)))
        write_json(new / "corpora" / _PACKAGES, sorted(set(packages)))
        write_json(new / "queries" / _INDEX, written)
        write_json(new / "qrels" / _INDEX, judged)
        if posed:
            write_json(new / "problems" / _PROBLEMS, posed)
    return [each["name"] for each in written]


def _mixture(new: Path, draft: Draft, written: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """The documents of all the datasets that draft is mixed of; DataError unless they ask what it asks."""
    corpora = {each["name"]: each["corpus"] for each in written if not each["mixed_of"]}
    unknown = [each for each in draft.mixed_of if each not in corpora]
    if unknown or len(set(draft.mixed_of)) < max(2, len(draft.mixed_of)):
        raise DataError(
            f"{draft.name} is mixed of {', '.join(draft.mixed_of)}; wanted two or more of the datasets before it, each "
            f"once: {', '.join(corpora)}"
        )
    for name in draft.mixed_of:
        asked = read_table(new / "queries" / f"{name}.arrow").select(["id", "text"])
        if not asked.equals(draft.queries.select(["id", "text"])):
            raise DataError(f"{draft.name} and {name} have different queries; a mixture asks what its datasets ask")
        for batch in read_corpus(new, corpora[name]).table.to_batches():
            prefix = pa.scalar(f"{name}/", pa.large_string())
            ids = pc.binary_join_element_wise(prefix, batch["id"], pa.scalar("", pa.large_string()))
            yield pa.RecordBatch.from_arrays([ids, batch["title"], batch["text"]], schema=DOCUMENTS)


def _expect(found: int, wanted: int | None, what: str, unit: str) -> None:
    if wanted is not None and found != wanted:
        raise DataError(f"{what} {found} {unit}, expected {wanted}; the files are not those of this benchmark")


def _check_problems(draft: Draft, problems: pa.Table, name: str, taken: Iterable[str]) -> None:
    """DataError unless problems are whole, each with an id of its own and a query of the draft's."""
    check_schema(problems, PROBLEMS, f"problems of {name}")
    if name in taken:
        raise DataError(f"two sets of problems are called {name}; give one of them a name of its own")
    _expect(problems.num_rows, draft.problems_expected, f"{name} poses", "problems")
    ids = problems["id"].to_pylist()
    if not ids or not all(ids):
        raise DataError(f"{name}: of {len(ids)} problems {sum(not each for each in ids)} have no id; wanted one each")
    if len(set(ids)) < len(ids):
        twice = next(each for place, each in enumerate(ids) if each in ids[:place])
        raise DataError(f"{name}: {len(ids) - len(set(ids))} problem ids stand twice, {twice!r} among them")
    known = set(draft.queries["id"].to_pylist())
    if stray := [each for each in problems["query_id"].to_pylist() if each not in known]:
        raise DataError(
            f"{name}: {len(stray)} of {len(ids)} problems name queries that there are not, {stray[0]!r} among them; "
            "query_id names the query whose hits are the problem's context"
        )


def _check(draft: Draft, corpus: Corpus) -> None:
    check_schema(draft.queries, QUERIES, f"queries of {draft.name}")
    check_schema(draft.qrels, QRELS, f"qrels of {draft.name}")
    ids = draft.queries["id"]
    if ids.null_count or pc.any(pc.equal(ids, "")).as_py():
        raise DataError(f"{draft.name}: a query has an empty id; give every query one")
    if pc.count_distinct(ids).as_py() != len(ids):
        counts = pc.value_counts(ids.combine_chunks())
        example = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0].as_py()
        twice = len(ids) - len(counts)
        raise DataError(f"{draft.name}: {twice} query ids stand twice, {example!r} among them; make ids distinct")
    _check_texts(draft.queries, draft.name, "queries")
    grades = draft.qrels["grade"].to_numpy()
    if not np.isfinite(grades).all():
        raise DataError(
            f"{draft.name}: {int((~np.isfinite(grades)).sum())} judgements have a grade that is not a number"
        )
    if np.abs(grades).max(initial=0.0) > LARGEST_GRADE:
        raise DataError(
            f"{draft.name}: a judgement has grade {grades[np.abs(grades).argmax()]:g}; wanted at most {LARGEST_GRADE}, "
            "for ndcg-exp gains 2**grade; scale the grades down"
        )
    if draft.judged and not (grades > 0).any():
        raise DataError(
            f"{draft.name}: none of {len(grades)} judgements says that a document is relevant (a grade above 0); "
            "nothing could be scored"
        )
    for column, known, what in (("query_id", ids, "queries"), ("document_id", corpus.ids, "documents")):
        missing = pc.invert(pc.is_in(draft.qrels[column], value_set=known.combine_chunks()))
        count = pc.sum(missing).as_py() or 0
        if count:
            example = draft.qrels[column].filter(missing)[0].as_py()
            raise DataError(
                f"{draft.name}: {count} of {len(grades)} judgements name {what} that there are not, {example!r} among "
                "them; complete the files, or take these judgements out"
            )
    judgements = draft.qrels.select(["query_id", "document_id"])
    if judgements.group_by(["query_id", "document_id"]).aggregate([]).num_rows != judgements.num_rows:
        raise DataError(f"{draft.name}: some query and document are judged twice; keep one grade for each")
    if not len(ids) or not len(corpus):
        raise DataError(
            f"{draft.name} has {len(ids)} queries and {len(corpus)} documents; wanted some of both: a file is empty or "
            "not whole, fetch it again"
        )


def datasets(folder: Path) -> list[str]:
    """The names of the datasets of the benchmark in folder, in the order they were collected."""
    return list(_entries(folder, "queries"))


def _entries(folder: Path, part: str) -> dict[str, dict[str, Any]]:
    """What stands of each dataset beside its queries or its qrels, by name."""
    path = folder / part / _INDEX
    try:
        entries = {each["name"]: dict(each) for each in read_json(path)}
    except (TypeError, KeyError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is no list of datasets; {_collect_again(folder)}") from None
    if not entries:
        raise DataError(f"{path} names no dataset; {_collect_again(folder)}")
    return entries


def _collect_again(folder: Path) -> str:
    return f"remove it and run: dvc repro collect@{folder.name}"


def read_dataset(folder: Path, name: str, judged: bool = True) -> Dataset:
    """One dataset of the benchmark in folder, memory-mapped; not judged: without its qrels, as a search may see it."""
    asked = _entries(folder, "queries")[name]
    corpus = read_corpus(folder, asked["corpus"])
    queries = Queries(read_table(folder / "queries" / f"{name}.arrow"))
    mixed_of = tuple(asked.get("mixed_of", ()))
    if not judged:
        return Dataset(name, corpus, queries, Qrels(QRELS.empty_table()), asked["depth"], mixed_of=mixed_of)
    judged_by = _entries(folder, "qrels")
    if name not in judged_by:
        raise DataError(f"{folder / 'qrels' / _INDEX} lacks dataset {name}; {_collect_again(folder)}")
    metrics = judged_by[name]["metrics"]
    qrels = Qrels(read_table(folder / "qrels" / f"{name}.arrow"))
    return Dataset(name, corpus, queries, qrels, asked["depth"], tuple(metrics), mixed_of)


def problem_sets(folder: Path) -> list[str]:
    """The names of the sets of problems of the benchmark in folder, in the order they were collected.

    DataError if it poses none, for then there is nothing to answer.
    """
    if names := list(_posed(folder)):
        return names
    raise DataError(f"{folder} poses no problems; take {folder.name} out of grid.answered in params.yaml")


def _posed(folder: Path) -> dict[str, dict[str, Any]]:
    """What stands of each set of problems, by its name."""
    path = folder / "problems" / _PROBLEMS
    if not path.exists():
        return {}
    try:
        return {each["name"]: each for each in read_json(path)}
    except (TypeError, KeyError):
        raise DataError(f"{path} is no list of sets of problems; {_collect_again(folder)}") from None


def read_problems(folder: Path, name: str) -> Problems:
    """One set of problems of the benchmark in folder; DataError if it poses none of that name."""
    posed = _posed(folder)
    if name not in posed:
        raise DataError(f"{folder} poses no problems called {name!r}; it has: {', '.join(posed) or 'none'}")
    table = read_table(folder / "problems" / f"{name}.arrow")
    check_schema(table, PROBLEMS, f"problems of {name}")
    entry = posed[name]
    shared = read_json(folder / "problems" / entry["shared"]) if entry.get("shared") else None
    return Problems(name, entry["dataset"], table, entry.get("answering", ""), shared)


def write_duplicates(folder: Path, name: str, groups: np.ndarray) -> None:
    """The (N,) int32 group of each document of dataset `name`, beside its qrels."""
    with new_file(folder / "qrels" / f"{name}.groups.npy") as draft, draft.open("wb") as file:
        np.save(file, groups.astype(np.int32))


def read_duplicates(folder: Path, name: str) -> np.ndarray | None:
    """What `write_duplicates` wrote, None where no two documents are equal."""
    path = folder / "qrels" / f"{name}.groups.npy"
    try:
        return np.load(path) if path.exists() else None
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{path} is cut short ({error}); {_collect_again(folder)}") from None


# Runs and scorecards


def write_run(path: Path, run: Run, settings: Mapping[str, Any]) -> None:
    """A run as query ids and fixed-size lists of rows and scores.

    The corpus it belongs to and the settings of what made it stand in its metadata.
    """
    depth = run.depth
    table = pa.table(
        {
            "query_id": run.query_ids,
            "rows": pa.FixedSizeListArray.from_arrays(pa.array(run.rows.astype(np.int32).ravel()), depth),
            "scores": pa.FixedSizeListArray.from_arrays(pa.array(run.scores.ravel()), depth),
        }
    )
    facts = {DIGEST: run.corpus.digest.encode(), _SETTINGS: json.dumps(settings, sort_keys=True).encode()}
    write_table(path, table.replace_schema_metadata(facts))


def read_run(path: Path, corpus: Corpus) -> Run:
    """The run in path; DataError if it was made on another corpus."""
    table = read_table(path)
    if (table.schema.metadata or {}).get(DIGEST) != corpus.digest.encode():
        raise DataError(
            f"{path} was made on another corpus than the {len(corpus)} documents of {corpus.name}; search again"
        )
    depth = table.schema.field("rows").type.list_size
    rows, scores = (
        np.concatenate([chunk.flatten().to_numpy() for chunk in table[name].chunks] or [np.empty(0)]).reshape(-1, depth)
        for name in ("rows", "scores")
    )
    return Run(corpus, table["query_id"], rows.astype(np.int64), scores.astype(np.float32, copy=False))


def read_parts(folder: Path, runs: Path, dataset: Dataset) -> dict[str, Run]:
    """The runs, in the folder runs, of the datasets that dataset of the benchmark in folder is mixed of."""
    known = _entries(folder, "queries")
    return {
        name: read_run(runs / f"{name}.arrow", read_corpus(folder, known[name]["corpus"])) for name in dataset.mixed_of
    }


def run_settings(path: Path) -> dict[str, Any]:
    """The settings of what made the run in path."""
    settings: dict[str, Any] = json.loads(read_table(path).schema.metadata[_SETTINGS])
    return settings


def identity(*places: Path) -> str:
    """SHA-256 over the names and contents of all files in places: the identity of what is computed from them."""
    whole = hashlib.sha256()
    for place in places:
        for path in sorted(place.rglob("*")):
            if path.is_file():
                with path.open("rb") as file:
                    content = hashlib.file_digest(file, "sha256").hexdigest()
                whole.update(f"{path.relative_to(place).as_posix()} {content}\n".encode())
    return whole.hexdigest()


def write_scorecard(path: Path, query_ids: pa.ChunkedArray, metrics: Mapping[str, np.ndarray]) -> None:
    """One row a query, one float64 column a metric; NaN where the query has no relevant document."""
    write_table(path, pa.table({"query_id": query_ids, **{name: pa.array(each) for name, each in metrics.items()}}))


def read_scorecard(path: Path) -> tuple[pa.ChunkedArray, dict[str, np.ndarray]]:
    """What `write_scorecard` wrote."""
    table = read_table(path)
    return table["query_id"], {name: table[name].to_numpy() for name in table.column_names if name != "query_id"}


# Pairs


def write_pairs(path: Path, batches: Iterable[pa.RecordBatch | pa.Table]) -> int:
    """Pairs to Parquet; returns how many."""
    count = 0
    with new_file(path) as draft, pq.ParquetWriter(draft, PAIRS, compression="zstd") as writer:
        for batch in batches:
            table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
            check_schema(table, PAIRS, "a batch of pairs")
            writer.write_table(table)
            count += table.num_rows
    return count


def read_pairs(path: Path, columns: Iterable[str] | None = None) -> pa.Table:
    """Pairs, or the named columns of them; DataError if path is missing, cut short or lacks one of them."""
    try:
        found = pq.read_schema(path).names
        if missing := [name for name in columns or () if name not in found]:
            raise DataError(f"{path} lacks {', '.join(missing)}; it has the columns {', '.join(found)}")
        return pq.read_table(path, columns=None if columns is None else list(columns))
    except FileNotFoundError:
        raise DataError(f"{path} is missing; run: dvc repro mine") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path} is cut short or is no Parquet file ({error}); give a whole one, or run: dvc repro mine"
        ) from None


def whole_pairs(pairs: pa.Table) -> np.ndarray:
    """(N,) bool: whether both query and code say something, more than nothing and white space."""
    said = [_says_something(pairs[name]) for name in ("query", "code")]
    return np.logical_and(*said)


def _says_something(texts: pa.ChunkedArray) -> np.ndarray:
    lengths = pc.utf8_length(pc.utf8_trim_whitespace(pc.fill_null(texts, "")))
    return np.asarray(lengths.to_numpy() > 0)
