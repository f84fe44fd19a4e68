"""index.json beside an index: which corpus it was made from and with what settings.

An index that does not belong to its corpus would give hits that are other documents, so it is refused.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coderet.records import Corpus, DataError

FORMAT = 1
_FILE = "index.json"


def write(folder: Path, corpus: Corpus, settings: Mapping[str, Any]) -> None:
    """Note that the index in folder is of corpus; settings are all that the index depends on, plain JSON values."""
    facts = {"format": FORMAT, "documents": len(corpus), "digest": corpus.digest, "settings": dict(settings)}
    (folder / _FILE).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def check(folder: Path, corpus: Corpus, settings: Mapping[str, Any], holds: str = "documents") -> None:
    """Raise DataError unless the index in folder is of corpus and was made with settings; holds says of what it is."""
    again = f"run: dvc repro index@{folder.parent.parent.name}-{folder.parent.name}"
    try:
        facts = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} holds no index ({error}); {again}") from None
    if facts.get("format") != FORMAT:
        raise DataError(f"{folder} is of format {facts.get('format')}, wanted {FORMAT}; {again}")
    if facts["documents"] != len(corpus):
        raise DataError(f"{folder} has {facts['documents']} {holds} but its corpus {len(corpus)} documents; {again}")
    if facts["digest"] != corpus.digest:
        raise DataError(f"{folder} was made from other documents than those of corpus {corpus.name}; {again}")
    for key in sorted(facts["settings"].keys() | settings.keys()):
        found, wanted = facts["settings"].get(key), settings.get(key)
        if found != wanted:
            raise DataError(f"{folder} was made with {key} {found!r}, wanted {wanted!r}; {again}")
