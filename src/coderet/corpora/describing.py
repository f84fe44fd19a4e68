"""What a function does, in its documentation's own words but without its names: the question that a needle is asked by.

The prose before the first section, tag or example is taken, the first MOST_WORDS of it in whole sentences. Masked are
the function's own name and its classes', whatever is marked as code, and every word that looks like a name (an
underscore, a capital or a digit within, a dot, or one letter that is a name in the code). Not taken, each with its
cause, is what is too short, what is mostly masks, and what repeats the code: COPIED of its words in a row.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from coderet.words import code_words

MASK = "…"
LEAST_WORDS, MOST_WORDS = 8, 120
MASKED_SHARE = 0.25
COPIED = 6
CAUSES = ("short", "masked", "copied")


class Description(NamedTuple):
    """text is empty where cause says why there is none: one of CAUSES."""

    text: str
    cause: str = ""


def description(documentation: str, code: str, names: Iterable[str]) -> Description:
    """documentation: without its marks. code: without documentation. names: the function's and its classes'."""
    text = _sentences(prose(documentation))
    identifiers = set(_IDENTIFIER.findall(code))
    forbidden = {name.lower() for name in names}
    masked = _marked(text)
    masked = _WORD.sub(lambda found: _masked(found[0], forbidden, identifiers), masked)
    masked = _MASKS.sub(MASK, masked).strip()
    words, masks = code_words(masked.replace(MASK, " ")), masked.count(MASK)
    if len(words) < LEAST_WORDS:
        return Description("", "short")
    if masks > MASKED_SHARE * (len(words) + masks):
        return Description("", "masked")
    if _runs(words) & _runs(code_words(code)):
        return Description("", "copied")
    return Description(masked)


def prose(documentation: str) -> str:
    """What stands before the first section, tag or example, on one line; blocks of code and directives left out."""
    kept: list[str] = []
    lines = documentation.expandtabs().splitlines()
    literal: int | None = None  # the indentation of what a block of code belongs to
    for place, line in enumerate(lines):
        indentation = len(line) - len(line.lstrip())
        following = lines[place + 1].strip() if place + 1 < len(lines) else ""
        if _END.match(line) or (line.strip() and _UNDERLINE.fullmatch(following) and kept):
            break
        if literal is not None and (not line.strip() or indentation > literal):
            continue
        literal = None
        if line.lstrip().startswith(".. "):
            literal = indentation
            continue
        if line.rstrip().endswith("::"):
            literal = indentation
            line = line.rstrip()[:-1]
        if not _UNDERLINE.fullmatch(line.strip()):
            kept.append(line.strip())
    return " ".join(" ".join(kept).split())


def _sentences(text: str) -> str:
    """The first MOST_WORDS words at most, in whole sentences where there is one."""
    if len(text.split()) <= MOST_WORDS:
        return text
    short = " ".join(text.split()[:MOST_WORDS])
    end = max(short.rfind(mark) for mark in (". ", "! ", "? "))
    return short[: end + 1] if end > 0 else short


def _marked(text: str) -> str:
    """What stands in backticks or after a role becomes a mask; quotes and links lose their marks."""
    return _CODE.sub(MASK, text).replace("*", "")


def _masked(word: str, forbidden: set[str], identifiers: set[str]) -> str:
    """A mask for a word that is a name, the end of a sentence kept."""
    if word in ("e.g.", "i.e."):
        return word
    core = word.rstrip(".")
    end = word[len(core) :]
    bare = core.removesuffix("()")
    if bare.lower() in forbidden or _NAMELIKE.search(bare) or bare != core:
        return MASK + end
    if len(bare) == 1 and bare in identifiers and bare not in "aAI":
        return MASK + end
    return word


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(COPIED)), strict=False))


_END = re.compile(
    r"^\s*(?:>>>|@\w|:\w[^:\n]*:(?!`)|```|~~~"
    r"|(?:parameters|params|args|arguments|keyword arg\w*|kwargs|returns?|yields?|raises?|throws|attributes"
    r"|examples?|usage|notes?|see also|references|warnings?|todo|input|output|inputs|outputs|methods)\s*:?\s*$"
    r"|(?:args|arguments|parameters|returns?|raises?|yields?|examples?|usage)\s*:)",
    re.IGNORECASE,
)
_UNDERLINE = re.compile(r"([-=~^*#])\1{2,}")
_CODE = re.compile(r"(?::[\w:]+:)?(`{1,2})[^`]+\1_?|\{@\w+ [^}]*\}")
_WORD = re.compile(r"(?:e\.g|i\.e)\.|[^\W\d][\w.]*(?:'\w+|\(\))?")
_NAMELIKE = re.compile(r"_|\w\.\w|[a-z][A-Z]|[^\W\d]\d|[A-Z]{2,}[a-z]{2,}")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_MASKS = re.compile(rf"{MASK}(?:[\s,/|]*{MASK})+")
