import numpy as np
import pytest
from imagined_vectors import build, clustered, ids_of

from coderet.indexes import learning
from coderet.indexes.faiss import Flat


@pytest.fixture
def flat(tmp_path):
    return Flat.build([(ids_of(300), clustered(300))], 300, 16, tmp_path, similarity="inner-product")


def test_a_sample_is_of_the_vectors_in_their_order_and_the_same_each_time(flat):
    sample = learning.sample(flat, 50)
    places = [int(np.flatnonzero((flat.vectors == each).all(axis=1))[0]) for each in sample]
    assert len(set(places)) == 50 and places == sorted(places)
    assert np.array_equal(learning.sample(flat, 50), sample)


def test_a_sample_of_more_than_there_are_is_all(flat):
    assert np.array_equal(learning.sample(flat, 1000), flat.vectors)


def test_lists_are_one_for_39_vectors_at_most_and_at_least_one():
    assert [learning.lists(256, vectors) for vectors in (1, 77, 78, 9_983, 9_984, 10**6)] == [1, 1, 2, 255, 256, 256]


def test_bits_leave_39_vectors_for_each_value():
    assert [learning.bits(8, vectors) for vectors in (1, 38, 39, 78, 624, 9_983, 9_984)] == [0, 0, 0, 1, 4, 7, 8]
    assert learning.bits(5, 10**6) == 5


def test_extremes_are_those_of_each_dimension(flat):
    assert np.array_equal(learning.extremes(flat), [flat.vectors.min(axis=0), flat.vectors.max(axis=0)])


def test_centres_of_clusters_that_lie_apart_are_their_means():
    vectors = np.array([[0, 0], [0, 2], [10, 0], [10, 2]], np.float32)
    index = learning.centres(vectors, 2, "inner-product")
    assert sorted(index.reconstruct_n(0, 2).tolist()) == [[0, 1], [10, 1]]


# What an index settles for a small corpus stands in its facts


@pytest.mark.parametrize(
    ("kind", "count", "facts"),
    [
        ("flat", 3, {}),
        ("sq8", 3, {"codes": "sq8"}),
        ("binary", 3, {"codes": "signs"}),
        ("hnsw", 3, {"codes": "sq8"}),
        ("ivf", 3, {"lists": 1, "codes": "sq8", "learned_from": 3}),
        ("ivf", 200, {"lists": 5, "codes": "sq8", "learned_from": 200}),
        ("ivf", 900, {"lists": 8, "codes": "sq8", "learned_from": 700}),
        ("pq", 623, {"codes": "sq8"}),
        ("pq", 624, {"codes": "pq", "bits": 4, "learned_from": 624}),
        ("ivf-pq", 623, {"lists": 8, "codes": "sq8", "learned_from": 623}),
        ("ivf-pq", 900, {"lists": 8, "codes": "pq", "bits": 4, "learned_from": 700}),
    ],
)
def test_a_small_corpus_has_fewer_lists_and_bits_or_other_codes(kind, count, facts, tmp_path):
    settings = {"training": 700} if kind in ("ivf", "pq", "ivf-pq") else {}
    assert build(tmp_path, kind, clustered(count), **settings).facts == facts
