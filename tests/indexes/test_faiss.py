import numpy as np
import pyarrow as pa
import pytest

from coderet.indexes.faiss import Flat
from coderet.records import NO_HIT, DataError


def ids_of(count: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([f"d{row}" for row in range(count)], pa.large_string())])


def build(folder, vectors, similarity="inner-product", chunk=1000) -> Flat:
    vectors = np.asarray(vectors, np.float32).reshape(len(vectors), -1)
    ids, starts = ids_of(len(vectors)), range(0, len(vectors), chunk)
    chunks = ((ids.slice(start, chunk), vectors[start : start + chunk]) for start in starts)
    return Flat.build(chunks, len(vectors), vectors.shape[1], folder, similarity=similarity)


def in_order(scores: np.ndarray, k: int) -> np.ndarray:
    """The one order, by sorting everything."""
    return np.lexsort((np.broadcast_to(np.arange(scores.shape[1]), scores.shape), -scores), axis=1)[:, :k]


def test_the_nearest_vector_is_first_and_its_score_is_the_inner_product(tmp_path):
    rows, scores = build(tmp_path, [[1, 0], [0, 3], [2, 2]]).search(np.array([[1.0, 2.0]]), 3, 8)
    assert rows.tolist() == [[1, 2, 0]]
    assert scores.tolist() == [[6.0, 6.0, 1.0]]


def test_cosine_sees_directions_only(tmp_path):
    rows, scores = build(tmp_path, [[10, 0], [3, 4]], "cosine").search(np.array([[0.0, 7.0]]), 2, 8)
    assert rows.tolist() == [[1, 0]]
    assert scores[0] == pytest.approx([0.8, 0.0])


# D1


@pytest.mark.parametrize("count", [1, 5, 19, 20, 64])
@pytest.mark.parametrize("k", [1, 2, 50, 99, 100, 101, 150, 400])
def test_equal_scores_come_lowest_row_first_at_the_cutoff_too(tmp_path, k, count):
    random = np.random.default_rng(k)
    documents = random.integers(0, 2, (400, 4)).astype(np.float32)  # scores are small whole numbers, nearly all tied
    queries = random.integers(0, 3, (count, 4)).astype(np.float32)
    rows, scores = build(tmp_path, documents).search(queries, k, 32)
    truth = queries @ documents.T
    assert rows.tolist() == in_order(truth, k).tolist()
    assert scores.tolist() == np.take_along_axis(truth, rows, 1).tolist()


@pytest.mark.parametrize("dim", [3, 37, 384])
def test_equal_vectors_have_equal_scores_wherever_they_lie(tmp_path, dim):
    random = np.random.default_rng(dim)
    kinds = random.permutation(np.arange(1500) % 100)  # enough for FAISS to add up in several ways
    documents = random.standard_normal((100, dim))[kinds]
    rows, scores = build(tmp_path, documents).search(random.standard_normal((64, dim)), 1500, 64)
    for found, score in zip(rows, scores, strict=True):
        by_row = np.empty(1500, np.float32)
        by_row[found] = score
        assert all(len(set(by_row[kinds == kind].tolist())) == 1 for kind in range(100))


def test_a_document_among_equals_is_kept_by_row_though_others_reach_past_the_candidates(tmp_path):
    documents = np.ones((500, 8)) / 3
    rows, _ = build(tmp_path, documents, "cosine").search(np.ones((2, 8)), 7, 2)
    assert rows.tolist() == [list(range(7))] * 2


def test_neither_the_batch_nor_the_chunks_nor_the_company_of_other_queries_move_a_score(tmp_path):
    random = np.random.default_rng(0)
    documents, queries = random.standard_normal((1500, 48)), random.standard_normal((70, 48))
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    index = build(tmp_path / "whole", documents, "cosine")
    rows, scores = index.search(queries, 20, 70)
    for batch in (1, 7, 32):
        again = index.search(queries, 20, batch)
        assert np.array_equal(again[0], rows) and np.array_equal(again[1], scores)
    alone = index.search(queries[5:6], 20, 70)
    assert np.array_equal(alone[0][0], rows[5]) and np.array_equal(alone[1][0], scores[5])
    cut = build(tmp_path / "cut", documents, "cosine", chunk=11).search(queries, 20, 70)
    assert np.array_equal(cut[0], rows) and np.array_equal(cut[1], scores)


@pytest.mark.parametrize("similarity", ["cosine", "inner-product"])
def test_it_agrees_with_comparing_everything_in_double_precision(tmp_path, similarity):
    random = np.random.default_rng(1)
    documents, queries = random.standard_normal((400, 16)), random.standard_normal((50, 16))
    rows, scores = build(tmp_path, documents, similarity).search(queries, 10, 16)
    truth = queries.astype(np.float32).astype(float) @ documents.astype(np.float32).astype(float).T
    if similarity == "cosine":
        truth /= np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(documents, axis=1)
    assert rows.tolist() == in_order(truth, 10).tolist()
    assert np.abs(scores - np.take_along_axis(truth, rows, 1)).max() < 1e-5


