"""index.json beside an index: which corpus it was made from and with what settings.

An index that does not belong to its corpus would give hits that are other documents, so it is refused; so is one whose
files are not as long as they were written.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coderet.records import Corpus, DataError

FORMAT = 2
_FILE = "index.json"
_NO_PART = (_FILE, "write.lock")  # Lucene's lock is no part of its index


def write(folder: Path, corpus: Corpus, settings: Mapping[str, Any]) -> None:
    """Note that the index in folder is of corpus; settings are all that the index depends on, plain JSON values.

    Called last, once all other files of the index are there.
    """
    facts = {
        "format": FORMAT,
        "documents": len(corpus),
        "digest": corpus.digest,
        "settings": dict(settings),
        "file_bytes": _file_bytes(folder),
    }
    (folder / _FILE).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def check(folder: Path, corpus: Corpus, settings: Mapping[str, Any], holds: str = "documents") -> None:
    """Raise DataError unless the index in folder is of corpus and was made with settings; holds says of what it is."""
    again = f"run: dvc repro index@{folder.parent.parent.name}-{folder.parent.name}"
    try:
        facts = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} holds no index ({error}); {again}") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        found = facts.get("format") if isinstance(facts, dict) else None
        raise DataError(f"{folder} is of format {found}, wanted {FORMAT}; {again}")
    written, there = facts["file_bytes"], _file_bytes(folder)
    for name in sorted(written.keys() | there.keys()):
        if written.get(name) != there.get(name):
            sizes = [f"{each[name]} bytes" if name in each else "no such file" for each in (there, written)]
            raise DataError(f"{folder / name}: found {sizes[0]}, wanted {sizes[1]}; {again}")
    if facts["documents"] != len(corpus):
        raise DataError(f"{folder} has {facts['documents']} {holds} but its corpus {len(corpus)} documents; {again}")
    if facts["digest"] != corpus.digest:
        raise DataError(f"{folder} was made from other documents than those of corpus {corpus.name}; {again}")
    for key in sorted(facts["settings"].keys() | settings.keys(), key=lambda key: (key != "kind", key)):
        found, wanted = facts["settings"].get(key), settings.get(key)
        if found != wanted:
            raise DataError(f"{folder} was made with {key} {found!r}, wanted {wanted!r}; {again}")


def _file_bytes(folder: Path) -> dict[str, int]:
    """Lengths by path from folder; what an index of chunks holds in folders of its own is part of it."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in _NO_PART)
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
