"""The files of the CodeSearchNet Challenge: annotations and predictions as CSV.

Annotations: a row says how relevant somebody found a function, 0 to 3; one function may have several. Predictions:
one row a hit, in the order of the ranking, with at least language, query and url. Files may be gzipped, begin with a
byte-order mark and end their lines either way; further columns are passed over. Nothing is trimmed or lower-cased here.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from coderet.corpora import store
from coderet.records import NO_HIT, DataError, Dataset, Run

ANNOTATIONS = pa.schema(
    [
        ("language", pa.large_string()),
        ("query", pa.large_string()),
        ("url", pa.large_string()),
        ("relevance", pa.float64()),
    ]
)
PREDICTIONS = pa.schema([("language", pa.large_string()), ("query", pa.large_string()), ("url", pa.large_string())])

MOST_RELEVANT = 3.0


class Answer(NamedTuple):
    """A dataset whose document ids are URLs and whose titles are function names, and a run on it."""

    dataset: Dataset
    run: Run


def read_annotations(path: Path) -> pa.Table:
    """A row an annotation, with the columns of ANNOTATIONS; DataError for a relevance that is not from 0 to 3."""
    table = _read(path, ("Language", "Query", "GitHubUrl", "Relevance"))
    try:
        relevance = pc.cast(table["Relevance"], pa.float64())
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: a Relevance is no number ({error}); wanted 0 to 3") from None
    numbers = relevance.to_numpy()
    wrong = ~((numbers >= 0) & (numbers <= MOST_RELEVANT))
    if wrong.any():
        raise DataError(
            f"{path}: {wrong.sum()} annotations have a Relevance such as {numbers[wrong][0]}; wanted 0 to 3"
        )
    return pa.table([table["Language"], table["Query"], table["GitHubUrl"], relevance], schema=ANNOTATIONS)


def read_predictions(path: Path) -> pa.Table:
    """A row a hit, best first, with the columns of PREDICTIONS."""
    return pa.table(_read(path, tuple(PREDICTIONS.names)).columns, schema=PREDICTIONS)


def write_predictions(path: Path, answers: Mapping[str, Answer]) -> None:
    """The runs of some languages in the form that the Challenge takes: language, query, identifier, url."""
    with store.new_file(path) as draft, draft.open("wb") as file:
        file.write(b"language,query,identifier,url\n")
        for language, (dataset, run) in answers.items():
            places = pc.index_in(run.query_ids, value_set=dataset.queries.ids.combine_chunks())
            if places.null_count:
                raise DataError(f"{language}: the run answers {places.null_count} queries that its dataset lacks")
            lines, columns = np.nonzero(run.rows != NO_HIT)
            hits = dataset.corpus.table.select(["title", "id"]).take(pa.array(run.rows[lines, columns]))
            table = pa.table(
                {
                    "language": pa.array([language] * len(lines), pa.large_string()),
                    "query": dataset.queries.texts.take(places.take(pa.array(lines))),
                    "identifier": hits["title"],
                    "url": hits["id"],
                }
            )
            pa.csv.write_csv(table, file, pa.csv.WriteOptions(include_header=False))


def run_of(predictions: pa.Table, language: str, dataset: Dataset, depth: int = 300) -> Run:
    """The first depth hits of one language's predictions as a run on a dataset whose document ids are URLs.

    Scores are 1 / rank. A query is found by its text, in any case. DataError if a URL is no document there, and for a
    URL that a query has twice: a run cannot hold what the file's own score would count (`metrics/challenge.py`).
    """
    own = predictions.filter(pc.equal(_lowered(predictions["language"]), language.lower()))
    asked = pc.index_in(_lowered(own["query"]), value_set=_lowered(dataset.queries.texts).combine_chunks())
    known = pc.is_valid(asked)
    own, queries = own.filter(known), asked.filter(known).to_numpy().astype(np.int64)
    if not len(own):
        raise DataError(
            f"the predictions for {language} answer none of the {len(dataset.queries)} queries; look at both"
        )
    order = np.argsort(queries, kind="stable")
    queries = queries[order]
    lines, starts, sizes = np.unique(queries, return_index=True, return_counts=True)
    ranks = np.arange(len(queries)) - np.repeat(starts, sizes)
    kept = ranks < depth
    urls = own["url"].take(pa.array(order[kept]))
    found = dataset.corpus.rows_of(urls)
    if (found == NO_HIT).any():
        missing = urls[int(np.argmax(found == NO_HIT))].as_py()
        raise DataError(
            f"{(found == NO_HIT).sum()} hits for {language} are no documents of {dataset.corpus.name}, {missing!r} "
            "among them; score the predictions against the annotations themselves"
        )
    shape = len(lines), int(ranks[kept].max()) + 1
    rows, scores = np.full(shape, NO_HIT), np.full(shape, -np.inf, np.float32)
    places = np.repeat(np.arange(len(lines)), sizes)[kept], ranks[kept]
    rows[places], scores[places] = found, 1 / (ranks[kept] + 1)
    return Run.of(dataset.corpus, dataset.queries.ids.take(pa.array(lines)), rows, scores)


def _lowered(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """In lower case as Python has it, which the Challenge's script was written in."""
    distinct = texts.unique()
    lowered = pa.array([each.lower() for each in distinct.to_pylist()], pa.large_string())
    return pa.chunked_array([lowered.take(pc.index_in(texts, value_set=distinct).combine_chunks())])


def _read(path: Path, names: Iterable[str]) -> pa.Table:
    """The named columns, all as text."""
    wanted = {name: pa.large_string() for name in names}
    if not path.is_file():
        raise DataError(f"{path} is missing; give a CSV file with the columns {', '.join(wanted)}")
    try:
        table = pa.csv.read_csv(
            path,
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(column_types=wanted, strings_can_be_null=False),
        )
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        raise DataError(f"{path} is no CSV file that can be read ({error}); is it whole and UTF-8?") from None
    for name in wanted:
        if table.column_names.count(name) != 1:
            raise DataError(
                f"{path} has the columns {', '.join(table.column_names)}; wanted {', '.join(wanted)}, each once"
            )
    return table.select(list(wanted))
