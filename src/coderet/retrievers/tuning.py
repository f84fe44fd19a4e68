"""A fusion's settings, chosen on validation pairs and never on a benchmark.

The code of validation pairs is a corpus and their doc comments are its questions. But a doc comment is long and knows
the words of its code, which people who search do not; by it alone a lexical member looks better than it is. So the same
questions are asked in several ways (`WAYS`), down to one in which no word of the answer is left and all that a lexical
member finds is wrong. Those settings are chosen that gain most over the better member in the mean of all ways.
"""

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coderet import registry, retrievers
from coderet.corpora import store
from coderet.metrics import scorecards
from coderet.params import TUNE
from coderet.records import (
    DataError,
    Dataset,
    Qrels,
    Queries,
    Retriever,
    Run,
    documents_batch,
    qrels_table,
    queries_table,
)
from coderet.retrievers.answering import answer
from coderet.words import code_words

METRIC = "ndcg@10"
SHORT = 6  # words, about as many as a question to a search engine has
PAIRS, DEPTH = 1000, 100  # enough to tell settings apart by some thousandths, in a minute
COLUMNS = ("pair_id", "query", "code")


def _whole(query: str, code: str) -> str:
    """As it stands."""
    return query


def _short(query: str, code: str) -> str:
    """Its first SHORT words."""
    return " ".join(query.split()[:SHORT])


def _strange(query: str, code: str) -> str:
    """Less every second word that its code has too."""
    return _without_shared(query, code, 2)


def _foreign(query: str, code: str) -> str:
    """Less every word that its code has too."""
    return _without_shared(query, code, 1)


def _without_shared(query: str, code: str, every: int) -> str:
    known, shared, kept = set(code_words(code)), 0, []
    for word in query.split():
        if known.intersection(code_words(word)):
            shared += 1
            if shared % every == 0:
                continue
        kept.append(word)
    return " ".join(kept)


WAYS = {"whole": _whole, "short": _short, "strange": _strange, "foreign": _foreign}
"""Ways to ask for the code that a doc comment belongs to: functions of both texts."""


def settled(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A fusion's settings, those that are to be tuned as they were chosen in path."""
    given = dict(settings)
    if given.pop(TUNE, None) is None:
        return given
    chosen: dict[str, Any] = store.read_json(path)["settings"]
    return given | chosen


def tune(
    kind: str,
    settings: Mapping[str, Any],
    members: Mapping[str, Retriever],
    pairs: Path,
    work: Path,
    seed: int,
    batch: int,
    where: str = "params.yaml: fusions",
) -> dict[str, Any]:
    """The settings chosen for a fusion of members and what they were chosen from, for `settled` and for people.

    settings: those of the fusion, `tune` among them (see `_plan`). pairs: a file of validation pairs. Indexes are made
    in a folder of work that is gone afterwards; batch queries are searched at once.
    """
    fixed = dict(settings)
    plan = registry.fit_arguments(_plan, fixed.pop(TUNE, {}), f"{where}.{TUNE}")
    trials = _plan(**plan)
    fusions = [retrievers.fuser(kind, {**fixed, **each}, where) for each in trials]
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work, prefix="tune-") as place:
        asked = datasets(pairs, plan.get("pairs", PAIRS), seed, Path(place))
        runs = searched(members, asked, Path(place), plan.get("depth", DEPTH), batch)
    alone = {
        way: {name: _values(asked[way], run) for name, run in zip(members, of_way, strict=True)}
        for way, of_way in runs.items()
    }
    better = {way: max(of_way.values(), key=np.nanmean) for way, of_way in alone.items()}
    fused = [{way: _values(asked[way], fuse(of_way)) for way, of_way in runs.items()} for fuse in fusions]
    gains = np.array([_mean_by_pair([values[way] - better[way] for way in runs]) for values in fused])
    best = first_of_the_best(gains)
    return {
        "settings": trials[best],
        "metric": METRIC,
        "documents": gains.shape[1],
        "questions": {way: len(dataset.queries) for way, dataset in asked.items()},
        "mean_gain": float(gains[best].sum()),
        "largest_mean_gain": float(gains.sum(axis=1).max()),
        "members": {way: _means(of_way) for way, of_way in alone.items()},
        "fused": _means(fused[best]),
        "trials": [each | _means(values) for each, values in zip(trials, fused, strict=True)],
    }


