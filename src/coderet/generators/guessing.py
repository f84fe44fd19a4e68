"""What probably comes next, said without a model: what followed the same tokens before.

Code repeats what its prompt shows, and a small model that is lost repeats itself for ever. A model reads several tokens
in nearly the time of one, so that it can check a guess of many as it writes (prompt lookup, Saxena, 2023): what it
would have written itself is kept, the rest is forgotten, and nothing is written that it would not have.
"""

from collections.abc import Sequence

RUN = 3  # tokens that must have stood together before
MOST = 8  # tokens guessed at once


class Echo:
    """The tokens of a prompt and of its completion so far, and how far guesses on them are to be trusted: doubled after
    one that was right to its end, else as far as the last was right."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}
        self._trust = 1
        for token in ids:
            self.add(token)

    def add(self, token: int) -> None:
        if len(self._ids) >= RUN:
            self._after[tuple(self._ids[-RUN:])] = len(self._ids)
        self._ids.append(token)

    def guess(self, most: int) -> list[int]:
        """At most so many tokens; none where the last ones never stood together before. A guess that comes to the end
        of what there is goes on with itself, as a repetition does."""
        place = self._after.get(tuple(self._ids[-RUN:]))
        if place is None:
            return []
        guessed: list[int] = []
        both = len(self._ids)
        for at in range(place, place + min(most, self._trust)):
            guessed.append(self._ids[at] if at < both else guessed[at - both])
        return guessed

    def checked(self, guessed: int, right: int) -> None:
        """Of the tokens guessed last, so many were right."""
        if guessed:
            self._trust = min(2 * self._trust, MOST) if right == guessed else max(1, right)
