"""Code and prose to words: the tokens that `code words` retrieval and sub-token vocabularies are made of.

`getHTTPResponse_v2` gives `get http response v 2`. Words are lower-cased runs of letters, split where the case says
that a new word begins, and runs of digits; underscores, punctuation and white space only separate.
"""

import re

_WORD = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_ASCII_WORD = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+|[0-9]+")  # the same words, found sooner


def code_words(text: str) -> list[str]:
    """The words of text in order, lower-cased; empty if text holds no letter and no digit."""
    if text.isascii():
        found = "\n".join(_ASCII_WORD.findall(text))
        return found.lower().split("\n") if found else []
    return [word.lower() for word in _WORD.findall(text)]
