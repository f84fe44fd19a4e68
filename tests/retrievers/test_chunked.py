"""Any retriever over chunks: hits are documents, by best chunk, and as many as there are."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from coderet import retrievers
from coderet.corpora.chunking import Lines
from coderet.encoders.base import DualEncoder
from coderet.encoders.tokenizer import WordTokenizer
from coderet.records import DataError
from coderet.registry import UnknownName
from coderet.retrievers.bm25s import Bm25s
from coderet.retrievers.chunked import Chunked, ChunkedSearcher
from coderet.retrievers.dense import Dense
from coderet.retrievers.lucene import Lucene

TEXTS = {
    "a": "sort a list\nnothing\nbinary search\n",
    "b": "binary tree\n" + "noise words here\n" * 40,
    "c": "quick sort of a list\nsort sort\n",
    "d": "",
}


def dense(kind="flat"):
    words = WordTokenizer(sorted({word for text in TEXTS.values() for word in text.split()}))
    torch.manual_seed(1)
    encoder = DualEncoder.build(words, {"kind": "nbow", "dim": 16, "max_document_tokens": 3}, "x").eval()
    return Dense(encoder, kind=kind)


MAKERS = {"lucene": Lucene, "bm25s": Bm25s, "dense": dense}


@pytest.fixture(params=MAKERS)
def inner(request):
    return MAKERS[request.param]()


def test_a_document_scores_what_its_best_line_scores_as_a_document(inner, corpus_of, answer):
    chunks = {
        f"{name}#L{at}-L{at}": line for name, text in TEXTS.items() for at, line in enumerate(text.splitlines(1), 1)
    }
    chunks["d#L1-L1"] = ""
    queries = ["sort a list", "binary", "noise", "unseen", ""]
    expected = []
    for hits in answer(inner, corpus_of(chunks), queries, k=len(chunks)):
        best = {}
        for name, score in hits:
            best.setdefault(name[0], score)
        expected.append(sorted(best.items(), key=lambda hit: (hit[1], hit[0]), reverse=True))
    found = answer(Chunked(inner, Lines(size=1)), corpus_of(TEXTS), queries, k=4)
    assert found == expected
    assert found[1][0][0] in "ab" and all(
        hits == sorted(hits, key=lambda h: (h[1], h[0]), reverse=True) for hits in found
    )


def test_fewer_hits_are_the_first_of_more(inner, corpus_of, answer):
    retriever, corpus = Chunked(inner, Lines(size=2, step=1)), corpus_of(TEXTS)
    queries = ["sort a list", "binary words here", "noise"]
    deep = answer(retriever, corpus, queries, k=4)
    for k in (1, 2, 3):
        assert answer(retriever, corpus, queries, k=k) == [hits[:k] for hits in deep]


def test_facts_and_truncation_are_told_of_chunks(corpus_of, tmp_path):
    facts = Chunked(Lucene(), Lines(size=1)).index(corpus_of(TEXTS), tmp_path / "a")
    assert facts["chunks"] == 47
    chunked = Chunked(dense(), Lines(size=1))
    assert chunked.index(corpus_of(TEXTS), tmp_path / "b")["encoded"] == 4
    assert chunked.truncation(corpus_of(TEXTS)) == {"chunks_cut": 1, "tokens_lost": 2}


class Table:
    """A searcher over chunks with these scores, lowest row first among equals; notes how deep it was asked."""

    def __init__(self, scores):
        self.scores, self.asked = np.array(scores, np.float32), []

    def search(self, queries, k):
        self.asked.append((len(queries), k))
        rows = np.array([np.argsort(-self.scores[int(each.as_py())], kind="stable")[:k] for each in queries])
        return rows.reshape(len(queries), k), np.array(
            [self.scores[int(each.as_py())][r] for each, r in zip(queries, rows, strict=True)]
        )


def queries(count):
    return pa.chunked_array([pa.array([str(at) for at in range(count)], pa.large_string())])


def test_the_search_goes_deeper_until_so_many_documents_are_found_and_only_for_those_that_lack_some():
    owners = np.array([0] * 97 + [1, 2, 3])
    table = Table([np.arange(100, 0, -1), np.arange(100)])
    rows, scores = ChunkedSearcher(table, owners, 4).search(queries(2), 2)
    assert rows.tolist() == [[0, 1], [3, 2]]
    assert scores.tolist() == [[100, 3], [99, 98]]
    assert table.asked[0] == (2, 50) and table.asked[1] == (1, 100)


def test_a_document_that_ties_with_the_last_one_is_looked_for_below():
    owners = np.array([2] * 4 + [1] * 4 + [0] * 4)
    table = Table([np.ones(12)])
    rows, _ = ChunkedSearcher(table, owners, 3).search(queries(1), 1)
    assert rows.tolist() == [[0]]


def test_more_than_there_is_and_nothing_at_all_are_answered(corpus_of, answer):
    assert [len(hits) for hits in answer(Chunked(dense(), Lines(size=1)), corpus_of(TEXTS), ["sort"], k=9)] == [4]
    assert answer(Chunked(Lucene(), Lines(size=1)), corpus_of({}), ["sort"]) == [[]]
    assert answer(Chunked(Lucene(), Lines(size=1)), corpus_of(TEXTS), []) == []


def test_an_approximate_index_of_chunks_can_be_searched_exactly(corpus_of, tmp_path):
    texts = {f"d{at}": "sort a list\nbinary tree\n" * (at + 1) for at in range(30)}
    flat, some = (Chunked(dense(kind), Lines(size=1)) for kind in ("flat", "hnsw"))
    corpus, asked = corpus_of(texts), pa.chunked_array([pa.array(["sort a list"], pa.large_string())])
    for retriever, name in ((flat, "flat"), (some, "some")):
        retriever.index(corpus, tmp_path / name)
    expected = flat.open(corpus, tmp_path / "flat").search(asked, 5)
    searcher = some.open(corpus, tmp_path / "some")
    assert searcher.approximate and not flat.open(corpus, tmp_path / "flat").approximate
    with searcher.exactly() as exact:
        assert np.array_equal(exact.search(asked, 5)[0], expected[0])
    assert some.description["index"]["chunking"] == {"kind": "lines", "size": 1, "step": 1}


# --- its place in params.yaml


@pytest.fixture
def folder(tmp_path):
    retrievers.save(retrievers.create("lucene"), "lucene", tmp_path / "bm25")
    return tmp_path / "bm25"


SPEC = {"kind": "lucene", "index": {"chunking": {"kind": "lines", "size": 3}, "analyzer": "code-words"}, "k1": 0.9}


def test_a_chunking_under_index_makes_any_retriever_one_over_chunks(folder):
    loaded = retrievers.load(folder, SPEC)
    assert isinstance(loaded, Chunked) and loaded.of == Lucene(analyzer="code-words", k1=0.9)
    assert loaded.chunker == Lines(size=3)
    assert SPEC["index"]["chunking"] == {"kind": "lines", "size": 3}, "the spec is left as it was"


def test_a_setting_of_the_chunking_that_there_is_not_is_refused_with_its_place(folder):
    wrong = {**SPEC, "index": {"chunking": {"kind": "lines", "sise": 3}}}
    with pytest.raises(UnknownName, match=r"^x.index.chunking.sise is not a setting; .* Did you mean size\?"):
        retrievers.load(folder, wrong, "x")
    with pytest.raises(UnknownName, match=r"^x.index.chunkng is not a setting; .* Did you mean chunking\?"):
        retrievers.load(folder, {**SPEC, "index": {"chunkng": {}}}, "x")
    with pytest.raises(UnknownName, match=r"^x.chunking changes the index: it belongs to x.index.chunking"):
        retrievers.load(folder, {"kind": "lucene", "chunking": {}}, "x")


def test_an_index_of_other_chunks_or_with_a_broken_part_is_refused(corpus_of, tmp_path):
    place = tmp_path / "mine" / "bm25" / "pool"
    corpus = corpus_of(TEXTS)
    Chunked(Bm25s(), Lines(size=1)).index(corpus, place)
    with pytest.raises(DataError, match=r"was made with chunking .*; run: dvc repro index@mine-bm25$"):
        Chunked(Bm25s(), Lines(size=2)).open(corpus, place)
    with pytest.raises(DataError, match="was made with chunking"):
        Bm25s().open(corpus, place)
    (place / "index" / "index.json").rename(place / "kept")
    with pytest.raises(DataError, match=r"kept: found .*; run: dvc repro index@mine-bm25$"):
        Chunked(Bm25s(), Lines(size=1)).open(corpus, place)


def test_an_index_made_twice_is_the_same_bytes(corpus_of, tmp_path):
    for name in ("first", "second"):
        Chunked(Bm25s(), Lines(size=1)).index(corpus_of(TEXTS), tmp_path / name)
    first, second = (
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file()
        }
        for name in ("first", "second")
    )
    assert first == second