# D7


def test_three_documents_give_three_hits_of_five(tmp_path):
    rows, scores = build(tmp_path, [[1, 0], [0, 1], [1, 1]], "cosine").search(np.array([[1.0, 0.0]]), 5, 8)
    assert rows.tolist() == [[0, 2, 1, NO_HIT, NO_HIT]]
    assert scores[0, 3:].tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_vector_that_holds_no_numbers_stops_the_build_and_is_named(tmp_path, broken):
    vectors = np.ones((5, 2))
    vectors[3, 1] = broken
    with pytest.raises(DataError, match="hold NaN or infinity: d3; nothing is indexed"):
        build(tmp_path, vectors, chunk=2)


def test_a_query_that_holds_no_numbers_is_an_error(tmp_path):
    with pytest.raises(DataError, match="1 query vectors hold NaN"):
        build(tmp_path, np.ones((2, 2))).search(np.array([[np.nan, 1], [1, 1]]), 1, 8)


def test_a_zero_row_is_counted_and_scores_zero_under_cosine(tmp_path):
    index = build(tmp_path, [[1, 0], [0, 0], [-1, 0]], "cosine")
    assert index.zero_vectors == 1
    rows, scores = index.search(np.array([[1.0, 0.0], [0.0, 0.0]]), 3, 8)
    assert rows.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert scores.tolist() == [[1.0, 0.0, -1.0], [0.0, 0.0, 0.0]]


def test_an_empty_corpus_gives_no_hits_and_no_queries_give_an_empty_run(tmp_path):
    (tmp_path / "empty").mkdir(), (tmp_path / "two").mkdir()
    Flat.build(iter(()), 0, 2, tmp_path / "empty")
    rows, scores = Flat.load(tmp_path / "empty").search(np.ones((2, 2)), 3, 8)
    assert rows.tolist() == [[NO_HIT] * 3] * 2 and np.isneginf(scores).all()
    rows, scores = build(tmp_path / "two", np.ones((2, 2))).search(np.empty((0, 2)), 3, 8)
    assert rows.shape == scores.shape == (0, 3)


def test_products_too_large_for_float32_are_an_error_not_an_infinite_score(tmp_path):
    with pytest.raises(DataError, match="do not fit into float32"):
        build(tmp_path, np.full((2, 2), 3e38)).search(np.full((1, 2), 3e38), 1, 8)


# On disk


def test_a_saved_index_is_the_same_bytes_and_answers_the_same(tmp_path):
    vectors = np.random.default_rng(2).standard_normal((40, 6))
    for name, chunk in (("a", 7), ("b", 40)):
        (tmp_path / name).mkdir()
        build(tmp_path / name, vectors, "cosine", chunk)
    for file in ("vectors.npy", "flat.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    loaded = Flat.load(tmp_path / "a")
    assert isinstance(loaded.vectors, np.memmap)
    queries = np.random.default_rng(3).standard_normal((4, 6))
    fresh = build(tmp_path / "b", vectors, "cosine").search(queries, 5, 4)
    assert all(np.array_equal(*pair) for pair in zip(loaded.search(queries, 5, 4), fresh, strict=True))


def test_an_index_cut_short_is_refused(tmp_path):
    build(tmp_path, np.ones((50, 4)))
    content = (tmp_path / "vectors.npy").read_bytes()
    (tmp_path / "vectors.npy").write_bytes(content[:-8])
    with pytest.raises(DataError, match="does not hold a whole flat index"):
        Flat.load(tmp_path)


def test_too_few_too_many_or_too_wide_vectors_and_an_unknown_similarity_are_refused(tmp_path):
    chunk = (ids_of(2), np.ones((2, 3), np.float32))
    with pytest.raises(DataError, match="2 vectors for 3 documents"):
        Flat.build([chunk], 3, 3, tmp_path)
    with pytest.raises(DataError, match="wanted 1 in all"):
        Flat.build([chunk], 1, 3, tmp_path)
    with pytest.raises(DataError, match="of 4 dimensions"):
        Flat.build([chunk], 2, 4, tmp_path)
    with pytest.raises(DataError, match="wanted one of cosine, inner-product"):
        Flat.build([chunk], 2, 3, tmp_path, similarity="cos")
    with pytest.raises(DataError, match="have 5 dimensions, the index has 3"):
        Flat.build([chunk], 2, 3, tmp_path).search(np.ones((1, 5)), 1, 1)
