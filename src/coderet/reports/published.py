"""Papers' figures for the benchmarks of the grid, as rows of the summary; from the files in data/published.

A benchmark says which column of which page its figures are to be laid beside (`records.Published`). The columns are

- `coderag_bench`: the benchmarks of table 3 (`mbpp`);
- `codesearchnet`: `mrr-<language>` and `challenge-<language>`, `all` for the run over all languages in one pool, and
  `challenge-average` for the plain mean of the six;
- `coir`: `coir-2024/<task>`, the project's page, and `mteb/<task>`, the results repository;
- `repoqa`: `16384`, tokens of context; its figures are of language models, and come by language too.

Percentages become fractions. A figure that the paper does not print (a dash, a blank) gives no row.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from coderet.records import DataError, Published

Row = dict[str, Any]
Figure = tuple[str, str, str, float, str]  # column, system, metric, value as a fraction, where it is printed


def published_rows(folder: Path, wanted: Mapping[str, Published | None]) -> list[Row]:
    """Every published figure for the wanted benchmarks, by benchmark; DataError if a file or a column is missing."""
    pages = {each.page: _page(folder, each.page) for each in wanted.values() if each and each.page != NEEDLES}
    rows = []
    for benchmark, published in wanted.items():
        if published is None or published.page == NEEDLES:
            continue
        figures = [each for each in pages[published.page] if each[0] == published.column]
        if not figures:
            known = ", ".join(dict.fromkeys(each[0] for each in pages[published.page]))
            raise DataError(f"{published.page} has no figures for {published.column!r}; known: {known}")
        rows += [_row(benchmark, figure) for figure in figures]
    return rows


def published_answers(folder: Path, wanted: Mapping[str, Published | None]) -> list[Row]:
    """pass@1 of CodeRAG-Bench's tables 5 and 6 for the wanted benchmarks: generators by context.

    A row's system is the generator, and its context `none`, `oracle` or a retriever's name.
    """
    told: Any = None
    rows = []
    for benchmark, published in wanted.items():
        if published is None or published.page != "coderag_bench":
            continue
        if told is None:
            told = _whole(folder, "coderag_bench")["tables"]
        column = _GENERATION.get(published.column, published.column)
        for system, context, percent, source in [*_table_5(told["t5"], column), *_table_6(told["t6"], column)]:
            if percent is not None:
                row = _row(benchmark, (column, system, "pass@1", percent / 100, source))
                rows.append(row | {"context": context})
    return rows


def published_needles(folder: Path, wanted: Mapping[str, Published | None]) -> list[Row]:
    """RepoQA's leaderboard for the wanted benchmarks: language models at the headline threshold, over all needles and
    by language, which is the row's dataset."""
    rows = []
    for benchmark, published in wanted.items():
        if published is None or published.page != NEEDLES:
            continue
        page = _whole(folder, NEEDLES)
        metric, column = f"match@{page['default_threshold']}", str(page["context_tokens"])
        if published.column != column:
            raise DataError(f"{NEEDLES} has no figures for {published.column!r}; known: {column}")
        for entry in page["leaderboard"]:
            for dataset, percent in {"all": entry["all"], **entry["by_language"]}.items():
                figure = (column, entry["model"], metric, percent / 100, f"RepoQA results {entry['date'][:7]}")
                rows.append(_row(benchmark, figure) | {"dataset": dataset})
    return rows


NEEDLES = "repoqa"
"""The page whose figures are of answers alone."""

_GENERATION = {"livecodebench": "lcb"}
"""Columns of tables 5 and 6 that are called otherwise than in table 3."""


def _table_5(table: Any, column: str) -> Iterator[tuple[str, str, float | None, str]]:
    for system, cells in table["rows"].items():
        for ending, context in (("wo", "none"), ("gold", "oracle")):
            yield system, context, cells.get(f"{column}_{ending}"), "CodeRAG-Bench table 5"


def _table_6(table: Any, column: str) -> Iterator[tuple[str, str, float | None, str]]:
    for system, contexts in table["rows"].items():
        for context, cells in contexts.items():
            told = {"gold": "oracle"}.get(context, context.lower().replace("_", "-"))
            yield system, told, cells.get(column), "CodeRAG-Bench table 6"


def _page(folder: Path, name: str) -> list[Figure]:
    if name not in _READERS:
        raise DataError(f"no published page is called {name!r}; known: {', '.join(_READERS)}")
    return list(_READERS[name](_whole(folder, name)))


def _whole(folder: Path, name: str) -> Any:
    path = folder / f"{name}.yaml"
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} is missing; it lies in git: git checkout -- {path}") from None


def _coderag_bench(page: Any) -> Iterator[Figure]:
    """Table 3: retrievers by benchmark."""
    for system, cells in page["tables"]["t3"]["rows"].items():
        for benchmark, percent in cells.items():
            if percent is not None and benchmark != "avg":
                yield benchmark, system, "ndcg@10", percent / 100, "CodeRAG-Bench table 3"


def _codesearchnet(page: Any) -> Iterator[Figure]:
    """MRR among 999 distractors, in the direction of the 2019 code; NDCG of the Challenge. Encoders of one name are one
    system."""
    languages = page["languages"]
    tables = (
        ("mrr_999_distractors", "mrr", "all", "mrr-1000-paper", "CodeSearchNet MRR table"),
        ("ndcg_within", "challenge", "average", "ndcg-within", "CodeSearchNet NDCG table, within"),
        ("ndcg_all", "challenge", "average", "ndcg-all", "CodeSearchNet NDCG table, all"),
    )
    for table, prefix, last, metric, source in tables:
        for entry in page[table]:
            system = "+".join(dict.fromkeys([entry["text_encoder"], entry["code_encoder"]]))
            for column, score in zip([*languages, last], entry["scores"], strict=True):
                yield f"{prefix}-{column}", system, metric, score, source


def _coir(page: Any) -> Iterator[Figure]:
    """nDCG@10 by task, by the project's own protocol and by mteb's."""
    tables = (
        ("leaderboard_coir", "coir-2024", "CoIR project page, 2025-02"),
        ("leaderboard_mteb", "mteb", "mteb results repository"),
    )
    for table, choices, source in tables:
        for entry in page[table]["rows"]:
            for task, percent in zip(page[table]["columns"], entry["scores"], strict=False):
                if percent is not None:
                    yield f"{choices}/{task}", entry["model"], "ndcg@10", percent / 100, source


_READERS: dict[str, Callable[[Any], Iterator[Figure]]] = {
    "coderag_bench": _coderag_bench,
    "codesearchnet": _codesearchnet,
    "coir": _coir,
}


def _row(benchmark: str, figure: Figure) -> Row:
    _, system, metric, value, source = figure
    return {
        "system": system.rpartition("/")[2].lower().replace("_", "-"),
        "benchmark": benchmark,
        "dataset": "all",
        "metric": metric,
        "value": round(value, 6),
        "low": None,
        "high": None,
        "queries": None,
        "mean": None,
        "source": f"published:{source}",
        "unit": "fraction",
    }
