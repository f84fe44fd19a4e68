import numpy as np
import pyarrow as pa
import pytest

from coderet.records import NO_HIT, DataError, Run
from coderet.retrievers.fusion import rrf, weighted


def run_of(corpus, *hits: dict[str, float]) -> Run:
    """One mapping of id to score a query."""
    ids, width = corpus.ids.to_pylist(), max(1, *map(len, hits))
    rows, scores = np.full((len(hits), width), NO_HIT), np.zeros((len(hits), width))
    for query, found in enumerate(hits):
        rows[query, : len(found)] = [ids.index(each) for each in found]
        scores[query, : len(found)] = list(found.values())
    return Run.of(corpus, pa.array([f"q{i}" for i in range(len(hits))], pa.large_string()), rows, scores)


def fused(run: Run, query: int = 0) -> dict[str, float]:
    ids = run.corpus.ids.to_pylist()
    return {ids[r]: s for r, s in zip(run.rows[query].tolist(), run.scores[query].tolist(), strict=True) if r != NO_HIT}


@pytest.fixture
def corpus(corpus_of):
    return corpus_of({"a": "", "b": "", "c": "", "d": ""})


def test_a_document_earns_the_reciprocal_of_sixty_and_its_rank_in_every_run(corpus):
    result = fused(
        rrf([run_of(corpus, {"a": 9, "b": 5}, {}), run_of(corpus, {"b": 0.2, "c": 0.1}, {"a": 3, "b": 2, "c": 1})])
    )
    assert list(result) == ["b", "a", "c"]
    assert result == pytest.approx({"b": 1 / 62 + 1 / 61, "a": 1 / 61, "c": 1 / 62})


def test_a_run_without_a_document_contributes_nothing_and_one_without_hits_changes_nothing(corpus):
    alone = run_of(corpus, {"a": 2, "b": 1})
    assert fused(rrf([alone, run_of(corpus, {})])) == fused(rrf([alone]))


def test_documents_that_earn_the_same_stand_in_descending_id(corpus):
    result = rrf([run_of(corpus, {"a": 2, "b": 1}), run_of(corpus, {"b": 2, "a": 1})])
    assert list(fused(result)) == ["b", "a"]
    assert len(set(fused(result).values())) == 1


def test_equal_scores_in_a_member_are_ranked_by_the_one_order_whatever_order_they_came_in(corpus):
    orders = [{"a": 0.5, "b": 0.5, "c": 0.5}, {"c": 0.5, "a": 0.5, "b": 0.5}]
    for hits in orders:
        assert fused(rrf([run_of(corpus, hits)])) == pytest.approx({"c": 1 / 61, "b": 1 / 62, "a": 1 / 63})


def test_k_and_weights_change_what_is_earned(corpus):
    members = [run_of(corpus, {"a": 1}, {"a": 2, "b": 1}), run_of(corpus, {"b": 1}, {})]
    assert fused(rrf(members, k=0, weights=[1, 3])) == pytest.approx({"b": 3.0, "a": 1.0})


def test_the_fusion_is_as_deep_as_its_deepest_member_and_keeps_the_best(corpus):
    result = rrf([run_of(corpus, {"a": 2, "b": 1}), run_of(corpus, {"c": 2, "d": 1})])
    assert result.depth == 2
    assert list(fused(result)) == ["c", "a"]


def test_queries_do_not_mix(corpus):
    first = run_of(corpus, {"a": 1}, {"b": 1}, {})
    second = run_of(corpus, {"a": 1}, {}, {"d": 1})
    result = rrf([first, second])
    assert [list(fused(result, query)) for query in range(3)] == [["a"], ["b"], ["d"]]


def test_it_agrees_with_adding_up_one_by_one(corpus_of):
    random = np.random.default_rng(0)
    corpus = corpus_of({f"d{i:02}": "" for i in range(30)})
    ids = corpus.ids.to_pylist()
    members = [
        run_of(corpus, *({ids[i]: float(random.integers(4)) for i in random.permutation(30)[:12]} for _ in range(20)))
        for _ in range(3)
    ]
    result = rrf(members, k=10)
    for query in range(20):
        totals: dict[str, float] = {}
        for member in members:
            for rank, document in enumerate(fused(member, query), 1):
                totals[document] = totals.get(document, 0.0) + 1 / (10 + rank)
        found = fused(result, query)
        assert found == pytest.approx({document: totals[document] for document in found})
        assert min(found.values()) >= np.float32(sorted(totals.values(), reverse=True)[11]) - 1e-7


