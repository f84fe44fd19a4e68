import pyarrow as pa
import pytest

from coderet.records import DataError
from coderet.retrievers import java, lucene_index
from coderet.retrievers.lucene import Lucene
from coderet.retrievers.lucene_index import Field, LuceneSearcher


def test_rows_keep_their_order_through_many_segments(corpus_of, tmp_path, monkeypatch):
    monkeypatch.setattr(lucene_index, "_BUFFER_MEGABYTES", 0.1)
    count = 600
    corpus = corpus_of({f"d{i:05}": f"only{i} " + " ".join(f"w{i * j % 997}" for j in range(40)) for i in range(count)})
    Lucene().index(corpus, tmp_path)
    assert not list(tmp_path.glob("_0.*"))  # the first segment was merged with others
    queries = pa.chunked_array([pa.array([f"only{count - 1 - row}" for row in range(count)], pa.large_string())])
    rows, _ = Lucene().open(corpus, tmp_path).search(queries, 1)
    assert rows[:, 0].tolist() == list(range(count))


def test_an_index_made_twice_differs_only_in_the_segments_info(corpus_of, tmp_path):
    corpus = corpus_of({f"d{i}": f"a b{i}" for i in range(50)})
    facts = [Lucene().index(corpus, make(tmp_path / name)) for name in ("one", "two")]
    assert facts[0] == facts[1] == {"tokens": 100, "documents_with_tokens": 50}
    sizes = [{file.name: file.stat().st_size for file in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert sizes[0] == sizes[1]


def make(folder):
    folder.mkdir()
    return folder


def test_an_index_cut_short_is_an_error_in_few_words(corpus_of, tmp_path):
    corpus = corpus_of({f"d{i}": f"a b{i}" for i in range(50)})
    Lucene().index(corpus, tmp_path)
    file = next(tmp_path.glob("*.tim"))
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"\.tim: found \d+ bytes, wanted \d+ bytes; run: dvc repro index"):
        Lucene().open(corpus, tmp_path)


def test_an_index_whose_bytes_changed_is_an_error_in_few_words(corpus_of, tmp_path):
    corpus = corpus_of({f"d{i}": f"a b{i}" for i in range(50)})
    Lucene().index(corpus, tmp_path)
    file = next(tmp_path.glob("*.tim"))
    file.write_bytes(bytes(len(file.read_bytes())))
    with pytest.raises(java.JavaError, match=r"opening .* with Lucene: .*Corrupt") as caught:
        Lucene().open(corpus, tmp_path)
    assert len(str(caught.value)) < 600


def test_an_index_that_lost_a_document_is_refused(corpus_of, tmp_path):
    corpus = corpus_of({"x": "a", "y": "b"})
    Lucene().index(corpus, tmp_path)
    with pytest.raises(DataError, match="has 2 documents in 1 segments, wanted 3 in one"):
        LuceneSearcher(tmp_path, 3, [Field("text", ("text",), "whitespace")], k1=1.2, b=0.75)


def test_many_queries_at_once_and_one_by_one_find_the_same(corpus_of, tmp_path):
    corpus = corpus_of({f"d{i}": f"a b{i % 7} c{i % 3}" for i in range(200)})
    Lucene().index(corpus, tmp_path)
    searcher = Lucene().open(corpus, tmp_path)
    queries = pa.chunked_array([pa.array([f"b{i} c{i % 5} a" for i in range(9)] * 150, pa.large_string())])
    rows, scores = searcher.search(queries, 20)
    for place in (0, 700, 1349):
        row, score = searcher.search(queries.slice(place, 1), 20)
        assert row[0].tolist() == rows[place].tolist() and score[0].tolist() == scores[place].tolist()
