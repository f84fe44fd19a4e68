"""Embeddings of a server as an encoder: OpenAI's and what speaks its words, Voyage's, Cohere's.

Nothing here asks the network before texts are to be encoded. A request is bounded by texts and by tokens, keeps the
order of its texts, and is checked for as many finite vectors of the right length as it had texts. The texts of one
request are one shard of the cache, so that a killed, refused or stopped run loses no answer that it got.

Servers refuse empty texts, so a text without anything but white space is not sent: its vector is zero. A server may
change a model behind its name; kept vectors are those of the day they were asked for.
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from coderet.corpora import sources
from coderet.encoders import settings as settings_file
from coderet.encoders.dialects import DIALECTS
from coderet.encoders.encoding import TEXTS_AT_A_TIME, Role
from coderet.records import DataError
from coderet.registry import BadValue, check_range
from coderet.serving import counting, spending
from coderet.serving.counting import Counter, Cut
from coderet.serving.server import Server, ServerError, TooMuch
from coderet.serving.spending import Ledger, SpendingLimit

__all__ = ["Api", "ServerError", "SpendingLimit"]

OF_THE_VECTORS = (
    "dialect address model dim request_dim max_tokens send_ids server_truncates query_prefix document_prefix".split()
)


class Lost(NamedTuple):
    """cut: texts that were cut; lost: how many tokens they lost."""

    cut: int
    lost: int


class Api:
    """An encoder on a server.

    dialect: openai, voyage, cohere; address: another server that speaks it. key_variable: the environment variable that
    holds the key; the empty text for a server that wants none. dim: of each vector, and request_dim asks the server for
    it, where it can shorten. tokenizer: a pinned source of its tokenizer, without which max_tokens cannot be, and
    tokens are counted as bytes. max_tokens: of each text and its prefix, the rest is cut here; server_truncates: or
    there, which nobody counts. send_ids: token ids in the place of texts. batch_texts and batch_tokens: of a request,
    None for what the provider allows. keep_queries: vectors of queries are kept too, which saves money, but times the
    cache. token_limit and spend_limit: in all, the latter in the currency of price, that of a million tokens. timeout:
    seconds; tries: of a request; longest_wait: seconds, a server that asks for a longer one is not waited for.
    """

    CACHED = True
    parameters_count = None  # nobody says

    def __init__(
        self,
        tokenizer: Path | None = None,
        *,
        model: str,
        dim: int,
        dialect: Literal["openai", "voyage", "cohere"] = "openai",
        address: str | None = None,
        key_variable: str | None = None,
        request_dim: bool = False,
        max_tokens: int | None = None,
        server_truncates: bool = False,
        send_ids: bool = False,
        query_prefix: str = "",
        document_prefix: str = "",
        batch_texts: int | None = None,
        batch_tokens: int | None = None,
        keep_queries: bool = False,
        token_limit: int | None = None,
        spend_limit: float | None = None,
        price: float | None = None,
        timeout: float = 60.0,
        tries: int = 6,
        longest_wait: float = 120.0,
    ) -> None:
        self._dialect = DIALECTS[dialect]
        self.settings: dict[str, Any] = {
            "kind": "api",
            "dialect": dialect,
            "address": self._dialect.address if address is None else address,
            "model": model,
            "dim": dim,
            "key_variable": self._dialect.key_variable if key_variable is None else key_variable,
            "request_dim": request_dim,
            "max_tokens": max_tokens,
            "server_truncates": server_truncates,
            "send_ids": send_ids,
            "query_prefix": query_prefix,
            "document_prefix": document_prefix,
            "batch_texts": self._dialect.texts if batch_texts is None else batch_texts,
            "batch_tokens": self._dialect.tokens if batch_tokens is None else batch_tokens,
            "keep_queries": keep_queries,
            "token_limit": token_limit,
            "spend_limit": spend_limit,
            "price": price,
            "timeout": timeout,
            "tries": tries,
            "longest_wait": longest_wait,
        }
        self.dim, self.keep_queries, self._tokenizer = dim, keep_queries, tokenizer
        self._check_settings()
        self._server = Server(
            self.settings["address"], self.settings["key_variable"] or None, timeout, tries, longest_wait
        )
        self._name = f"{model} at {self._server.host}"
        self.ledger = Ledger(
            spending.place(self.settings["address"], model),
            self._name,
            token_limit,
            spend_limit,
            price,
        )

    @classmethod
    def prepare(
        cls,
        work: Path,
        *,
        model: str,
        dim: int,
        dialect: Literal["openai", "voyage", "cohere"] = "openai",
        address: str | None = None,
        key_variable: str | None = None,
        request_dim: bool = False,
        tokenizer: str | None = None,
        max_tokens: int | None = None,
        server_truncates: bool = False,
        send_ids: bool = False,
        query_prefix: str = "",
        document_prefix: str = "",
        batch_texts: int | None = None,
        batch_tokens: int | None = None,
        keep_queries: bool = False,
        token_limit: int | None = None,
        spend_limit: float | None = None,
        price: float | None = None,
        timeout: float = 60.0,
        tries: int = 6,
        longest_wait: float = 120.0,
    ) -> "Api":
        """The encoder of these settings. tokenizer: a spec of `corpora.sources`, all that the network is asked for."""
        if tokenizer is not None:
            sources.fetch([tokenizer], work)
        return cls(
            None if tokenizer is None else counting.find(work),
            model=model,
            dim=dim,
            dialect=dialect,
            address=address,
            key_variable=key_variable,
            request_dim=request_dim,
            max_tokens=max_tokens,
            server_truncates=server_truncates,
            send_ids=send_ids,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
            batch_texts=batch_texts,
            batch_tokens=batch_tokens,
            keep_queries=keep_queries,
            token_limit=token_limit,
            spend_limit=spend_limit,
            price=price,
            timeout=timeout,
            tries=tries,
            longest_wait=longest_wait,
        )

    def save(self, folder: Path) -> None:
        """Write settings, and a copy of the tokenizer, into folder."""
        settings_file.write(folder, self.settings | {"tokenizer": self._tokenizer and self._tokenizer.name})
        if self._tokenizer is not None:
            shutil.copyfile(self._tokenizer, folder / self._tokenizer.name)

    @classmethod
    def load(cls, folder: Path) -> "Api":
        """The encoder that `save` wrote; DataError if its tokenizer is missing."""
        settings = settings_file.read(folder)
        settings.pop("kind")
        name = settings.pop("tokenizer")
        if name is not None and not (folder / name).is_file():
            raise DataError(f"{folder} lacks {name}; prepare it again")
        return cls(None if name is None else folder / name, **settings)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what the vectors depend on; limits, prices, batches and keys are no part of it."""
        digest = hashlib.sha256(json.dumps({name: self.settings[name] for name in OF_THE_VECTORS}).encode())
        if self._tokenizer is not None and (self.settings["max_tokens"] or self.settings["send_ids"]):
            digest.update(self._tokenizer.read_bytes())
        return digest.hexdigest()

    @property
    def spending(self) -> dict[str, float]:
        """What this process has spent, by name: api_requests, api_tokens, api_cost if the price is known."""
        return self._told(self.ledger.mine.requests, self.ledger.mine.tokens, "api")

    @property
    def spending_in_all(self) -> dict[str, float]:
        """What all processes have spent on the model: also what is under way, or was sent and never answered."""
        total = self.ledger.total
        return self._told(total.requests, total.tokens, "api_total")

    def tokens(self, texts: pa.Array | pa.ChunkedArray, role: Role) -> Lost:
        """How many of texts are cut here, and what they lose; what a server cuts, nobody says."""
        cut = lost = 0
        for start in range(0, len(texts), TEXTS_AT_A_TIME):
            for each in self._cut(texts.slice(start, TEXTS_AT_A_TIME), role):
                cut, lost = cut + (each.lost > 0), lost + each.lost
        return Lost(cut, lost)

    def requests(self, texts: pa.Array | pa.ChunkedArray, role: Role) -> list[np.ndarray]:
        """The rows of texts that go into one request each, in order; empty texts go along for nothing."""
        return [np.arange(start, end) for start, end in self._spans(self._cut(texts, role))]

    def encode_queries(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        return self._encode(texts, "query")

    def encode_documents(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """(N, dim) float32."""
        return self._encode(texts, "document")

    def _encode(self, texts: pa.Array | pa.ChunkedArray, role: Role) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for first in range(0, len(texts), TEXTS_AT_A_TIME):
            cuts = self._cut(texts.slice(first, TEXTS_AT_A_TIME), role)
            for start, end in self._spans(cuts):
                sent = [row for row in range(start, end) if cuts[row].tokens]
                if sent:
                    vectors[[first + row for row in sent]] = self._ask([cuts[row] for row in sent], role)
        return vectors

    def _cut(self, texts: pa.Array | pa.ChunkedArray, role: Role) -> list[Cut]:
        """What is sent of each text, its prefix before it; nothing, of no token, for an empty one."""
        prefix, limit = self.settings[f"{role}_prefix"], self.settings["max_tokens"]
        given = [text or "" for text in texts.to_pylist()]
        full = [row for row, text in enumerate(given) if text.strip()]
        if prefix and limit is not None and self._counter.cut([prefix], None)[0].tokens >= limit:
            raise DataError(f"max_tokens is {limit}, which leaves no room beside {role}_prefix; raise it")
        cuts = [Cut("", None, 0, 0)] * len(given)
        for row, cut in zip(full, self._counter.cut([prefix + given[row] for row in full], limit), strict=True):
            cuts[row] = cut
        return cuts

    def _spans(self, cuts: Sequence[Cut]) -> list[tuple[int, int]]:
        """Starts and ends of requests; a text that is over batch_tokens alone has one of its own."""
        texts = tokens = start = 0
        spans = []
        for row, cut in enumerate(cuts):
            full = texts >= self.settings["batch_texts"] or tokens + cut.tokens > self.settings["batch_tokens"]
            if cut.tokens and texts and full:
                spans.append((start, row))
                texts = tokens = 0
                start = row
            texts, tokens = texts + bool(cut.tokens), tokens + cut.tokens
        return [*spans, (start, len(cuts))] if len(cuts) else []

    def _ask(self, cuts: Sequence[Cut], role: Role) -> np.ndarray:
        """The vectors of one request; of its halves, where the server takes less than it says."""
        inputs: list[Any] = [each.ids if self.settings["send_ids"] else each.text for each in cuts]
        payload = self._dialect.payload(
            self.settings["model"],
            inputs,
            role,
            self.dim if self.settings["request_dim"] else None,
            self.settings["server_truncates"],
        )
        tokens = sum(each.tokens for each in cuts)
        try:
            answer = self._server.ask(self._dialect.path, payload, self.ledger, tokens)
        except TooMuch as error:
            if len(cuts) == 1:
                raise ServerError(
                    f"{error}. It refuses even one text, which begins {cuts[0].text[:40]!r} and has up to "
                    f"{tokens:,} tokens; set max_tokens (with a tokenizer) or server_truncates"
                ) from None
            half = len(cuts) // 2
            return np.concatenate([self._ask(cuts[:half], role), self._ask(cuts[half:], role)])
        try:
            billed = self._dialect.billed(answer)
        except AttributeError:
            billed = None
        self.ledger.settle(tokens, tokens if billed is None else billed, len(cuts))
        return self._vectors(answer, len(cuts))

    def _vectors(self, answer: Any, wanted: int) -> np.ndarray:
        """The rows of an answer in the order of its request; DataError unless they are what was asked for."""
        try:
            found = self._dialect.vectors(answer)
        except (KeyError, TypeError, AttributeError) as error:
            raise self._bad(f"an answer without vectors ({type(error).__name__}: {error})") from None
        if len(found) != wanted:
            raise self._bad(f"{len(found)} vectors for {wanted} texts")
        places = [place for place, _ in found]
        if any(place is not None for place in places):
            if sorted(map(repr, places)) != sorted(map(repr, range(wanted))):
                raise self._bad(f"vectors of the places {places}, wanted each from 0 to {wanted - 1} once")
        else:
            places = list(range(wanted))
        vectors = np.empty((wanted, self.dim), np.float32)
        for place, (_, row) in zip(places, found, strict=True):
            if not isinstance(row, list):  # a text of digits would be read as numbers
                raise self._bad("a vector that is no list of numbers")
            try:
                with np.errstate(over="ignore"):
                    vector = np.array([float(each) for each in row], np.float32)
            except (TypeError, ValueError):
                raise self._bad("a vector that is no list of numbers") from None
            if len(vector) != self.dim:
                raise self._bad(f"a vector of {len(vector)} dimensions; dim says {self.dim}")
            if not np.isfinite(vector).all():
                raise self._bad("a vector that is not finite")
            vectors[place] = vector
        return vectors

    def _bad(self, what: str) -> DataError:
        return DataError(
            f"{self._name} gave {what}. Nothing of this answer is used; what was encoded before is kept. "
            "Check model, dim and address of fit.encoder and run again"
        )

    @cached_property
    def _counter(self) -> Counter:
        return counting.Bytes() if self._tokenizer is None else counting.read(self._tokenizer)

    def _told(self, requests: int, tokens: int, prefix: str) -> dict[str, float]:
        told: dict[str, float] = {f"{prefix}_requests": requests, f"{prefix}_tokens": tokens}
        cost = self.ledger.cost(tokens)
        return told if cost is None else told | {f"{prefix}_cost": cost}

    def _check_settings(self) -> None:
        given = self.settings
        for name in ("dim", "batch_texts", "batch_tokens", "tries", "max_tokens"):
            if given[name] is not None:
                check_range(f"fit.encoder.{name}", given[name], 1)
        for name in ("token_limit", "spend_limit", "price", "longest_wait"):
            if given[name] is not None:
                check_range(f"fit.encoder.{name}", given[name], 0)
        check_range("fit.encoder.timeout", given["timeout"], 0.001)
        if given["spend_limit"] is not None and given["price"] is None:
            raise BadValue("fit.encoder.spend_limit needs price, what a million tokens cost in the same currency")
        for name in ("max_tokens", "send_ids"):
            if given[name] and self._tokenizer is None:
                raise BadValue(f"fit.encoder.{name} needs tokenizer, the pinned source of the model's tokenizer")
        if given["send_ids"] and not self._dialect.takes_ids:
            raise BadValue(f"fit.encoder.send_ids: the dialect {given['dialect']} takes texts only")
        if given["batch_texts"] > self._dialect.texts:
            raise BadValue(
                f"fit.encoder.batch_texts is {given['batch_texts']}; the dialect {given['dialect']} takes at most "
                f"{self._dialect.texts}"
            )
