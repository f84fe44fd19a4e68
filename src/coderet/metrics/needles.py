"""How alike two functions are, told by their tokens: what an answer to a needle is scored by.

`bleu` is the similarity of RepoQA (Liu et al., 2024, arXiv 2406.06025): NLTK's sentence BLEU (Papineni et al., 2002)
of one reference up to 4-grams, with the fourth smoothing of Chen and Cherry (2014), written out, for NLTK has changed
that formula. Its tokens there are what white space parts (`words`), so that `a=b` and `a = b` share nothing and a
function of two or three such tokens never reaches 0.8; `code_tokens` are names, numbers and single marks. Edit
similarity and token F1 stand beside it.

`pieces` are the fixed tokens that budgets are counted in, so that retrievers compare whoever reads: about as many as a
language model's (of Python functions 0.95 of SmolLM2's), without a file to go by.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

ORDERS = 4
SMOOTHING = 5  # NLTK's k
THRESHOLDS = tuple(number / 10 for number in range(11))
HEADLINE = 0.8
TOLD = (HEADLINE, *(each for each in THRESHOLDS if each != HEADLINE))  # as a benchmark's metrics stand


def words(text: str) -> tuple[str, ...]:
    """What white space parts, as RepoQA compares it."""
    return tuple(text.split())


def code_tokens(text: str) -> tuple[str, ...]:
    """Names, numbers and single marks; white space parts and is none."""
    return tuple(_TOKEN.findall(text))


def pieces(text: str) -> int:
    """How many: words of letters, split as `words.code_words` splits them, single digits, runs of marks, line breaks
    with the indentation behind them."""
    return len(_PIECE.findall(text))


def bleu(candidate: tuple[str, ...], reference: tuple[str, ...]) -> float:
    """In [0, 1]; 0 if no token is shared. Equal texts of two or three tokens do not reach 1: see the module."""
    if not candidate or ngrams(candidate, 1).keys().isdisjoint(ngrams(reference, 1)):
        return 0.0
    zeros, logarithms = 0, []
    for order in range(1, ORDERS + 1):
        own, other = ngrams(candidate, order), ngrams(reference, order)
        shared = sum(min(count, other[each]) for each, count in own.items() if each in other)
        precision = shared / max(1, len(candidate) - order + 1)
        if not shared and len(candidate) > 1:
            zeros += 1
            precision = math.log(len(candidate)) / (2**zeros * SMOOTHING) / max(1, len(candidate) - order + 1)
        if precision:
            logarithms.append(math.log(precision) / ORDERS)
    brevity = min(1.0, math.exp(1 - len(reference) / len(candidate)))
    return brevity * math.exp(math.fsum(logarithms))


@lru_cache(maxsize=40_000)
def ngrams(tokens: tuple[str, ...], order: int) -> Counter[tuple[str, ...]]:
    """How often each run of so many tokens occurs; kept, for every answer is compared with the same functions."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def similarity(candidate: tuple[str, ...], reference: tuple[str, ...]) -> float:
    """`bleu`, but 1 for equal texts, however short."""
    return 1.0 if candidate and candidate == reference else bleu(candidate, reference)


def edit_similarity(candidate: Sequence[str], reference: Sequence[str]) -> float:
    """1 less the tokens to put in, take out or exchange (Levenshtein, 1966) over those of the longer one."""
    longest = max(len(candidate), len(reference))
    if not longest:
        return 1.0
    numbers = {token: number for number, token in enumerate(dict.fromkeys((*candidate, *reference)))}
    own, other = ([numbers[token] for token in each] for each in (candidate, reference))
    columns = np.array(other)
    places = np.arange(len(other) + 1)
    row = places
    for number, token in enumerate(own, 1):
        least = np.concatenate([[number], np.minimum(row[1:] + 1, row[:-1] + (columns != token))])
        row = np.minimum.accumulate(least - places) + places  # a token taken out costs one for each column
    return 1.0 - int(row[-1]) / longest


def token_f1(candidate: Sequence[str], reference: Sequence[str]) -> float:
    """Harmonic mean of the shares of either's tokens that the other has, in no order; 1 if both are empty."""
    if not candidate and not reference:
        return 1.0
    shared = (Counter(candidate) & Counter(reference)).total()
    return 2 * shared / (len(candidate) + len(reference))


_TOKEN = re.compile(r"\w+|[^\w\s]")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d|_+|[^\W\d_a-zA-Z]+|[^\w\s]+|\n[ \t]*")
