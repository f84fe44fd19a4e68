"""Which licence a package or a model states: what its own metadata say, never a guess."""

import json
import re
from email.parser import HeaderParser
from pathlib import Path

import yaml

from coderet.corpora import archives

UNKNOWN = "not stated"
CARD = "README.md"
_LONGEST = 60  # characters: more is the text of a licence, not its name
_CLASSIFIER = "License :: "


def of_package(path: Path) -> str:
    """The licence of a wheel, an sdist or an unpacked one: its SPDX expression, else its name, else its classifiers.

    That of a package of npm is the `license` of its package.json. UNKNOWN where the metadata do not say. DataError if
    path cannot be read.
    """
    found = [
        (name, content.decode("utf-8", "replace"))
        for name, content in archives.members(path, ("METADATA", "PKG-INFO", "package.json"))
        if re.search(r"(^[^/]*\.dist-info/METADATA|^[^/]*/?PKG-INFO)$|^package/package\.json$", name)
    ]
    for name, text in found[:1]:
        if name.endswith(".json"):
            return _of_npm(text)
        said = HeaderParser().parsestr(text)
        named = said.get("License-Expression") or said.get("License") or ""
        if named.strip() and len(named) <= _LONGEST and "\n" not in named.strip():
            return str(named.strip())
        classified = [each.rpartition(" :: ")[2] for each in said.get_all("Classifier", []) if _CLASSIFIER in each]
        if classified:
            return " AND ".join(classified)
    return UNKNOWN


def of_model(folder: Path) -> str | None:
    """The licence in the header of a model folder's card, as hubs read it; None where there is none."""
    path = folder / CARD
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    if not text.startswith("---"):
        return None
    try:
        said = yaml.safe_load(text.split("---")[1])
    except yaml.YAMLError:
        return None
    licence = said.get("license") if isinstance(said, dict) else None
    return licence if isinstance(licence, str) else None


def state(folder: Path, licence: str) -> None:
    """Leave in a model folder a card that says this and no more, for `of_model` and whoever the folder is given to."""
    header = yaml.safe_dump({"license": licence}, allow_unicode=True)
    (folder / CARD).write_text(f"---\n{header}---\n", encoding="utf-8")


def _of_npm(text: str) -> str:
    try:
        said = json.loads(text).get("license")
    except (ValueError, AttributeError):
        return UNKNOWN
    return said.strip() if isinstance(said, str) and 0 < len(said.strip()) <= _LONGEST else UNKNOWN
