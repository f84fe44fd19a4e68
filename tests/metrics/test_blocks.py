import numpy as np
import pytest

from coderet.metrics.blocks import block_ranks, block_reciprocal_ranks
from coderet.records import DataError

# Query 0 has its document second, query 1 first, query 2 ties with document 0 and so is second.
SCORES = np.array([[0.5, 0.9, 0.1], [0.2, 0.8, 0.3], [0.4, 0.1, 0.4]], dtype=np.float32)


def test_a_tie_counts_against_the_own_document():
    assert block_ranks(SCORES).tolist() == [2, 1, 2]


def test_a_document_ranks_the_queries_by_its_own_column():
    # Document 0: its query scores most. Document 1: query 0 scores more. Document 2: its query scores most.
    assert block_ranks(SCORES.T).tolist() == [1, 2, 1]


def test_a_full_run_gives_both_readings_whatever_row_the_gold_is_in():
    gold = np.array([2, 0, 1])  # the document of query i of SCORES lies in row gold[i]
    order = np.argsort(-SCORES, axis=1)
    query_side, document_side = block_reciprocal_ranks(gold[order], np.take_along_axis(SCORES, order, axis=1), gold)
    assert query_side.tolist() == [1 / 2, 1, 1 / 2]
    assert document_side.tolist() == [1, 1 / 2, 1]


def test_documents_that_were_not_found_tie_behind_all_hits():
    rows, scores = np.array([[1, -1, -1], [1, -1, -1], [-1, -1, -1]]), np.zeros((3, 3), dtype=np.float32)
    query_side, document_side = block_reciprocal_ranks(rows, scores, np.arange(3))
    assert query_side.tolist() == [1 / 3, 1, 1 / 3]
    assert document_side.tolist() == [1 / 3, 1 / 2, 1 / 3]


def test_a_narrow_run_counts_if_it_says_that_there_were_no_more_hits():
    rows, scores = np.array([[0, -1], [1, -1], [2, -1]]), np.ones((3, 2), dtype=np.float32)
    assert block_reciprocal_ranks(rows, scores, np.arange(3))[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("rows", "gold", "message"),
    [
        ([[0, 1], [1, 0], [2, -1]], [0, 1, 2], "cut at 2 hits"),
        ([[0, -1], [1, -1], [2, -1]], [0, 1, 1], "3 different gold documents"),
        ([[7, -1], [1, -1], [2, -1]], [0, 1, 2], "row 7 is outside the block"),
        ([[0, 0, -1], [1, -1, -1], [2, -1, -1]], [0, 1, 2], "one document as two hits"),
        ([[0, -1], [1, -1]], [0, 1, 2], "the block has 3 queries"),
    ],
)
def test_a_run_that_does_not_tell_all_of_its_block_is_refused(rows, gold, message):
    with pytest.raises(DataError, match=message):
        block_reciprocal_ranks(np.array(rows), np.ones(np.shape(rows), dtype=np.float32), np.array(gold))


def test_a_nan_score_is_refused():
    with pytest.raises(DataError, match="1 scores of the block are NaN"):
        block_ranks(np.array([[1, np.nan], [0, 1]]))
