"""Among which functions a needle is looked for.

`repository`, the default, is what a retriever has to do; `needles` what the released scorer tells apart; `window` makes
a ranking comparable with a language model that reads so many tokens around the needle (`metrics.needles.pieces`), every
place of a needle a query of its own; `language` ranks the functions of all repositories of a language. What is no
candidate is excluded from the hits, so that ranks and chance are those of the candidates; statistics of a corpus, as
BM25's, remain those of the repository.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from coderet.benchmarks import needles, windows
from coderet.benchmarks.needles import Among, Candidates, Repository
from coderet.metrics.needles import pieces
from coderet.records import DataError, Draft

KNOWN = ("repository", "needles", "window", "language")


def among(candidates: Candidates, window: int) -> Among | None:
    """What `needles.draft` narrows a repository by. DataError for other candidates, and for a window without a size or
    a size without a window."""
    if candidates not in KNOWN:
        raise DataError(f"candidates is {candidates!r}; wanted one of {', '.join(KNOWN)}")
    if (candidates == "window") != (window > 0):
        raise DataError(
            f"candidates is {candidates!r} and window {window}; wanted a window of so many tokens with candidates: "
            "window, and none with others"
        )
    if candidates == "window":
        return partial(windows.inside, size=window, count=pieces)
    return _needles if candidates == "needles" else None


def _needles(repository: Repository, function: int, depth: float) -> list[int]:
    """The needles, and what has the text of this one."""
    return sorted({*(each.function for each in repository.needles), *repository.copies(function)})


def drafted(drafts: Iterable[Draft], candidates: Candidates) -> Iterator[Draft]:
    """The drafts with the corpora that the candidates make."""
    return needles.across(list(drafts)) if candidates == "language" else iter(drafts)
