"""The files of CodeSearchNet as released: functions of six languages in columns, a batch at a time.

Two forms hold them. The *shards*, `<language>/final/jsonl/<split>/<language>_<split>_<n>.jsonl.gz`, are the documented
functions of one split; the *definitions*, `<language>_dedupe_definitions_v2.pkl`, all functions left after
deduplication, with and without documentation: the search corpus of the Challenge. The second is a pickle, which is read
without running anything that it may say (`plain_pickle`).

Tokens are those of the release: comments stand among the tokens of code, except for the docstring of a Python function,
and docstring tokens are made from the first paragraph.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from coderet.corpora import plain_pickle, released
from coderet.records import DataError, Released

LANGUAGES = ("go", "java", "javascript", "php", "python", "ruby")
SPLITS = ("train", "valid", "test")
_TEXTS = ("url", "repository", "path", "name", "docstring", "code")
_TOKENS = ("docstring_tokens", "code_tokens")
FUNCTIONS = pa.schema(
    [(name, pa.large_string()) for name in _TEXTS] + [(name, pa.large_list(pa.large_string())) for name in _TOKENS]
)
ROWS_A_BATCH = 4096

_SHARD_FIELDS = {
    "url": "url",
    "repository": "repo",
    "path": "path",
    "name": "func_name",
    "docstring": "docstring",
    "code": "code",
    "docstring_tokens": "docstring_tokens",
    "code_tokens": "code_tokens",
}
_DEFINITION_FIELDS = _SHARD_FIELDS | {
    "repository": "nwo",
    "name": "identifier",
    "code": "function",
    "code_tokens": "function_tokens",
}


def functions(folder: Path, language: str, split: str) -> Iterator[pa.RecordBatch]:
    """The functions of one split, batches of FUNCTIONS, shards in the order of their names sorted as text.

    folder holds the language's folder. DataError if a shard is missing between others or cut short, and for a function
    of another language or split.
    """
    place = folder / language / "final" / "jsonl" / split
    records = (
        _of(record, language, split, f"{place / name}, line {line}")
        for name in shards(place, language, split)
        for line, record in enumerate(released.json_lines(place, name), 1)
    )
    return _batches(records, _SHARD_FIELDS, str(place))


def shards_as_released(folder: str, language: str, split: str) -> Released:
    """The shards of one split as files of a benchmark, folder holding the language's folder."""
    inside = f"{language}/final/jsonl/{split}"
    how = f"out of {language}.zip of Zenodo record 7857872 (closed at its first place): its folder {inside}"
    return Released(f"{folder}/{inside}/", None, how=how)


def shards(place: Path, language: str, split: str) -> list[str]:
    """The names of the shards in a folder without `.gz`, sorted as text; DataError if one or all are missing."""
    there = sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    pattern = re.compile(rf"({language}_{split}_(\d+)\.jsonl)(\.gz)?")
    matches = [match for name in there if (match := pattern.fullmatch(name))]
    numbers = sorted({int(match[2]) for match in matches})
    if not numbers:
        raise DataError(
            f"{place} has no {language}_{split}_<n>.jsonl.gz but {there[:5] or 'nothing'}; unpack {language}.zip of "
            "CodeSearchNet there"
        )
    gaps = sorted(set(range(numbers[-1] + 1)) - set(numbers))
    if gaps:
        raise DataError(f"{place} lacks shard {gaps[0]} of {language}_{split}, but has {numbers[-1]}; fetch the rest")
    return sorted({match[1] for match in matches})


def definitions(folder: Path, language: str) -> Iterator[pa.RecordBatch]:
    """All functions of a language's pickle in folder, batches of FUNCTIONS, in its order.

    DataError if it is not whole, names code, or holds functions of another language.
    """
    name = f"{language}_dedupe_definitions_v2.pkl"
    place = str(folder / name)
    found = plain_pickle.records(lambda: released.opened(folder, name), place)
    records = (_of(record, language, None, f"{place}, function {row}") for row, record in enumerate(found))
    return _batches(records, _DEFINITION_FIELDS, place)


def _of(record: Any, language: str, split: str | None, place: str) -> Mapping[str, Any]:
    released.check_fields(record, {"language": str}, place)
    if record["language"] != language or (split is not None and record.get("partition", split) != split):
        found = " ".join(filter(None, [record["language"], record.get("partition")]))
        raise DataError(f"{place} is of {found}, wanted {language} {split or ''}; these are another set's files")
    return record


def _batches(records: Iterator[Mapping[str, Any]], fields: Mapping[str, str], place: str) -> Iterator[pa.RecordBatch]:
    columns: dict[str, list[Any]] = {name: [] for name in FUNCTIONS.names}
    wanted = {fields[name]: str for name in _TEXTS} | {fields[name]: list for name in _TOKENS}
    for record in records:
        released.check_fields(record, wanted, f"a function of {place}")
        for name, values in columns.items():
            values.append(record[fields[name]])
        if len(columns["url"]) == ROWS_A_BATCH:
            yield _batch(columns, place)
            columns = {name: [] for name in FUNCTIONS.names}
    yield _batch(columns, place)


def _batch(columns: Mapping[str, list[Any]], place: str) -> pa.RecordBatch:
    try:
        return pa.RecordBatch.from_pydict(columns, FUNCTIONS)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        raise DataError(f"{place} holds a function that is no text ({error}); fetch it again") from None
