"""Names that MLflow accepts, and back again: the one mapping used wherever a metric or a param is logged.

MLflow takes letters, digits, `_ - . /` and the space, but no path segment that is empty or climbs. A sign with a word
becomes that word (`ndcg@10` is `ndcg_at_10`), any other one its code point in hexadecimal (`(` is `_x28_`). An
underscore that would read as the start of such an escape is escaped itself, so `original` undoes `allowed` for every
string. Colons are escaped too: MLflow refuses them on Windows.
"""

import re

WORDS = {"@": "at", "%": "percent", "+": "plus"}
LONGEST = 250

_SIGNS = {word: sign for sign, word in WORDS.items()}
_ESCAPE = re.compile("_(" + "|".join(WORDS.values()) + "|x[0-9a-f]*)_")
_TAIL = re.compile("(?:" + "|".join(WORDS.values()) + "|x[0-9a-f]*)_")
_PLAIN = re.compile(r"[A-Za-z0-9_\-./ ]")
_EMPTY = "_x_"


def allowed(name: str) -> str:
    """The name under which MLflow keeps `name`."""
    if not name:
        return _EMPTY
    escaped = ""
    for place in range(len(name) - 1, -1, -1):
        sign = name[place]
        if sign in WORDS:
            escaped = f"_{WORDS[sign]}_{escaped}"
        elif not _PLAIN.fullmatch(sign) or _breaks_path(name, place) or (sign == "_" and _TAIL.match(escaped)):
            escaped = f"_x{ord(sign):x}_{escaped}"
        else:
            escaped = sign + escaped
    return escaped


def original(name: str) -> str:
    """The name that `allowed` made this one of."""
    return _ESCAPE.sub(_unescape, name)


def _unescape(match: re.Match[str]) -> str:
    inside = match[1]
    if inside in _SIGNS:
        return _SIGNS[inside]
    return chr(int(inside[1:], 16)) if len(inside) > 1 else ""


def _breaks_path(name: str, place: int) -> bool:
    """Whether the sign here makes an empty segment, or begins one that is `.` or begins with `..`."""
    before = name[place - 1] if place else "/"
    if name[place] == "/":
        return before == "/" or place == len(name) - 1
    return name[place] == "." and before == "/" and name[place + 1 : place + 2] in ("", "/", ".")
