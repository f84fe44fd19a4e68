"""What was sent to a model that costs money, over all processes and days, and where it must stop.

A ledger is a file of JSON lines that are only appended to. Before a request its tokens are put down, so that no two
processes spend the same rest; once it is answered, the line after says what the server really counted. A request that
was refused is taken back; one that was never answered stays, for the server may have counted it.
"""

import fcntl
import json
import os
from dataclasses import dataclass, fields
from pathlib import Path

from coderet.records import DataError

MILLION = 1_000_000


class SpendingLimit(ValueError):
    """The next request could cost more than is left: says what is spent, the limit, and what to do."""


@dataclass
class Spent:
    """Sums over answered requests; tokens are the server's own count where it gives one."""

    requests: int = 0
    texts: int = 0
    tokens: int = 0

    def add(self, other: "Spent") -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class Ledger:
    """The ledger in path of one model, called name in messages.

    token_limit: tokens that may be sent in all; spend_limit: the same in money, by price, which is that of a million
    tokens. None for no limit.
    """

    def __init__(
        self, path: Path, name: str, token_limit: int | None, spend_limit: float | None, price: float | None
    ) -> None:
        self._path, self._name, self._price = path, name, price
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

    def cost(self, tokens: int) -> float | None:
        """In the currency of the price; None without one."""
        return None if self._price is None else tokens * self._price / MILLION

    def reserve(self, tokens: int) -> None:
        """Put down a request of at most so many tokens; SpendingLimit if that could be over a limit."""
        self._append(Spent(tokens=tokens), check=True)

    def release(self, tokens: int) -> None:
        """Take back a request that the server refused."""
        self._append(Spent(tokens=-tokens))

    def settle(self, reserved: int, tokens: int, texts: int) -> None:
        """Put down what the server counted for a request that it answered, in the place of what was reserved."""
        self._append(Spent(1, texts, tokens - reserved))
        self.mine.add(Spent(1, texts, tokens))

    def _append(self, entry: Spent, check: bool = False) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self._catch_up(handle)
            if check:
                self._check(entry.tokens)
            line = json.dumps({each.name: getattr(entry, each.name) for each in fields(entry)}) + "\n"
            os.write(handle, line.encode())
            self._catch_up(handle)
        finally:
            os.close(handle)

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

    def _check(self, tokens: int) -> None:
        spent, wanted = self._total.tokens, self._total.tokens + tokens
        limits = []
        if self._token_limit is not None and wanted > self._token_limit:
            limits.append(f"token_limit {self._token_limit:,}")
        cost = self.cost(wanted)
        if self._spend_limit is not None and cost is not None and cost > self._spend_limit:
            limits.append(f"spend_limit {self._spend_limit:g}")
        if limits:
            already = f", {self.cost(spent):.4f} in money," if self._price is not None else ""
            raise SpendingLimit(
                f"{self._name}: {spent:,} tokens{already} are spent and the next request takes up to {tokens:,}, which "
                f"is more than fit.encoder's {' and '.join(limits)}. What was encoded is kept: raise the limit and run "
                f"the same stage again, it goes on from there. The ledger is {self._path}"
            )
