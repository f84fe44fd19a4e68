"""Queries to hits: a table of kinds, and what lies in models/retrievers/<name>.

A retriever's folder holds `retriever.json`, which names its kind, and whatever that kind saves; it loads from its
folder alone. What a person may turn is a keyword-only, defaulted argument of its class. Those in `SEARCH` only move the
search and stand beside `index` in params.yaml; all others stand under `index`, and changing one indexes again. A class
with `parts` has settings that depend on the kind of its index: see `Dense.parts`. Under `index` may stand a `chunking`
too, whatever the kind: the retriever then works on chunks and answers with documents.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from coderet import registry
from coderet.corpora import chunking
from coderet.records import DataError, Retriever, Run
from coderet.retrievers.chunked import Chunked

RETRIEVERS = {
    "lucene": "coderet.retrievers.lucene:Lucene",
    "lucene-fields": "coderet.retrievers.lucene_fields:LuceneFields",
    "bm25s": "coderet.retrievers.bm25s:Bm25s",
    "dense": "coderet.retrievers.dense:Dense",
}
FUSIONS = {"rrf": "coderet.retrievers.fusion:rrf", "weighted": "coderet.retrievers.fusion:weighted"}
FORMAT = 1
CHUNKING = "chunking"
_FILE = "retriever.json"


def create(kind: str, where: str = "params.yaml: retrievers", **parts: Any) -> Retriever:
    """A retriever of a kind with default settings. parts: what it was fitted with, `encoder` for dense, else none."""
    return _kind(kind, where)(**parts)


def save(retriever: Retriever, kind: str, folder: Path) -> None:
    """Write retriever, which is of that kind, into folder, which is new."""
    folder.mkdir(parents=True, exist_ok=True)
    retriever.save(folder)
    (folder / _FILE).write_text(json.dumps({"kind": kind, "format": FORMAT}) + "\n", encoding="utf-8")


def load(folder: Path, spec: Mapping[str, Any], where: str | None = None) -> Retriever:
    """The retriever in folder with the settings of spec: `kind`, `index` (a mapping) and, beside them, those of SEARCH.

    where is the place that spec comes from, by default the entry in params.yaml that has the folder's name. DataError
    if the folder holds no retriever or one of another kind; registry.UnknownName for a setting that is not known or
    stands in the wrong place.
    """
    where = where or f"params.yaml: retrievers.{folder.name}"
    kind, index = spec["kind"], dict(spec.get("index", {}))
    chunks = chunking.chunker(index.pop(CHUNKING), f"{where}.index.{CHUNKING}") if CHUNKING in index else None
    search = {key: value for key, value in spec.items() if key not in ("kind", "index")}
    made = _kind(kind, where)
    parts = made.parts(index, f"{where}.index") if hasattr(made, "parts") else ()
    of_search = {*made.SEARCH, *(registry.named_arguments(parts[-1]) if parts else ())}
    for key in index:
        if key in of_search:
            raise registry.UnknownName(f"{where}.index.{key} moves only the search: it belongs to {where}.{key}")
    registry.fit_arguments(made.load, index, f"{where}.index", *parts, _any_index)
    registry.fit_arguments(made.load, search, where, *parts, _any_index)
    for key in search:
        if key not in of_search:
            raise registry.UnknownName(f"{where}.{key} changes the index: it belongs to {where}.index.{key}")
    found = _read(folder)
    if found.get("kind") != kind or found.get("format") != FORMAT:
        raise DataError(
            f"{folder} holds a retriever of kind {found.get('kind')!r}, format {found.get('format')!r}; "
            f"wanted {kind!r}, format {FORMAT}; run: dvc repro, which makes it anew"
        )
    loaded = made.load(folder, **index, **search)
    return loaded if chunks is None else Chunked(loaded, chunks)


def fuser(
    kind: str, settings: Mapping[str, Any], where: str = "params.yaml: fusions"
) -> Callable[[Sequence[Run]], Run]:
    """A function from the runs of a fusion's members to their fusion; UnknownName for a kind or setting not known."""
    fuse = registry.load(FUSIONS, kind, "fusions", f"{where}.kind")
    return partial(fuse, **registry.fit_arguments(fuse, settings, where))


def _any_index(*, chunking: Mapping[str, Any] | None = None) -> None:
    """The settings that stand under `index` whatever the kind."""


def _kind(kind: str, where: str) -> Any:
    return registry.load(RETRIEVERS, kind, "retrievers", f"{where}.kind")


def _read(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError(f"{_FILE} is {found!r}")
        return found
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} holds no retriever ({error}); run: dvc repro, which makes it anew") from None
