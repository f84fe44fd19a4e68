"""Tokens of texts as a server counts them, by the tokenizer that it publishes: counted, and cut to the first so many.

A tokenizer is a file: `<name>.tiktoken`, whose split pattern is known by its name, or the `tokenizer.json` of the
tokenizers library.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from coderet.records import DataError
from coderet.registry import nearest

PATTERNS = {  # tiktoken keeps them inside functions that download
    "cl100k_base": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
    r"|\s*[\r\n]|\s+(?!\S)|\s",
    "o200k_base": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
MARKS = 8  # at most so many tokens does a model put around a text of its own


class Cut(NamedTuple):
    """text: what is left; ids: its tokens, None where no tokenizer is at hand; tokens: at most; lost: those cut off."""

    text: str
    ids: list[int] | None
    tokens: int
    lost: int


class Counter(Protocol):
    """What counts and cuts."""

    def cut(self, texts: Sequence[str], limit: int | None) -> list[Cut]:
        """Each text's first limit tokens; a letter whose bytes the cut would part is left out."""
        ...


class Bytes:
    """Where no tokenizer is at hand: a token stands for at least one byte of UTF-8, and a few mark a text."""

    def cut(self, texts: Sequence[str], limit: int | None) -> list[Cut]:
        return [Cut(text, None, len(text.encode()) + MARKS, 0) for text in texts]


class Tiktoken:
    """OpenAI's: a file of base64 pieces with their ranks."""

    def __init__(self, path: Path) -> None:
        import base64

        import tiktoken

        if path.stem not in PATTERNS:
            known = ", ".join(f"{name}.tiktoken" for name in PATTERNS)
            raise DataError(f"{path.name} is no known tokenizer; known: {known}.{nearest(path.stem, PATTERNS)}")
        lines = (line.split() for line in path.read_bytes().splitlines() if line)
        ranks = {base64.b64decode(piece): int(rank) for piece, rank in lines}
        self._encoding = tiktoken.Encoding(
            path.stem, pat_str=PATTERNS[path.stem], mergeable_ranks=ranks, special_tokens={}
        )

    def cut(self, texts: Sequence[str], limit: int | None) -> list[Cut]:
        return [self._one(text, ids, limit) for text, ids in zip(texts, self._ids(texts), strict=True)]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = self._encoding.encode_ordinary_batch(list(texts), num_threads=2)
        return ids

    def _one(self, text: str, ids: list[int], limit: int | None) -> Cut:
        if limit is None or len(ids) <= limit:
            return Cut(text, ids, len(ids), 0)
        kept = self._encoding.decode_bytes(ids[:limit]).decode("utf-8", "ignore")
        return Cut(kept, ids[:limit], limit, len(ids) - limit)


class Fast:
    """A tokenizer.json. Only content is counted; the marks that the server adds are counted as MARKS."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Any = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def cut(self, texts: Sequence[str], limit: int | None) -> list[Cut]:
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [self._one(text, each, limit) for text, each in zip(texts, encoded, strict=True)]

    def _one(self, text: str, encoded: Any, limit: int | None) -> Cut:
        ids = encoded.ids
        if limit is None or len(ids) <= limit:
            return Cut(text, ids, len(ids) + MARKS, 0)
        return Cut(first(text, encoded, limit), ids[:limit], limit + MARKS, len(ids) - limit)


def first(text: str, encoded: Any, limit: int) -> str:
    """The beginning of text that its first limit tokens make; a letter may have several, and is kept if all are there.

    encoded: text by a tokenizer of the tokenizers library, as more than limit tokens.
    """
    return text[: min(encoded.offsets[limit - 1][1], encoded.offsets[limit][0])] if limit > 0 else ""


def find(folder: Path) -> Path:
    """The one tokenizer file in folder or below; DataError if there is none or another kind."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and _is_tokenizer(path)]
    if len(found) != 1:
        raise DataError(
            f"{folder.name} holds {len(found)} tokenizer files, wanted one, <name>.tiktoken or tokenizer.json"
        )
    return found[0]


def read(path: Path) -> Counter:
    """The tokenizer in path; DataError if it is not whole."""
    try:
        return Tiktoken(path) if path.suffix == ".tiktoken" else Fast(path)
    except DataError:
        raise
    except Exception as error:  # tokenizers and tiktoken raise whatever a broken file makes of itself
        raise DataError(f"{path} is not a whole tokenizer file ({error}); make it again") from None


def _is_tokenizer(path: Path) -> bool:
    return path.suffix == ".tiktoken" or path.name == "tokenizer.json"
