import gzip

import numpy as np
import pyarrow as pa
import pytest

from coderet.corpora import challenge
from coderet.corpora.challenge import Answer, read_annotations, read_predictions, run_of, write_predictions
from coderet.records import (
    NO_HIT,
    Corpus,
    DataError,
    Dataset,
    Qrels,
    Queries,
    Run,
    documents_batch,
    qrels_table,
    queries_table,
)

ANNOTATIONS = (
    "Language,Query,GitHubUrl,Relevance,Notes\n"
    'Go,"sort, then\nprint",https://x/a#L1-L2,3,"a ""note"""\n'
    "Go,parse json,https://x/b#L1-L2,1.5,\n"
)
PREDICTIONS = "language,query,identifier,url\ngo,parse json,Parse,https://x/b#L1-L2\nGo,NA,,https://x/c#L1-L2\n"


def file(tmp_path, text: str | bytes, name: str = "file.csv"):
    path = tmp_path / name
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["annotations.csv", "annotations.csv.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_annotations_are_read_whatever_their_packing_line_ends_and_byte_order_mark(tmp_path, name, end, mark):
    table = read_annotations(file(tmp_path, mark + ANNOTATIONS.replace("\n", end), name))
    assert table.schema == challenge.ANNOTATIONS
    assert table["query"].to_pylist() == [f"sort, then{end}print", "parse json"]
    assert table["relevance"].to_pylist() == [3, 1.5]


def test_predictions_need_three_columns_in_any_order_and_pass_over_others(tmp_path):
    table = read_predictions(file(tmp_path, PREDICTIONS))
    assert table.to_pylist() == [
        {"language": "go", "query": "parse json", "url": "https://x/b#L1-L2"},
        {"language": "Go", "query": "NA", "url": "https://x/c#L1-L2"},  # NA is a text here
    ]
    turned = "url,score,query,language\nu,1,q,go\n"
    assert read_predictions(file(tmp_path, turned)).to_pylist() == [{"language": "go", "query": "q", "url": "u"}]
    assert read_predictions(file(tmp_path, "language,query,url\n")).num_rows == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("language,query\ngo,q\n", "has the columns language, query; wanted language, query, url, each once"),
        ("language,query,url,url\ngo,q,u,v\n", "each once"),
        ("language,query,url\ngo,q\n", "no CSV file that can be read"),
        ("language;query;url\ngo;q;u\n", "wanted language, query, url"),
        ("", "no CSV file that can be read"),
        (b"language,query,url\ngo,\xff,u\n", "UTF-8"),
    ],
)
def test_a_file_that_is_no_predictions_is_refused(tmp_path, text, said):
    with pytest.raises(DataError, match=said):
        read_predictions(file(tmp_path, text))


def test_a_missing_or_broken_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="is missing; give a CSV file with the columns language"):
        read_predictions(tmp_path / "none.csv")
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(gzip.compress(PREDICTIONS.encode())[:-12])
    with pytest.raises(DataError, match="is it whole"):
        read_predictions(broken)


@pytest.mark.parametrize(
    ("relevance", "said"), [("4", "such as 4.0"), ("-1", "such as"), ("", "no number"), ("nan", "nan")]
)
def test_a_relevance_out_of_range_is_refused(tmp_path, relevance, said):
    with pytest.raises(DataError, match=said):
        read_annotations(file(tmp_path, f"Language,Query,GitHubUrl,Relevance\nGo,q,u,{relevance}\n"))


def dataset() -> Dataset:
    ids = ["https://x/c", "https://x/b", 'https://x/a,"']
    corpus = Corpus("go", pa.Table.from_batches([documents_batch(ids, ["C", "B", ""], ["c", "b", "a"])]))
    queries = queries_table(["q1", "q2"], ["Parse JSON", "sort, then\nprint"])
    return Dataset("go", corpus, Queries(queries), Qrels(qrels_table(["q1"], ids[:1])))


def test_a_run_is_written_as_predictions_that_read_back_as_the_same_run(tmp_path):
    judged = dataset()
    rows = np.array([[2, 0], [1, NO_HIT]])
    run = Run.of(judged.corpus, pa.array(["q2", "q1"], pa.large_string()), rows, np.array([[2, 1], [3, 0]], np.float32))
    path = tmp_path / "out" / "predictions.csv"
    write_predictions(path, {"go": Answer(judged, run)})
    assert read_predictions(path).to_pylist() == [
        {"language": "go", "query": "sort, then\nprint", "url": 'https://x/a,"'},
        {"language": "go", "query": "sort, then\nprint", "url": "https://x/c"},
        {"language": "go", "query": "Parse JSON", "url": "https://x/b"},
    ]
    assert path.read_text().startswith("language,query,identifier,url\n")
    back = run_of(read_predictions(path), "Go", judged)
    assert back.query_ids.to_pylist() == ["q1", "q2"]
    assert back.rows.tolist() == [[1, NO_HIT], [2, 0]]
    assert run_of(read_predictions(path), "go", judged, depth=1).rows.tolist() == [[1], [2]]


def test_predictions_of_unknown_urls_repeated_ones_or_other_queries_are_no_run():
    judged = dataset()

    def predictions(*hits: tuple[str, str]) -> pa.Table:
        columns = [["GO"] * len(hits), [query for query, _ in hits], [url for _, url in hits]]
        return pa.table(columns, schema=challenge.PREDICTIONS)

    with pytest.raises(DataError, match="1 hits for go are no documents of go, 'https://y'"):
        run_of(predictions(("parse json", "https://x/b"), ("parse json", "https://y")), "go", judged)
    with pytest.raises(DataError, match="same document twice"):
        run_of(predictions(("parse json", "https://x/b"), ("Parse json", "https://x/b")), "go", judged)
    with pytest.raises(DataError, match="answer none of the 2 queries"):
        run_of(predictions(("other", "https://x/b")), "go", judged)
