"""What was asked, what came back and what became of it, on disk: three tables a set of problems.

Prompts and completions lie in data/completions, so that every score can be explained problem by problem; the judged
samples lie beside the scorecard. Nothing that differs from one run to the next is in them: seconds are in the results.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from coderet.corpora import store
from coderet.records import DataError, check_schema

_DOCUMENT = pa.struct([("id", pa.large_string()), ("tokens", pa.int32()), ("kept", pa.int32())])
PROMPTS = pa.schema(
    [
        ("problem_id", pa.large_string()),
        ("query_id", pa.large_string()),
        ("system", pa.large_string()),
        ("user", pa.large_string()),
        ("start", pa.large_string()),
        ("context", pa.large_string()),  # the documents as they stand in user
        ("documents", pa.large_list(_DOCUMENT)),  # those of the context, and how much of each is shown
        ("tokens", pa.int32()),
    ]
)
COMPLETIONS = pa.schema(
    [
        ("problem_id", pa.large_string()),
        ("sample", pa.int32()),
        ("text", pa.large_string()),
        ("finish", pa.large_string()),  # stop, length, or what else ended it
        ("stop", pa.large_string()),  # the stop string that ended it, which is no part of text; empty if none did
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
    ]
)
SAMPLES = pa.schema(
    [
        ("problem_id", pa.large_string()),
        ("sample", pa.int32()),
        ("verdict", pa.large_string()),
        ("detail", pa.large_string()),
        ("form", pa.large_string()),  # how the answer stood in the completion
        ("code", pa.large_string()),
        ("leak", pa.float32()),  # share of the reference's own lines that the context holds; null where unknown
        ("question", pa.large_string()),  # the prompt without its context
        ("context", pa.large_string()),
    ]
)
_SETTINGS = b"settings"


def prompts_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.prompts.arrow"


def completions_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.arrow"


def samples_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.samples.arrow"


def write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema, settings: Mapping[str, Any] | None = None) -> None:
    """Rows with the columns of schema; settings of what made them stand in the file's metadata."""
    table = pa.Table.from_pylist(rows, schema=schema)
    facts = {_SETTINGS: json.dumps(settings or {}, sort_keys=True).encode()}
    store.write_table(path, table.replace_schema_metadata(facts))


def read(path: Path, schema: pa.Schema) -> pa.Table:
    """What `write` wrote; DataError if it has other columns."""
    table = store.read_table(path)
    check_schema(table, schema, str(path))
    return table


def settings(path: Path) -> dict[str, Any]:
    """The settings of what made the table in path."""
    metadata = store.read_table(path).schema.metadata or {}
    if _SETTINGS not in metadata:
        raise DataError(f"{path} does not say what made it; remove it and run: dvc repro")
    found: dict[str, Any] = json.loads(metadata[_SETTINGS])
    return found
