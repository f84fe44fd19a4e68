"""The forms that others read and write: BEIR folders, TREC runs and qrels.

BEIR: `corpus.jsonl` rows {_id, title, text}, `queries.jsonl` rows {_id, text}, `qrels/<split>.tsv` with a header line;
each may be gzipped. TREC runs: `query Q0 document rank score tag`.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from coderet.records import NO_HIT, Corpus, DataError, Dataset, Run, documents_batch, qrels_table, queries_table

ROWS_A_BATCH = 8_192


def beir_folder(folder: Path) -> Path:
    """The folder at or under folder that holds corpus.jsonl; DataError unless there is exactly one."""
    found = sorted({path.parent for path in folder.rglob("corpus.jsonl*") if path.name in _names("corpus.jsonl")})
    if len(found) != 1:
        what = "no corpus.jsonl" if not found else f"{len(found)} folders with a corpus.jsonl"
        raise DataError(f"{what} under {folder}; wanted one folder in BEIR form: corpus.jsonl, queries.jsonl, qrels/")
    return found[0]


def beir_documents(folder: Path) -> Iterator[pa.RecordBatch]:
    """The documents of a BEIR folder, streamed. Ids that are numbers become their text; missing titles become empty."""
    ids: list[str] = []
    titles: list[str] = []
    texts: list[str] = []
    for row, place in json_lines(_existing(folder, "corpus.jsonl")):
        ids.append(_id(row, place))
        titles.append(text_of(row, "title", place, required=False))
        texts.append(text_of(row, "text", place))
        if len(ids) == ROWS_A_BATCH:
            yield documents_batch(ids, titles, texts)
            ids, titles, texts = [], [], []
    yield documents_batch(ids, titles, texts)


def beir_qrels(folder: Path, split: str) -> pa.Table:
    """The judgements of one split, in the file's order. Rows are query, document, grade, or TREC's four columns."""
    path = _existing(folder / "qrels", f"{split}.tsv")
    queries: list[str] = []
    documents: list[str] = []
    grades: list[float] = []
    with _opened(path) as lines:
        for number, line in _numbered(lines, path):
            cells = line.rstrip("\r\n").split("\t")
            if cells == [""]:
                continue
            if len(cells) == 4:
                cells = [cells[0], *cells[2:]]
            if number == 1 and len(cells) == 3 and not _is_number(cells[2]):
                continue
            if len(cells) != 3 or not _is_number(cells[2]):
                raise DataError(f"{path}:{number} is {line.rstrip()!r}; wanted query, document and grade between tabs")
            queries.append(cells[0])
            documents.append(cells[1])
            grades.append(float(cells[2]))
    return qrels_table(queries, documents, grades)


def beir_queries(folder: Path, judged: pa.Array, exclude_self: bool = False) -> pa.Table:
    """The queries whose ids are among judged, as BEIR's own loader takes them. exclude_self: none is its own hit."""
    wanted = set(judged.to_pylist())
    ids: list[str] = []
    texts: list[str] = []
    for row, place in json_lines(_existing(folder, "queries.jsonl")):
        query_id = _id(row, place)
        if query_id in wanted:
            ids.append(query_id)
            texts.append(text_of(row, "text", place))
    return queries_table(ids, texts, excluded=[[each] for each in ids] if exclude_self else None)


def write_beir(dataset: Dataset, folder: Path, split: str = "test") -> None:
    """A dataset as a BEIR folder."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for batch in dataset.corpus.table.to_batches():
            for row in batch.to_pylist():
                file.write(_line(_id=row["id"], title=row["title"], text=row["text"]))
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as file:
        for row in dataset.queries.table.select(["id", "text"]).to_pylist():
            file.write(_line(_id=row["id"], text=row["text"]))
    with (folder / "qrels" / f"{split}.tsv").open("w", encoding="utf-8") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for row in dataset.qrels.table.to_pylist():
            file.write(f"{row['query_id']}\t{row['document_id']}\t{row['grade']:g}\n")


def write_trec_run(run: Run, path: Path, tag: str) -> None:
    """A run in trec_eval's form. Scores keep all their digits, so that reading gives the same run."""
    ids = run.corpus.ids
    with path.open("w", encoding="utf-8") as file:
        for query_id, rows, scores in zip(run.query_ids.to_pylist(), run.rows, run.scores, strict=True):
            for rank, (row, score) in enumerate(zip(rows[rows != NO_HIT], scores, strict=False), 1):
                file.write(f"{query_id} Q0 {ids[int(row)].as_py()} {rank} {float(score)!r} {tag}\n")


