"""Texts to token ids, and the vocabularies that own architectures learn from mined pairs.

Two vocabularies, both over `code_words` (so `getHTTPResponse` is three words): `words` keeps the most frequent words
whole and maps the rest to one unknown id; `bpe` cuts every word into pieces learned by the `tokenizers` library, so
that no letters are lost. Tokenizers of pretrained models are read by `pretrained`.

Token ids of many texts are one flat array with offsets, never a list a text. Truncation is one function for all
tokenizers: it takes tokens from the end of the content, never from the marks and the prefix around it.
"""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from coderet.records import DataError
from coderet.registry import nearest
from coderet.words import code_words

PADDING, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SPECIAL = ("<pad>", "<unknown>", "<begin>", "<end>")
WORDS_REMEMBERED = 1_000_000  # about 200 MB of words and their pieces
TEXTS_AT_A_TIME = 4096  # keeps the Python strings of a corpus to a few megabytes


@dataclass(frozen=True, eq=False)
class Tokens:
    """Token ids of N texts: text i is ids[offsets[i]:offsets[i + 1]].

    ids: (T,) int32. offsets: (N + 1,) int64, from 0 to T. cut: texts that lost tokens; lost: how many they lost.
    """

    ids: np.ndarray
    offsets: np.ndarray
    cut: int = 0
    lost: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """(N,) int64 tokens a text."""
        return np.diff(self.offsets)

    def chosen(self, rows: np.ndarray) -> "Tokens":
        """The texts in rows alone, in their order, with nothing said of cut ones."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Tokens(self.ids[_inside(self.offsets[:-1][rows], lengths)], offsets)

    def padded(self, rows: np.ndarray, multiple: int = 1, fill: int = PADDING) -> tuple[np.ndarray, np.ndarray]:
        """(B, T) int64 ids and (B, T) bool mask of the texts in rows; T is at least 1 and a multiple of `multiple`."""
        lengths = self.lengths[rows]
        width = max(1, int(lengths.max(initial=0)))
        width = -(-width // multiple) * multiple
        places = np.arange(width)[None, :]
        mask = places < lengths[:, None]
        ids = np.full(mask.shape, fill, dtype=np.int64)
        ids[mask] = self.ids[(self.offsets[rows][:, None] + places)[mask]]
        return ids, mask

    def after(self, prefix: np.ndarray) -> "Tokens":
        """The same texts with prefix (P,) before each."""
        lengths = self.lengths + len(prefix)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        ids = np.empty(offsets[-1], dtype=np.int32)
        is_prefix = np.zeros(len(ids), dtype=bool)
        places = offsets[:-1, None] + np.arange(len(prefix))
        ids[places], is_prefix[places] = prefix, True
        ids[~is_prefix] = self.ids
        return Tokens(ids, offsets, self.cut, self.lost)

    @classmethod
    def of(cls, texts: Iterable[Iterable[int]]) -> "Tokens":
        """Tokens of lists of ids: for small inputs and tests."""
        lists = [np.asarray(list(ids), dtype=np.int32) for ids in texts]
        offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in lists], dtype=np.int64)]).astype(np.int64)
        return cls(np.concatenate(lists) if lists else np.zeros(0, np.int32), offsets)

    @classmethod
    def joined(cls, parts: Iterable["Tokens"]) -> "Tokens":
        """The texts of all parts in order; counts of cut texts add up."""
        parts = list(parts)
        starts = np.cumsum([0, *(len(part.ids) for part in parts)])
        offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts[:-1], strict=True)]
        return cls(
            np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)]),
            np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
            sum(part.cut for part in parts),
            sum(part.lost for part in parts),
        )


def truncated(
    content: Tokens, limit: int, before: Iterable[int] = (), after: Iterable[int] = (), keep: int = 0
) -> Tokens:
    """content with `before` and `after` around each text and the end of the content cut so that limit tokens are left.

    keep: the first so many content tokens are a prefix that may not be cut. Raises DataError if the marks, the prefix
    and one token of content do not fit into limit.
    """
    before, after = np.asarray(list(before), dtype=np.int32), np.asarray(list(after), dtype=np.int32)
    room = limit - len(before) - len(after)
    if room <= keep:
        raise DataError(
            f"a limit of {limit} tokens leaves no room beside {len(before) + len(after)} marks and a prefix of {keep}; "
            "raise the limit or shorten the prefix"
        )
    lengths = content.lengths
    kept = np.minimum(lengths, room)
    offsets = np.concatenate([[0], np.cumsum(kept + len(before) + len(after))]).astype(np.int64)
    ids = np.empty(offsets[-1], dtype=np.int32)
    starts = offsets[:-1]
    from_content = np.ones(len(ids), dtype=bool)
    for places, marks in (
        (starts[:, None] + np.arange(len(before)), before),
        (offsets[1:, None] + np.arange(-len(after), 0), after),
    ):
        ids[places] = marks
        from_content[places] = False
    ids[from_content] = content.ids[_inside(content.offsets[:-1], kept)]
    lost = int((lengths - kept).sum())
    return Tokens(ids, offsets, content.cut + int((lengths > kept).sum()), content.lost + lost)


class Tokenizer(Protocol):
    """What an encoder needs: ids of content only; `truncated` adds marks."""

    kind: str

    def __len__(self) -> int:
        """Ids lie below this number."""
        ...

    def content(self, texts: pa.Array | pa.ChunkedArray) -> Tokens:
        """Ids of the texts without marks; a null or empty text has none."""
        ...

    def description(self) -> dict[str, Any]:
        """What `from_description` makes the same tokenizer of; plain JSON."""
        ...


class WordTokenizer:
    """Whole code words; those not in the vocabulary are UNKNOWN. words lists them from id len(SPECIAL) on."""

    kind = "words"

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        self._ids = {word: number for number, word in enumerate(self.words, start=len(SPECIAL))}

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.words)

    def content(self, texts: pa.Array | pa.ChunkedArray) -> Tokens:
        return Tokens.joined(map(self._part, _chunks(texts)))

    def description(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": list(self.words)}

    def _part(self, texts: list[str | None]) -> Tokens:
        words, offsets = _words(texts)
        ids = np.fromiter(map(self._ids.get, words, itertools.repeat(UNKNOWN)), dtype=np.int32, count=len(words))
        return Tokens(ids, offsets)


class BpeTokenizer:
    """Code words in pieces. model is the JSON of a `tokenizers.Tokenizer` whose first ids are SPECIAL.

    A word is cut up once and remembered: code is made of few words, often repeated.
    """

    kind = "bpe"

    def __init__(self, model: str) -> None:
        from tokenizers import Tokenizer as Fast

        self.model = model
        self._fast = Fast.from_str(model)
        self._numbers, self._pieces = _Numbers(), _flat([])

    def __len__(self) -> int:
        return int(self._fast.get_vocab_size())

    def content(self, texts: pa.Array | pa.ChunkedArray) -> Tokens:
        return Tokens.joined(map(self._part, _chunks(texts)))

    def description(self) -> dict[str, Any]:
        return {"kind": self.kind, "model": self.model}

    def names(self) -> list[str]:
        """The text of every id, in their order."""
        ids: dict[str, int] = self._fast.get_vocab()
        return sorted(ids, key=ids.__getitem__)

    def _part(self, texts: list[str | None]) -> Tokens:
        if len(self._numbers) > WORDS_REMEMBERED:
            self._numbers, self._pieces = _Numbers(), _flat([])
        words, offsets = _words(texts)
        numbers = np.fromiter(map(self._numbers.__getitem__, words), dtype=np.int64, count=len(words))
        self._cut_new_words()
        lengths = np.diff(self._pieces.offsets)[numbers]
        ids = self._pieces.ids[_inside(self._pieces.offsets[numbers], lengths)]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Tokens(ids, ends[offsets])

    def _cut_new_words(self) -> None:
        new = list(itertools.islice(self._numbers, len(self._pieces), None))
        if new:
            encodings = self._fast.encode_batch_fast(new, add_special_tokens=False)
            self._pieces = Tokens.joined([self._pieces, _flat([encoding.ids for encoding in encodings])])


class FastTokenizer:
    """Any tokenizer of the `tokenizers` library, whole texts at a time. model: its JSON; its limits are not applied."""

    kind = "fast"

    def __init__(self, model: str) -> None:
        from tokenizers import Tokenizer as Fast

        self.model = model
        self._fast = Fast.from_str(model)
        self._fast.no_truncation()
        self._fast.no_padding()

    def __len__(self) -> int:
        return int(self._fast.get_vocab_size())

    def content(self, texts: pa.Array | pa.ChunkedArray) -> Tokens:
        return Tokens.joined(map(self._part, _chunks(texts)))

    def description(self) -> dict[str, Any]:
        return {"kind": self.kind, "model": self.model}

    def _part(self, texts: list[str | None]) -> Tokens:
        encodings = self._fast.encode_batch_fast([text or "" for text in texts], add_special_tokens=False)
        return _flat([encoding.ids for encoding in encodings])


class _Numbers(dict[str, int]):
    """Words to numbers in the order they were first asked for."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


