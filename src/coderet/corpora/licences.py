"""Which licence a package states: what its own metadata say, never a guess."""

import re
from email.parser import HeaderParser
from pathlib import Path

from coderet.corpora import archives

UNKNOWN = "not stated"
_LONGEST = 60  # characters: more is the text of a licence, not its name
_CLASSIFIER = "License :: "


def of_package(path: Path) -> str:
    """The licence of a wheel, an sdist or an unpacked one: its SPDX expression, else its name, else its classifiers.

    UNKNOWN where the metadata do not say. DataError if path cannot be read.
    """
    found = [
        content.decode("utf-8", "replace")
        for name, content in archives.members(path, ("METADATA", "PKG-INFO"))
        if re.search(r"(^[^/]*\.dist-info/METADATA|^[^/]*/?PKG-INFO)$", name)
    ]
    for text in found[:1]:
        said = HeaderParser().parsestr(text)
        named = said.get("License-Expression") or said.get("License") or ""
        if named.strip() and len(named) <= _LONGEST and "\n" not in named.strip():
            return str(named.strip())
        classified = [each.rpartition(" :: ")[2] for each in said.get_all("Classifier", []) if _CLASSIFIER in each]
        if classified:
            return " AND ".join(classified)
    return UNKNOWN