def read_trec_run(path: Path, corpus: Corpus) -> Run:
    """A run from trec_eval's form, ordered by score as trec_eval does; the rank column is not read.

    DataError if a line is not a hit or names a document that the corpus does not have.
    """
    hits: dict[str, tuple[list[str], list[float]]] = {}
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            cells = line.split()
            if len(cells) != 6 or not _is_number(cells[4]):
                raise DataError(f"{path}:{number} is {line.rstrip()!r}; wanted: query Q0 document rank score tag")
            documents, scores = hits.setdefault(cells[0], ([], []))
            documents.append(cells[2])
            scores.append(float(cells[4]))
    depth = max((len(documents) for documents, _ in hits.values()), default=0)
    rows = np.full((len(hits), depth), NO_HIT, np.int64)
    values = np.full((len(hits), depth), -np.inf, np.float32)
    for place, (query_id, (documents, scores)) in enumerate(hits.items()):
        found = corpus.rows_of(pa.array(documents, pa.large_string()))
        if (found == NO_HIT).any():
            missing = documents[int(np.argmax(found == NO_HIT))]
            raise DataError(f"{path}: a hit of {query_id} is {missing!r}, which is not in corpus {corpus.name}")
        rows[place, : len(found)], values[place, : len(found)] = found, scores
    return Run.of(corpus, pa.array(list(hits), pa.large_string()), rows, values)


def _names(name: str) -> tuple[str, str]:
    return name, name + ".gz"


def _existing(folder: Path, name: str) -> Path:
    for each in _names(name):
        if (folder / each).is_file():
            return folder / each
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else "no such folder"
    raise DataError(f"{folder} lacks {name} (plain or .gz); it has {there}")


def _opened(path: Path) -> IO[str]:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def json_lines(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """(row, `path:line`) of a file of JSON objects, plain or .gz; DataError for what is not whole, UTF-8 or JSON."""
    number = 0
    try:
        with _opened(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    row = _parsed(line, f"{path}:{number}")
                    if not isinstance(row, dict):
                        raise DataError(f"{path}:{number} is {line.strip()[:60]!r}; wanted a JSON object")
                    yield row, f"{path}:{number}"
    except (EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"{path} cannot be read after line {number} ({error}); is it whole and UTF-8?") from None


def _numbered(lines: IO[str], path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            yield number, line
    except (EOFError, OSError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(f"{path} cannot be read after line {number} ({error}); is it whole and UTF-8?") from None


def _parsed(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:  # broken, a number of thousands of digits, nested without end
        raise DataError(f"{place} is not JSON that can be read ({error})") from None


def _id(row: dict[str, Any], place: str) -> str:
    value = row.get("_id", row.get("id"))
    if value is None or isinstance(value, (dict, list, bool)) or value != value:
        raise DataError(f"{place} has no _id")
    return storable(str(value), "_id", place)


def storable(text: str, name: str, place: str) -> str:
    """text, which is called name and stands at place; DataError if it is not made of whole characters."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{place}: {name} holds half of a surrogate pair, which is no character ({error})") from None
    return text


def text_of(row: dict[str, Any], name: str, place: str, required: bool = True) -> str:
    """The text of row that is called name, empty if it may lack and does; DataError for anything else."""
    value = row.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{place}: {name} is {value!r}; wanted text")
    return storable(value, name, place)


def _line(**row: str) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _is_number(text: str) -> bool:
    if "_" in text:  # Python reads 1_0 as ten
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True
