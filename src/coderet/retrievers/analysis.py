"""Text to tokens by the analyzers that BM25 is asked for, token by token as Lucene cuts them.

`whitespace` is Lucene's WhitespaceAnalyzer, the papers' baseline: case stays, punctuation stays. `code-words` gives it
the words of `coderet.words`, joined by a space. Lucene's alone are `english` (stop words, possessives, Porter's stems)
and `standard` (words by the rules of Unicode, lower-cased, no stop words), ElasticSearch's default.
"""

import re
from collections.abc import Iterable

import pyarrow as pa

from coderet import registry
from coderet.records import DataError
from coderet.words import code_words

ANALYZERS = ("whitespace", "code-words", "english", "standard")
BY_LUCENE_ONLY = ("english", "standard")
LONGEST = 255  # UTF-16 code units of a token, after which Lucene begins a new one

# Java's idea of white space: no non-breaking spaces and no U+0085, unlike Python's.
_TOKEN = re.compile(r"[^\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]+")


def check_analyzer(analyzer: str, name: str = "analyzer") -> None:
    """Raise DataError unless analyzer, the setting of that name, is one that there is."""
    if analyzer not in ANALYZERS:
        near = registry.nearest(analyzer, ANALYZERS)
        raise DataError(f"{name} is {analyzer!r}; known: {', '.join(ANALYZERS)}.{near}")


def check_fields(text_fields: Iterable[str]) -> tuple[str, ...]:
    """text_fields as a tuple; DataError unless they are some of title and text, each once."""
    fields = tuple(text_fields) if isinstance(text_fields, Iterable) else ()
    if isinstance(text_fields, str) or not fields or len(set(fields)) < len(fields) or set(fields) - {"title", "text"}:
        raise DataError(f"text_fields is {text_fields!r}; wanted a list of one or both of title, text")
    return fields


def prepared(texts: pa.ChunkedArray, analyzer: str) -> list[str]:
    """texts as Lucene is to get them: what comes before its own analyzer is done here."""
    found: list[str] = texts.to_pylist()
    return [" ".join(code_words(text)) for text in found] if analyzer == "code-words" else found


def tokens(text: str, analyzer: str) -> list[str]:
    """The tokens of text by `whitespace` or `code-words`."""
    found: list[str] = code_words(text) if analyzer == "code-words" else _TOKEN.findall(text)
    if all(len(token) <= LONGEST // 2 for token in found):
        return found
    return [piece for token in found for piece in _pieces(token)]


def _pieces(token: str) -> Iterable[str]:
    start, units = 0, 0
    for place, character in enumerate(token):
        units += 1 if character <= "\uffff" else 2
        if units >= LONGEST:
            yield token[start : place + 1]
            start, units = place + 1, 0
    if start < len(token):
        yield token[start:]