def train_words(texts: Iterable[pa.Array | pa.ChunkedArray], size: int, min_count: int = 2) -> WordTokenizer:
    """The size - len(SPECIAL) most frequent code words that occur at least min_count times; ties by alphabet."""
    counts: Counter[str] = Counter()
    for column in texts:
        for part in _chunks(column):
            for text in part:
                counts.update(code_words(text or ""))
    ranked = sorted((word for word, n in counts.items() if n >= min_count), key=lambda word: (-counts[word], word))
    return WordTokenizer(ranked[: max(0, size - len(SPECIAL))])


def train_bpe(texts: Iterable[pa.Array | pa.ChunkedArray], size: int, min_count: int = 2) -> BpeTokenizer:
    """Byte-pair pieces of code words; merges of pairs seen at least min_count times until size ids are used."""
    from tokenizers import Tokenizer as Fast
    from tokenizers import models, pre_tokenizers, trainers

    fast = Fast(models.BPE(unk_token=SPECIAL[UNKNOWN]))
    fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=min_count, special_tokens=list(SPECIAL), show_progress=False
    )
    words = ([" ".join(code_words(text or "")) for text in part] for column in texts for part in _chunks(column))
    fast.train_from_iterator(words, trainer)
    return BpeTokenizer(fast.to_str())


