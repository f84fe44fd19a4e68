"""What else may stand for a pair in an epoch, as token ids: the texts that `augmentation` makes, behind the pairs' own.

Which one does is drawn for every pair and epoch anew, so all are made and tokenised once, and training is as fast with
them as without.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from coderet.encoders.encoding import Role
from coderet.encoders.tokenizer import Tokens
from coderet.training import augmentation
from coderet.training.augmentation import Draws
from coderet.training.batches import random_of
from coderet.training.keys import TEXTS_AT_A_TIME, text_key, text_keys
from coderet.training.mixture import NO_ROW

COLUMN_OF_ROLE: dict[Role, str] = {"query": "query", "document": "code"}
ROLES: tuple[Role, ...] = ("query", "document")
NAMES = ("names", "masked", "name_keys", "questions", "renamed", "titled")


class Shares(NamedTuple):
    """What part of the pairs is given each sort of text in an epoch, of those that have one."""

    names: float = 0.0
    questions: float = 0.0
    renamed: float = 0.0
    titles: float = 0.0
    unnamed: float = 0.0


@dataclass(frozen=True, eq=False)
class Variants:
    """What else may stand for a pair: places of texts among the tokens of a role, NO_ROW where there is none.

    names (N,) and masked (N,): the function's name as the query, with name_keys (N,), and its code without it.
    questions (N, Q) and renamed (N, V): other queries and other codes, those that there are in front. titled (N,): the
    code behind its qualified name, as an index of `text_fields: [title, text]` reads it.
    """

    names: np.ndarray
    masked: np.ndarray
    name_keys: np.ndarray
    questions: np.ndarray
    renamed: np.ndarray
    titled: np.ndarray
    shares: Shares
    seed: int

    def queries(self, rows: np.ndarray, epoch: int) -> np.ndarray:
        """(B,) texts that ask for the pairs in rows."""
        chosen = _one_of(self.questions, rows, self.shares.questions, Draws(self.seed, epoch), _QUESTION)
        return np.where(self.named(rows, epoch), self.names[rows], chosen)

    def documents(self, rows: np.ndarray, epoch: int) -> np.ndarray:
        """(B,) texts that are the code of the pairs in rows, whoever asks: without its name, behind its title, or else
        perhaps with other local names."""
        draws, shares = Draws(self.seed, epoch), self.shares
        chosen = _one_of(self.renamed, rows, shares.renamed, draws, _RENAMED)
        form = draws.of(rows, _FORM)
        masked, titled = self.masked[rows], self.titled[rows]
        chosen = np.where((form < shares.unnamed + shares.titles) & (titled != NO_ROW), titled, chosen)
        return np.where((form < shares.unnamed) & (masked != NO_ROW), masked, chosen)

    def named(self, rows: np.ndarray, epoch: int) -> np.ndarray:
        """(B,) bool: whether a pair's query is the function's name."""
        drawn = Draws(self.seed, epoch).of(rows, _NAMED) < self.shares.names
        return np.asarray(drawn & (self.names[rows] != NO_ROW))

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], shares: Shares, seed: int) -> "Variants":
        """From the arrays that `Texts.varied` made."""
        return cls(**{name: np.array(arrays[name]) for name in NAMES}, shares=shares, seed=seed)

    @property
    def facts(self) -> dict[str, int]:
        """How many pairs have another text of each sort."""
        return {
            "pairs_with_a_name": int((self.names != NO_ROW).sum()),
            "pairs_with_questions": int((self.questions != NO_ROW).any(axis=1).sum()),
            "pairs_with_renamed_code": int((self.renamed != NO_ROW).any(axis=1).sum()),
            "pairs_with_a_title": int((self.titled != NO_ROW).sum()),
        }


class Texts:
    """The texts of pairs as an encoder reads them, and further ones behind them."""

    def __init__(self, encoder: Any, table: pa.Table) -> None:
        self._encoder, self._table = encoder, table
        self._parts = {role: [encoder.tokens(table[COLUMN_OF_ROLE[role]], role)] for role in ROLES}
        self._sizes = {role: len(table) for role in ROLES}

    def varied(
        self, seed: int, wanted: Shares, name_letters: int, variants: int, from_corpus: bool, mined: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Arrays of `Variants`; the texts they name are added.

        wanted: sorts of which no pair is given any are not made. mined (N,) bool: the others are no functions, so that
        their code is neither titled nor unnamed.
        """
        count, variants = len(self._table), variants if wanted.renamed else 0
        names, masked, name_keys = np.full(count, NO_ROW), np.full(count, NO_ROW), np.zeros(count, np.int64)
        asked = np.full((count, augmentation.QUESTIONS if wanted.questions else 0), NO_ROW)
        renamed, titled = np.full((count, variants), NO_ROW), np.full(count, NO_ROW)
        pool = self._pool(seed) if variants and from_corpus else {}
        for start in tqdm(range(0, count, TEXTS_AT_A_TIME), desc="augment", unit="block", disable=None):
            rows = self._table.select(["name", "language", "query", "code"]).slice(start, TEXTS_AT_A_TIME).to_pylist()
            new: dict[Role, list[str]] = {role: [] for role in ROLES}
            for row, each in enumerate(rows, start):
                name, language = each["name"] or "", each["language"] or ""
                query = augmentation.name_query(name, name_letters) if wanted.names else None
                if query is not None:
                    names[row] = self._add(new, "query", query)
                    name_keys[row] = text_key(query)
                function = bool(name and mined[row])
                if query is not None or (function and wanted.unnamed):
                    masked[row] = self._add(new, "document", augmentation.masked(each["code"], name))
                if function and wanted.titles:
                    titled[row] = self._add(new, "document", f"{name} {each['code']}")
                for number, text in enumerate(
                    augmentation.questions(each["query"], language) if wanted.questions else ()
                ):
                    asked[row, number] = self._add(new, "query", text)
                if not variants:
                    continue  # local names are found by parsing, the slowest thing here
                random = np.random.Generator(np.random.PCG64([seed, row]))
                codes = augmentation.renamings(each["code"], language, variants, pool.get(language, []), random)
                for number, text in enumerate(codes):
                    renamed[row, number] = self._add(new, "document", text)
            for role in ROLES:
                self._parts[role].append(self._encoder.tokens(pa.array(new[role], pa.large_string()), role))
                self._sizes[role] += len(new[role])
        made = {"names": names, "masked": masked, "name_keys": name_keys, "questions": asked}
        return made | {"renamed": renamed, "titled": titled}

    def arrays(self) -> dict[str, np.ndarray]:
        """Token ids and keys of both roles, for `pairs.tokenised`. What was cut is told of the pairs' own texts."""
        arrays = {}
        for role in ROLES:
            whole, own = Tokens.joined(self._parts[role]), self._parts[role][0]
            arrays[f"{role}.ids"], arrays[f"{role}.offsets"] = whole.ids, whole.offsets
            arrays[f"{role}.lost"] = np.array([own.cut, own.lost])
            arrays[f"{role}.keys"] = text_keys(self._table[COLUMN_OF_ROLE[role]])
        return arrays

    def _add(self, new: dict[Role, list[str]], role: Role, text: str) -> int:
        new[role].append(text)
        return self._sizes[role] + len(new[role]) - 1

    def _pool(self, seed: int) -> dict[str, list[str]]:
        rows = random_of(seed, 0).permutation(len(self._table))[: augmentation.POOL]
        some = self._table.select(["code", "language"]).take(pa.array(np.sort(rows))).to_pylist()
        return augmentation.pool_of((each["code"], each["language"] or "") for each in some)


def _one_of(places: np.ndarray, rows: np.ndarray, share: float, draws: Draws, what: int) -> np.ndarray:
    """(B,) one of the places (N, V) of each row, for a share of the rows; the row itself for the others."""
    there = places[rows]
    counts = (there != NO_ROW).sum(axis=1)
    chosen = (draws.of(rows, what) < share) & (counts > 0)
    which = (draws.of(rows, what + 1) * counts).astype(np.int64)
    picked = np.take_along_axis(there, which[:, None], 1)[:, 0] if there.shape[1] else rows
    return np.where(chosen, picked, rows)


_NAMED, _QUESTION, _RENAMED, _FORM = 0, 1, 3, 5  # streams of draws; a question and a renaming take two each