def first_of_the_best(gains: np.ndarray) -> int:
    """The first trial that is not worse than the best by more than the standard error of their difference.

    gains: (trials, N), what each of N pairs, drawn at random, adds to the mean gain of a trial.
    """
    behind = gains[np.argmax(gains.sum(axis=1))] - gains
    errors = behind.std(axis=1) * np.sqrt(gains.shape[1])
    return int(np.argmax(behind.sum(axis=1) <= errors))


def _plan(*, grid: Mapping[str, Any], pairs: int = PAIRS, depth: int = DEPTH) -> list[dict[str, Any]]:
    """Every combination of the values of grid, a list a setting, the most cautious values first.

    pairs: so many validation pairs at most, drawn by the seed. depth: hits a query of each member.
    """
    registry.check_range("tune.pairs", pairs, 2)
    registry.check_range("tune.depth", depth, 10)
    if not isinstance(grid, Mapping) or not grid or not all(isinstance(each, list) and each for each in grid.values()):
        raise registry.BadValue(f"tune.grid is {grid!r}; wanted a list of values to try for each setting")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def datasets(path: Path, pairs: int, seed: int, folder: Path) -> dict[str, Dataset]:
    """The questions of a file of pairs, by the way they are asked, over one corpus of their code, written into folder.

    At most so many pairs are drawn by seed, of those that have both sides. The answer to a question is the code of its
    pair, and that of every pair drawn with the same doc comment. A question of which a way leaves no word is not asked
    in it.
    """
    try:
        table = pq.read_table(path, columns=list(COLUMNS))
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} is not a whole file of pairs ({error}); run: dvc repro mine") from error
    table = table.filter(pa.array(store.whole_pairs(table)))
    if len(table) < 2:
        raise DataError(
            f"{path} has {len(table)} pairs with both a query and code; wanted 2 at least: mine from more packages"
        )
    drawn = np.random.default_rng(seed).permutation(len(table))[:pairs]
    ids, questions, codes = (table[name].take(pa.array(np.sort(drawn))).to_pylist() for name in COLUMNS)
    store.write_corpus(folder / "corpora" / "validation.arrow", [documents_batch(ids, [""] * len(ids), codes)])
    corpus = store.read_corpus(folder, "validation")
    pairs_of: dict[str, list[str]] = {}
    for pair, question in zip(ids, questions, strict=True):
        pairs_of.setdefault(question, []).append(pair)
    made = {}
    for way, asked in WAYS.items():
        texts = [asked(question, code) for question, code in zip(questions, codes, strict=True)]
        left = [place for place, text in enumerate(texts) if text]
        if left:
            queries = Queries(queries_table([ids[place] for place in left], [texts[place] for place in left]))
            answers = [(ids[place], other) for place in left for other in pairs_of[questions[place]]]
            made[way] = Dataset(way, corpus, queries, Qrels(qrels_table(*zip(*answers, strict=True))))
    return made


def searched(
    members: Mapping[str, Retriever], asked: Mapping[str, Dataset], folder: Path, depth: int, batch: int
) -> dict[str, list[Run]]:
    """The runs of members, in their order, for the questions of each way; all ask the same corpus."""
    corpus = next(iter(asked.values())).corpus
    runs: dict[str, list[Run]] = {way: [] for way in asked}
    for name, member in members.items():
        index = folder / "indexes" / name
        member.index(corpus, index)
        searcher = member.open(corpus, index)
        for way, dataset in asked.items():
            runs[way].append(answer(searcher, dataset, depth, batch)[0])
    return runs


def _values(dataset: Dataset, run: Run) -> np.ndarray:
    """(N,) METRIC of the question of each document's pair, NaN where it is not asked."""
    card = scorecards.score(dataset, run, (METRIC,))
    values = np.full(len(dataset.corpus), np.nan)
    values[dataset.corpus.rows_of(card.query_ids)] = card.values[METRIC]
    return values


def _mean_by_pair(ways: Sequence[np.ndarray]) -> np.ndarray:
    """(N,) numbers that sum up to the mean over ways of their means: what each pair adds to it."""
    asked = [~np.isnan(values) for values in ways]
    return np.sum([np.nan_to_num(v) / of.sum() for v, of in zip(ways, asked, strict=True)], axis=0) / len(ways)


def _means(values: Mapping[str, np.ndarray]) -> dict[str, float]:
    return {name: float(np.nanmean(each)) for name, each in values.items()}
