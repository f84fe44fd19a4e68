"""The documentation of Python libraries that CodeRAG-Bench and DocPrompting search: one document an entry.

`corpus.jsonl` has rows {_id, title, text, metadata}. A title names an entry as DocPrompting does
(`python.library.json#json.loads`), and no two documents share one, so it serves as id where gold is given by title.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa

from coderet.corpora import released
from coderet.records import Released, documents_batch

NAME = "coderag_bench/library_documentation/corpus.jsonl"
DOCUMENTS = 35_728
ROWS_A_BATCH = 4096
FILE = Released(
    NAME,
    "e3a970439547d003f4d2c6a75bec767c38dcbdfd9fa0648eede56c5b8c1b369e",
    how="made of the pages of preprocessor/devdocs/raw in github.com/code-rag-bench/code-rag-bench at "
    "f9e100ca9ed94b8f1983b356ae81966e30210cf4, in place of neulab/docprompting-conala's 34,003 documents, all of whose "
    "gold titles it has: JSON lines with _id, title, text",
)


def documents(folder: Path, identity: Literal["title", "_id"]) -> Iterator[pa.RecordBatch]:
    """The documents under folder, streamed; identity is the field that is their id."""
    rows: list[dict[str, str]] = []
    for number, row in enumerate(released.json_lines(folder, NAME), 1):
        released.check_fields(row, {"_id": str, "title": str, "text": str}, f"{folder / NAME}, line {number}")
        rows.append(row)
        if len(rows) == ROWS_A_BATCH:
            yield _batch(rows, identity)
            rows = []
    yield _batch(rows, identity)


def _batch(rows: list[dict[str, str]], identity: str) -> pa.RecordBatch:
    return documents_batch(*([row[field] for row in rows] for field in (identity, "title", "text")))
