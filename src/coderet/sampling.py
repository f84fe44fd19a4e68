"""How a completion is drawn from what a model holds likely."""

from dataclasses import dataclass
from typing import Any

from coderet.registry import BadValue, check_range


@dataclass(frozen=True)
class Sampling:
    """temperature: 0 takes the likeliest token each time, and top_p, top_k and seed do nothing. top_p: of the likeliest
    tokens, the fewest that have this share together; top_k: at most so many, 0 for any. samples: completions of each
    prompt. stop: strings that end any completion. max_new_tokens: of a completion.

    BadValue for values out of their range, and for several samples that could not differ.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    samples: int = 1
    seed: int = 0
    stop: tuple[str, ...] = ()
    max_new_tokens: int = 384

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", tuple(self.stop))  # YAML gives lists
        check_range("sampling.temperature", self.temperature, 0)
        check_range("sampling.top_p", self.top_p, 0, 1)
        check_range("sampling.top_k", self.top_k, 0)
        check_range("sampling.samples", self.samples, 1)
        check_range("sampling.seed", self.seed, 0, 2**32 - 1)
        check_range("sampling.max_new_tokens", self.max_new_tokens, 1)
        if self.top_p == 0:
            raise BadValue("sampling.top_p is 0, which leaves no token; for the likeliest one set temperature to 0")
        if self.greedy and self.samples > 1:
            raise BadValue(
                f"sampling.samples is {self.samples} and temperature 0, so that all are the same; set samples to 1 or "
                "raise temperature"
            )
        if "" in self.stop:
            raise BadValue("sampling.stop holds the empty text, which would end every completion before it begins")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    @property
    def drawn(self) -> list[Any]:
        """What decides a completion, the stop strings aside; not how many there are: more can be added later."""
        drawn = [0] if self.greedy else [self.temperature, self.top_p, self.top_k, self.seed]
        return [*drawn, self.max_new_tokens]


PAPER = Sampling(temperature=0.2, top_p=0.95)
"""CodeRAG-Bench's (Wang et al., 2024, section 3.1): one sample a problem."""