TRAINERS: dict[str, Callable[..., Tokenizer]] = {"words": train_words, "bpe": train_bpe}
KINDS: dict[str, Callable[[Mapping[str, Any]], Tokenizer]] = {
    "words": lambda d: WordTokenizer(d["words"]),
    "bpe": lambda d: BpeTokenizer(d["model"]),
    "fast": lambda d: FastTokenizer(d["model"]),
}


def train(
    texts: Iterable[pa.Array | pa.ChunkedArray], kind: str = "words", size: int = 30_000, min_count: int = 2
) -> Tokenizer:
    """The tokenizer of a kind over these text columns."""
    if kind not in TRAINERS:
        raise DataError(f"vocabulary kind is {kind!r}; known: {', '.join(sorted(TRAINERS))}.{nearest(kind, TRAINERS)}")
    return TRAINERS[kind](texts, size, min_count)


def from_description(description: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer whose `description` this is."""
    return KINDS[description["kind"]](description)


def save(tokenizer: Tokenizer, path: Path) -> None:
    """Write the tokenizer as JSON; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(tokenizer.description(), ensure_ascii=False), encoding="utf-8")


def load(path: Path) -> Tokenizer:
    """The tokenizer that `save` wrote; DataError if the file is missing, cut short or of another kind."""
    try:
        return from_description(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a whole tokenizer file ({error}); make it again") from error


def fast_content(fast: Any, texts: pa.Array | pa.ChunkedArray, prefix: str = "") -> Tokens:
    """Ids by a transformers fast tokenizer, prefix before every text, without marks and without truncation."""
    parts = []
    for part in _chunks(texts):
        batch = [prefix + (text or "") for text in part]
        parts.append(_flat(fast(batch, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]))
    return Tokens.joined(parts)


def _chunks(texts: pa.Array | pa.ChunkedArray) -> Iterator[list[str | None]]:
    for start in range(0, len(texts), TEXTS_AT_A_TIME):
        yield texts.slice(start, TEXTS_AT_A_TIME).to_pylist()


def _words(texts: list[str | None]) -> tuple[list[str], np.ndarray]:
    """The code words of all texts one after the other, and the (N + 1,) int64 places where each text begins."""
    lists = [code_words(text or "") for text in texts]
    offsets = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(words) for words in lists], out=offsets[1:])
    return list(itertools.chain.from_iterable(lists)), offsets


def _flat(lists: list[list[int]]) -> Tokens:
    offsets = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(ids) for ids in lists], out=offsets[1:])
    ids = np.fromiter(itertools.chain.from_iterable(lists), dtype=np.int32, count=int(offsets[-1]))
    return Tokens(ids, offsets)


def _inside(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The places start, start + 1, ... of every run, one run after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
