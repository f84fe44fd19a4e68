import numpy as np
import pyarrow as pa
import pytest

from coderet.corpora.folding import folded
from coderet.records import Corpus, DataError, Run, documents_batch


def corpus(name, *ids):
    return Corpus(name, pa.Table.from_batches([documents_batch(ids, [""] * len(ids), [""] * len(ids))]))


DOCUMENTS = corpus("documents", "c", "b", "a")
CHUNKS = corpus("chunks", *(f"c{at}" for at in range(5)))
OWNERS = np.array([0, 0, 1, 2, 2])


def run(rows, scores):
    ids = pa.array([f"q{at}" for at in range(len(rows))], pa.large_string())
    return Run.of(CHUNKS, ids, np.array(rows), np.array(scores))


def test_a_document_is_as_good_as_its_best_chunk():
    result = folded(run([[3, 1, 4, 2]], [[5, 4, 3, 2]]), DOCUMENTS, OWNERS)
    assert result.rows.tolist() == [[2, 0, 1, -1]]
    assert result.scores.tolist() == [[5, 4, 2, -np.inf]]


def test_documents_whose_best_chunks_are_equal_stand_in_the_one_order():
    assert folded(run([[4, 2, 0, -1]], [[1, 1, 1, 0]]), DOCUMENTS, OWNERS).rows.tolist() == [[0, 1, 2, -1]]


def test_a_query_without_hits_stays_without():
    assert folded(run([[-1, -1], [3, -1]], [[0, 0], [2, 0]]), DOCUMENTS, OWNERS).rows.tolist() == [[-1, -1], [2, -1]]


def test_it_agrees_with_folding_one_by_one():
    random = np.random.default_rng(0)
    rows = np.array([random.permutation(5) for _ in range(50)])
    scores = random.integers(0, 3, (50, 5)).astype(np.float32)
    result = folded(run(rows, scores), DOCUMENTS, OWNERS)
    for query in range(50):
        best = {}
        for row, score in zip(rows[query], scores[query], strict=True):
            best[OWNERS[row]] = max(score, best.get(OWNERS[row], -np.inf))
        assert result.rows[query].tolist()[:3] == sorted(best, key=lambda row: (-best[row], row))


def test_owners_of_another_corpus_are_refused():
    with pytest.raises(DataError, match="4 owners for 5 chunks of the 3 documents"):
        folded(run([[0]], [[1]]), DOCUMENTS, OWNERS[:4])
    with pytest.raises(DataError, match="cut the corpus again"):
        folded(run([[0]], [[1]]), DOCUMENTS, OWNERS + 1)
