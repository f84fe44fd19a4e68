"""Time limits that grow with the reference solution's own time.

A program names the least limit. Where an answer exceeds it, the reference of its problem is timed behind the same wall,
on the same machine, and if that took long the answer runs again under a limit of five times as much. So every verdict
is one under a limit that scales with the reference, and a reference costs nothing where nobody is late.
"""

import math
from collections.abc import Mapping, Sequence

from coderet.benchmarks.answering import Answering, Outcome, Problem, Program

TIMES_THE_REFERENCE = 5.0


def limit(least: float, reference_seconds: float) -> float:
    """Seconds that an answer may take where the reference took reference_seconds; never less than least."""
    return max(least, float(math.ceil(TIMES_THE_REFERENCE * reference_seconds)))


def references(answering: Answering, problem: Problem) -> list[Program]:
    """The programs of a problem's reference, with time enough to be timed; none if the benchmark has no references."""
    if answering.reference is None or answering.programs is None:
        return []
    answer = answering.read(problem, answering.reference(problem), "chat")
    return [own._replace(seconds=TIMES_THE_REFERENCE * own.seconds) for own in answering.programs(problem, answer)]


def given_more(programs: Sequence[Program], timed: Sequence[Outcome]) -> Mapping[int, Program]:
    """Of an answer's programs those whose limit grows, by their place, with the limit that they deserve.

    timed: what became of the reference's programs; one that did not pass tells nothing. Programs of an answer and of
    the reference belong together by their order, or, where their numbers differ, the slowest counts.
    """
    seconds = [outcome.seconds if outcome.verdict == "passed" else 0.0 for outcome in timed]
    if len(seconds) != len(programs):
        seconds = [max(seconds, default=0.0)] * len(programs)
    limits = [limit(each.seconds, own) for each, own in zip(programs, seconds, strict=True)]
    return {
        place: each._replace(seconds=deserved)
        for place, (each, deserved) in enumerate(zip(programs, limits, strict=True))
        if deserved > each.seconds
    }
