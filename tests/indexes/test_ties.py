import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coderet.indexes.ties import first


def test_the_lowest_row_among_equal_scores_comes_first():
    assert first(np.array([0.5, 0.9, 0.5, 0.5]), 4).tolist() == [1, 0, 2, 3]


def test_the_lowest_row_among_equal_scores_is_kept_at_the_cutoff():
    assert first(np.array([0.5, 0.9, 0.5, 0.5]), 2).tolist() == [1, 0]


def test_no_more_than_there_are():
    assert first(np.array([0.5]), 3).tolist() == [0]
    assert first(np.array([]), 3).tolist() == []
    assert first(np.array([0.5]), 0).tolist() == []


@given(st.lists(st.integers(-2, 2), max_size=12), st.integers(1, 12))
def test_it_is_the_head_of_a_full_stable_sort(values, k):
    scores = np.array(values, np.float32)
    assert first(scores, k).tolist() == np.argsort(-scores, kind="stable")[:k].tolist()
