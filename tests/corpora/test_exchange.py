import gzip

import numpy as np
import pyarrow as pa
import pytest

from coderet.benchmarks import beir
from coderet.corpora import exchange, store
from coderet.records import Corpus, DataError, Run, documents_batch

CORPUS = '{"_id": 7, "title": "binary search", "text": "def f(a, x): ..."}\n\n{"_id": "b", "text": "λ\\r\\n"}\n'
QUERIES = '{"_id": "1", "text": "one"}\n{"_id": "2", "text": "two"}\n{"_id": "7", "text": "seven"}\n'
QRELS = "query-id\tcorpus-id\tscore\n1\t7\t1\n7\tb\t2\r\n"


def folder(tmp_path, corpus=CORPUS, queries=QUERIES, qrels=QRELS, zipped=False):
    place = tmp_path / "raw" / "mine"
    (place / "qrels").mkdir(parents=True)
    for name, text in (("corpus.jsonl", corpus), ("queries.jsonl", queries), ("qrels/test.tsv", qrels)):
        if zipped:
            (place / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (place / name).write_bytes(text.encode())
    return tmp_path / "raw"


def collected(tmp_path, **settings):
    store.write_benchmark(tmp_path / "b", beir.collect(tmp_path / "raw", **settings))
    return store.read_dataset(tmp_path / "b", settings.get("split", "test"))


@pytest.mark.parametrize("zipped", [False, True])
def test_a_beir_folder_is_a_dataset_plain_or_gzipped(tmp_path, zipped):
    folder(tmp_path, zipped=zipped)
    dataset = collected(tmp_path)
    assert dataset.corpus.table.to_pylist() == [
        {"id": "b", "title": "", "text": "λ\r\n"},
        {"id": "7", "title": "binary search", "text": "def f(a, x): ..."},
    ]
    assert dataset.queries.ids.to_pylist() == ["1", "7"]  # query 2 is not judged
    assert dataset.qrels.table["grade"].to_pylist() == [1.0, 2.0]


def test_a_document_whose_id_happens_to_equal_the_query_s_is_dropped_only_when_asked(tmp_path):
    folder(tmp_path)
    assert collected(tmp_path).queries.largest_exclusion == 0
    assert collected(tmp_path, exclude_self=True).queries.table["excluded"].to_pylist() == [["1"], ["7"]]


def test_a_byte_order_mark_and_trec_s_four_columns_are_read(tmp_path):
    folder(tmp_path, corpus="\ufeff" + CORPUS, qrels="1\t0\t7\t1\n")
    assert collected(tmp_path).qrels.table.num_rows == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"corpus": '{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n'}, "1 document ids stand twice"),
        ({"corpus": '{"_id": 7, "text": "x"}\n{"_id": "7", "text": "y"}\n'}, "'7' among them"),
        ({"corpus": '{"_id": "", "text": "x"}\n'}, "a document has an empty id"),
        ({"corpus": '{"text": "x"}\n'}, r"corpus.jsonl:1 has no _id"),
        ({"corpus": '{"_id": "a", "text": null}\n'}, r"corpus.jsonl:1: text is None; wanted text"),
        ({"corpus": '{"_id": "a", "te'}, r"corpus.jsonl:1 is not JSON"),
        ({"corpus": "[1]\n"}, "wanted a JSON object"),
        ({"qrels": "1\tnowhere\t1\n"}, "name documents that there are not, 'nowhere' among them"),
        ({"qrels": "9\t7\t1\n"}, "name queries that there are not, '9' among them"),
        ({"qrels": "1 7 1\n"}, r"test.tsv:1 is '1 7 1'; wanted query, document and grade between tabs"),
        ({"qrels": "1\t7\t1\n1\t7\tgood\n"}, r"test.tsv:2"),
        ({"qrels": "1\t7\tnan\n"}, "grade that is not a number"),
    ],
)
def test_a_beir_folder_that_would_give_wrong_numbers_is_refused(tmp_path, change, said):
    folder(tmp_path, **change)
    with pytest.raises(DataError, match=said):
        collected(tmp_path)