def test_no_queries_fuse_to_no_queries(corpus):
    empty = Run.of(corpus, pa.array([], pa.large_string()), np.empty((0, 2)), np.empty((0, 2)))
    assert len(rrf([empty, empty])) == 0


def test_runs_that_do_not_belong_together_are_refused(corpus, corpus_of):
    one, two = run_of(corpus, {"a": 1}), run_of(corpus, {"a": 1}, {"a": 1})
    with pytest.raises(DataError, match="1 and 2 queries"):
        rrf([one, two])
    with pytest.raises(DataError, match="cannot be fused"):
        rrf([one, run_of(corpus_of({"a": "other"}), {"a": 1})])
    with pytest.raises(DataError, match="a weight from 0 on for each"):
        rrf([one, one], weights=[1])
    with pytest.raises(DataError, match="0 runs"):
        rrf([])


# By scores


def test_a_document_is_worth_its_dense_score_and_a_share_of_the_best_lexical_one(corpus):
    lexical, dense = run_of(corpus, {"a": 20, "b": 5}), run_of(corpus, {"b": 0.9, "a": 0.8, "c": 0.5})
    result = fused(weighted([lexical, dense], weight=0.2, saturation=10))
    assert result == pytest.approx({"a": 0.8 + 0.2, "b": 0.9 + 0.2 * 5 / 20, "c": 0.5})
    assert list(result) == ["a", "b", "c"]


def test_where_the_best_lexical_score_is_small_even_the_best_earns_little(corpus):
    lexical, dense = run_of(corpus, {"a": 2, "b": 1}), run_of(corpus, {"b": 0.9, "a": 0.8})
    result = fused(weighted([lexical, dense], weight=0.2, saturation=10))
    assert result == pytest.approx({"b": 0.9 + 0.2 * 1 / 10, "a": 0.8 + 0.2 * 2 / 10})


def test_a_document_that_the_dense_run_has_not_is_worth_its_lowest_score(corpus):
    lexical, dense = run_of(corpus, {"d": 10, "a": 5}), run_of(corpus, {"a": 0.3, "b": -0.1})
    result = fused(weighted([lexical, dense], weight=1, saturation=1))
    assert result == pytest.approx({"d": -0.1 + 1, "a": 0.3 + 0.5})  # as deep as its members: b comes third


def test_a_query_that_one_of_the_two_cannot_answer_is_the_others(corpus):
    lexical, dense = run_of(corpus, {}, {"a": 5, "b": 3}), run_of(corpus, {"c": 0.5, "d": 0.4}, {})
    result = weighted([lexical, dense], weight=0.2, saturation=10)
    assert fused(result) == pytest.approx({"c": 0.5, "d": 0.4})
    assert fused(result, 1) == pytest.approx({"a": 0.1, "b": 0.06})


def test_no_weight_leaves_the_dense_run_as_it_is(corpus_of):
    random = np.random.default_rng(0)
    corpus = corpus_of({f"d{i:02}": "" for i in range(30)})
    ids = corpus.ids.to_pylist()
    lexical, dense = (
        run_of(corpus, *({ids[i]: float(random.random()) for i in random.permutation(30)[:12]} for _ in range(20)))
        for _ in range(2)
    )
    result = weighted([lexical, dense], weight=0, saturation=1)
    assert np.array_equal(result.rows[:, :11], dense.rows[:, :11])  # the twelfth is as good as those that it has not
    assert np.array_equal(result.scores, dense.scores)


def test_weights_and_scores_that_cannot_be_meant_are_refused(corpus):
    one = run_of(corpus, {"a": 1})
    for runs, weight, saturation in (([one], 1, 1), ([one, one], -1, 1), ([one, one], 1, 0), ([one, one], np.nan, 1)):
        with pytest.raises(DataError, match="the lexical and the dense one"):
            weighted(runs, weight=weight, saturation=saturation)
    with pytest.raises(DataError, match=r"a score of -0.5; .* name the lexical member first"):
        weighted([run_of(corpus, {"a": -0.5}), one], weight=1, saturation=1)
    with pytest.raises(DataError, match="1 and 2 queries"):
        weighted([one, run_of(corpus, {"a": 1}, {"a": 1})], weight=1, saturation=1)
