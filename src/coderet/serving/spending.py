"""What was sent to a model that costs money, over all processes and days, and where it must stop.

A ledger is a file of JSON lines that are only appended to. Before a request its tokens are put down, so that no two
processes spend the same rest; once it is answered, the line after says what the server really counted. A request that
was refused is taken back; one that was never answered stays, for the server may have counted it.
"""

import hashlib
import json
import os
import re
import threading
from dataclasses import dataclass, fields
from pathlib import Path

from coderet import journal, paths
from coderet.records import DataError

LEDGERS = paths.WORK / "spending"
MILLION = 1_000_000


def place(address: str, model: str) -> Path:
    """Where the ledger of a model at an address lies."""
    account = hashlib.sha256(f"{address} {model}".encode()).hexdigest()[:8]
    return LEDGERS / f"{re.sub(r'[^A-Za-z0-9._-]', '_', model)}-{account}.jsonl"


class SpendingLimit(ValueError):
    """The next request could cost more than is left: says what is spent, the limit, and what to do."""


@dataclass
class Spent:
    """Sums over answered requests; tokens are the server's own count where it gives one.

    tokens: of what it was given to read; written: of what it wrote.
    """

    requests: int = 0
    texts: int = 0
    tokens: int = 0
    written: int = 0

    def add(self, other: "Spent") -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class Ledger:
    """The ledger in path of one model, called name in messages.

    token_limit: tokens that may be sent and written in all; spend_limit: the same in money, by price, which is that of
    a million tokens sent, and price_written, of a million written ones. None for no limit. setting: where the limits
    stand in params.yaml, and done: what is done to texts, for messages. Threads may share a ledger.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        token_limit: int | None,
        spend_limit: float | None,
        price: float | None,
        price_written: float = 0.0,
        setting: str = "fit.encoder",
        done: str = "encoded",
    ) -> None:
        self._path, self._name, self._price, self._price_written = path, name, price, price_written
        self._setting, self._done = setting, done
        self._one_at_a_time = threading.Lock()
        self._token_limit, self._spend_limit = token_limit, spend_limit
        self._read = 0
        self._total = Spent()
        self.mine = Spent()  # of this process

    @property
    def total(self) -> Spent:
        """Of all processes until now."""
        if self._path.exists():
            with self._path.open("rb") as file:
                self._catch_up(file.fileno())
        return self._total

    def cost(self, tokens: int, written: int = 0) -> float | None:
        """In the currency of the price; None without one."""
        return None if self._price is None else (tokens * self._price + written * self._price_written) / MILLION

    def reserve(self, tokens: int, written: int = 0) -> None:
        """Put down a request of at most so many tokens; SpendingLimit if that could be over a limit."""
        self._append(Spent(tokens=tokens, written=written), check=True)

    def release(self, tokens: int, written: int = 0) -> None:
        """Take back a request that the server refused."""
        self._append(Spent(tokens=-tokens, written=-written))

    def settle(self, reserved: int, tokens: int, texts: int, reserved_written: int = 0, written: int = 0) -> None:
        """Put down what the server counted for a request that it answered, in the place of what was reserved."""
        self._append(Spent(1, texts, tokens - reserved, written - reserved_written))
        with self._one_at_a_time:
            self.mine.add(Spent(1, texts, tokens, written))

    def _append(self, entry: Spent, check: bool = False) -> None:
        with journal.opened(self._path) as handle:
            self._catch_up(handle)
            if check:
                self._check(entry)
            line = json.dumps({each.name: getattr(entry, each.name) for each in fields(entry)})
            journal.append(handle, line.encode())
            self._catch_up(handle)

    def _catch_up(self, handle: int) -> None:
        """Add up the lines that were appended since last time."""
        size = os.fstat(handle).st_size
        content = os.pread(handle, size - self._read, self._read)
        try:
            for line in content.splitlines():
                self._total.add(Spent(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise DataError(
                f"{self._path} is not a whole ledger ({error}), so what was spent is not known; mend its last line, "
                "or remove the file to count from zero"
            ) from None
        self._read += len(content)

    def _check(self, entry: Spent) -> None:
        read, written = self._total.tokens, self._total.written
        spent, tokens = read + written, entry.tokens + entry.written
        wanted = spent + tokens
        limits = []
        if self._token_limit is not None and wanted > self._token_limit:
            limits.append(f"token_limit {self._token_limit:,}")
        cost = self.cost(read + entry.tokens, written + entry.written)
        if self._spend_limit is not None and cost is not None and cost > self._spend_limit:
            limits.append(f"spend_limit {self._spend_limit:g}")
        if limits:
            already = f", {self.cost(read, written):.4f} in money," if self._price is not None else ""
            raise SpendingLimit(
                f"{self._name}: {spent:,} tokens{already} are spent and the next request takes up to {tokens:,}, which "
                f"is more than {self._setting}'s {' and '.join(limits)}. What was {self._done} is kept: raise the "
                f"limit and run the same stage again, it goes on from there. The ledger is {self._path}"
            )