def test_a_missing_split_is_named_with_what_there_is(tmp_path):
    folder(tmp_path)
    with pytest.raises(DataError, match=r"lacks dev.tsv \(plain or .gz\); it has \['test.tsv'\]"):
        collected(tmp_path, split="dev")


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "raw").mkdir()
    with pytest.raises(DataError, match=r"no corpus.jsonl under .* wanted one folder in BEIR form"):
        collected(tmp_path)


def test_a_gzip_file_cut_short_is_refused(tmp_path):
    folder(tmp_path, zipped=True)
    path = tmp_path / "raw" / "mine" / "corpus.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DataError, match="is it whole and UTF-8"):
        collected(tmp_path)


def test_a_gzip_file_with_wrong_bytes_in_its_middle_is_refused(tmp_path):
    folder(tmp_path, zipped=True)
    for name in ("corpus.jsonl.gz", "qrels/test.tsv.gz"):
        path = tmp_path / "raw" / "mine" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:10] + b"\xff" * 20 + whole[30:])
        with pytest.raises(DataError, match="is it whole and UTF-8"):
            collected(tmp_path)
        path.write_bytes(whole)


def test_a_dataset_exported_to_beir_reads_back_the_same(tmp_path):
    folder(tmp_path)
    first = collected(tmp_path)
    exchange.write_beir(first, tmp_path / "again")
    store.write_benchmark(tmp_path / "c", beir.collect(tmp_path / "again"))
    again = store.read_dataset(tmp_path / "c", "test")
    assert again.corpus.digest == first.corpus.digest
    assert again.queries.table == first.queries.table
    assert again.qrels.table == first.qrels.table


def test_a_run_goes_through_trec_s_form_unchanged(tmp_path):
    corpus = Corpus("c", pa.Table.from_batches([documents_batch(["c", "b", "a"], [""] * 3, ["z", "y", "x"])]))
    rows, scores = np.array([[2, 0, 1], [1, -1, -1]]), np.array([[1 / 3, 0.1, 0.1], [2.0, 0, 0]], np.float32)
    run = Run.of(corpus, pa.array(["q1", "q2"]), rows, scores)
    exchange.write_trec_run(run, tmp_path / "run.trec", "tag")
    again = exchange.read_trec_run(tmp_path / "run.trec", corpus)
    assert (again.rows == run.rows).all() and (again.scores == run.scores).all()
    assert (tmp_path / "run.trec").read_text().splitlines()[1].split()[2] == "c"


def test_a_trec_line_that_names_an_unknown_document_is_refused(tmp_path):
    corpus = Corpus("c", pa.Table.from_batches([documents_batch(["a"], [""], ["x"])]))
    (tmp_path / "run.trec").write_text("q Q0 nowhere 1 0.5 tag\n")
    with pytest.raises(DataError, match="'nowhere', which is not in corpus c"):
        exchange.read_trec_run(tmp_path / "run.trec", corpus)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"corpus": '{"_id": "7", "text": "\\ud800"}\n'}, "text holds half of a surrogate pair"),
        ({"corpus": '{"_id": "\\ud800", "text": "x"}\n'}, "_id holds half of a surrogate pair"),
        ({"corpus": '{"_id": NaN, "text": "x"}\n'}, "corpus.jsonl:1 has no _id"),
        ({"corpus": "[" * 100_000}, "corpus.jsonl:1 is not JSON that can be read"),
        ({"corpus": '{"_id": ' + "9" * 5000 + "}"}, "corpus.jsonl:1 is not JSON that can be read"),
        ({"qrels": "1\t7\t1\n7\tb\t1_0\n"}, "wanted query, document and grade"),
        ({"qrels": "1\t7\t0\n"}, "none of 1 judgements says that a document is relevant"),
        ({"qrels": "1\t7\t1e20\n"}, "has grade 1e.20; wanted at most 1000"),
    ],
)
def test_what_could_not_be_stored_or_scored_is_refused_when_collected(tmp_path, change, said):
    folder(tmp_path, **change)
    with pytest.raises(DataError, match=said):
        collected(tmp_path)


def test_judgements_that_are_not_utf_8_are_refused(tmp_path):
    folder(tmp_path)
    (tmp_path / "raw/mine/qrels/test.tsv").write_bytes("1\t7\t\u00e9".encode("latin-1"))
    with pytest.raises(DataError, match=r"test.tsv cannot be read .* is it whole and UTF-8"):
        collected(tmp_path)
