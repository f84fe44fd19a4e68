"""Completions kept as they come: asked for once, whoever is killed in between.

One file of JSON lines for each generator, only appended to, each line synced to disk: a completion under the key of
prompt, sampling and sample number. A killed run loses what was under way; its last line may be torn and is then asked
for again. A failure is a line too, which says what went wrong; the next run asks again, and as long as one is left
there is no result, for a prompt without a completion must not look like one that was answered with nothing.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from coderet import journal
from coderet.generators.base import Completion, Generator, Prompt, whole
from coderet.records import DataError
from coderet.sampling import Sampling

FAILED = "failed"
SHOWN = 3


@dataclass
class Tally:
    """kept: completions that were there before; made: those made now, with their tokens."""

    kept: int = 0
    made: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    made_tokens: int = 0
    finishes: dict[str, int] = field(default_factory=dict)

    def count(self, completion: Completion, made: bool) -> None:
        self.kept += not made
        self.made += made
        self.made_tokens += completion.completion_tokens if made else 0
        self.prompt_tokens += completion.prompt_tokens
        self.completion_tokens += completion.completion_tokens
        self.finishes[completion.finish] = self.finishes.get(completion.finish, 0) + 1


class Store:
    """The completions of one generator, in a file in folder."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.path = folder / f"{identity[:32]}.jsonl"
        self._known: dict[str, list[Any]] = {}
        if self.path.exists():
            for line in self.path.read_bytes().splitlines():
                self._read(line)

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: str, place: int) -> Completion | None:
        """The completion under key, as that of the prompt at place."""
        found = self._known.get(key)
        return None if found is None else Completion(place, *found)

    def add(self, key: str, completion: Completion) -> Completion:
        """Keep a completion for good, before anything else is done; a failure is written down and not found again.

        Returns it as it will be found.
        """
        completion = completion._replace(text=whole(completion.text), error=whole(completion.error))
        line = json.dumps([key, *completion[1:]]).encode()
        with journal.opened(self.path) as handle:
            journal.append(handle, b"\n" + line if journal.torn(handle) else line)
            os.fsync(handle)
        self._read(line)
        return completion

    def _read(self, line: bytes) -> None:
        try:
            key, text, finish, prompt_tokens, completion_tokens, error, stop = json.loads(line)
        except (ValueError, TypeError, RecursionError):  # torn
            return
        if finish != FAILED:
            self._known[key] = [text, finish, prompt_tokens, completion_tokens, error, stop]


def complete(
    generator: Generator,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    folder: Path,
    progress: str | None = None,
    tally: Callable[[int], Tally] | None = None,
    name: Callable[[int], str] = str,
) -> list[list[Completion]]:
    """The completions of each prompt, sampling.samples of them, from what is kept in folder and else from generator.

    Prompts that are equal are asked for once. tally: where the prompt at a place is counted. name tells which prompt is
    at a place. DataError, once all others are kept, if some have none. Errors of the generator pass through; what came
    before is kept.
    """
    store = Store(folder, generator.identity)
    samples = [each._replace(sample=sample) for each in prompts for sample in range(sampling.samples)]
    keys = [each.key(sampling) for each in samples]
    todo = {key: each for key, each in zip(keys, samples, strict=True) if store.find(key, 0) is None}
    asked, unanswered = [*todo], dict.fromkeys(todo, "the generator gave none")
    with tqdm(
        total=len(keys),
        initial=len(keys) - len(asked),
        desc=progress,
        unit="answer",
        disable=None if progress else True,
    ) as bar:
        for made in generator.generate([*todo.values()], sampling):
            store.add(asked[made.place], made)
            bar.update()
            if made.finish == FAILED:
                unanswered[asked[made.place]] = made.error
                continue
            del unanswered[asked[made.place]]
    if unanswered:
        _refuse(unanswered, keys, store.path, lambda place: name(place // sampling.samples))
    found = [*_found(store, keys, sampling.samples)]
    if tally:
        for place, (key, each) in enumerate(zip(keys, found, strict=True)):
            tally(place // sampling.samples).count(each, made=todo.pop(key, None) is not None)
    return [found[start : start + sampling.samples] for start in range(0, len(found), sampling.samples)]


def _found(store: Store, keys: Sequence[str], samples: int) -> Iterator[Completion]:
    for place, key in enumerate(keys):
        completion = store.find(key, place // samples)
        assert completion is not None  # those that lack were refused before
        yield completion


def _refuse(unanswered: dict[str, str], keys: Sequence[str], path: Path, name: Callable[[int], str]) -> None:
    examples = [f"{name(keys.index(key))} ({error})" for key, error in [*unanswered.items()][:SHOWN]]
    more = f" and {len(unanswered) - SHOWN} more" if len(unanswered) > SHOWN else ""
    raise DataError(
        f"{len(unanswered)} of {len(keys)} completions are missing: {'; '.join(examples)}{more}. The others are kept "
        f"in {path}: mend the cause and run the same stage again, only what is missing is asked for"
    )
