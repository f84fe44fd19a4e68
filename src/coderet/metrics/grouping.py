"""Answers by what is known of their problems: a language, a place in the context, whether the needle was in it.

A fact that is a text parts the problems into groups, one that is a number is averaged in each. A group that has whole
datasets is summed up as the benchmark is (`scorecards.summary`); one that cuts through datasets weighs its problems
alike.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from coderet.metrics import scorecards
from coderet.metrics.scorecards import Scorecard
from coderet.metrics.significance import Resampled
from coderet.records import DataError

Facts = Mapping[str, str | float]


def groups(
    cards: Mapping[str, Scorecard],
    facts: Mapping[str, Sequence[Facts]],
    mean: Literal["queries", "datasets"],
    resamples: int,
    level: float,
    seed: int,
    resampled: Resampled = "queries",
) -> dict[str, dict[str, Any]]:
    """By the name of each fact that is a text and by its value: how many problems, their metrics with intervals, and
    the means of their numbers.

    facts: of each problem of a dataset, in the order of its scorecard; DataError for another number of them.
    """
    for name, card in cards.items():
        if len(facts[name]) != len(card.query_ids):
            raise DataError(f"{name} has {len(card.query_ids)} scores and facts of {len(facts[name])}; judge again")
    found: dict[str, dict[str, Any]] = {}
    told = [each for own in facts.values() for each in own]
    for fact in dict.fromkeys(name for each in told for name, value in each.items() if isinstance(value, str)):
        for value in sorted({str(each[fact]) for each in told if fact in each}):
            chosen = {name: np.array([each.get(fact) == value for each in facts[name]], bool) for name in cards}
            parts = {name: scorecards.where(card, chosen[name]) for name, card in cards.items() if chosen[name].any()}
            whole = all(chosen[name].all() for name in parts)
            summary = scorecards.summary(
                parts, mean if whole else "queries", resamples, level, seed, resampled if whole else "queries"
            )
            of_group = [each for each in told if each.get(fact) == value]
            numbers = dict.fromkeys(key for each in of_group for key, kept in each.items() if not isinstance(kept, str))
            found.setdefault(fact, {})[value] = {
                "queries": len(of_group),
                "metrics": {
                    metric: {key: figure[key] for key in ("value", "low", "high")}
                    for metric, figure in summary["all"].items()
                },
                **{key: float(np.mean([each[key] for each in of_group if key in each])) for key in numbers},
            }
    return found
