import numpy as np
import pytest

from coderet.metrics.chance import chance
from coderet.metrics.measures import METRICS
from coderet.metrics.ranking import Judgements, evaluate
from coderet.records import DataError

DOCUMENTS = 12
GRADES = {0: {3: 2.0, 5: 1.0, 7: 0.0}, 1: {1: 3.0}, 2: {2: 0.0}, 3: {0: 0.0, 1: 0.0, 2: 1 / 3, 3: 1.0, 4: 3.0}}
NAMES = [f"{kind}{cutoff}" for kind in METRICS for cutoff in ("", "@2", "@5") if kind + cutoff[:1] != "bpref@"]


def judgements() -> Judgements:
    flat = [(query, row, grade) for query, rows in GRADES.items() for row, grade in rows.items()]
    queries, rows, grades = map(np.array, zip(*flat, strict=True))
    return Judgements(queries, rows, grades, len(GRADES))


def test_one_relevant_document_of_n_is_first_once_in_n_orders():
    one = Judgements(np.array([0]), np.array([3]), np.ones(1), 1)
    floor = chance(one, 4, ["hit@1", "mrr", "recall@2", "ndcg@2"])
    assert floor["hit@1"][0] == pytest.approx(1 / 4)
    assert floor["mrr"][0] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert floor["recall@2"][0] == pytest.approx(2 / 4)
    assert floor["ndcg@2"][0] == pytest.approx((1 + 1 / np.log2(3)) / 4)


def test_where_all_judged_documents_are_alike_a_random_order_is_perfect_within_them():
    alike = Judgements(np.zeros(3, int), np.arange(3), np.full(3, 2.0), 1)
    floor = chance(alike, 1000, ["ndcg-within", "ndcg-reranked", "ndcg-all"])
    assert floor["ndcg-within"][0] == floor["ndcg-reranked"][0] == pytest.approx(1)
    assert floor["ndcg-all"][0] < 0.2


EXCLUDED = (np.array([0, 0, 1, 3, 3]), np.array([11, 5, 1, 4, 0]))  # judged and other ones


def hits(orders: int, depth: int | None, excluded: tuple | None) -> np.ndarray:
    """Rows of random orders of the corpus for each query, -1 behind: what is excluded is taken out, then all is cut."""
    random = np.random.default_rng(0)
    rows = random.permuted(np.tile(np.arange(DOCUMENTS), (orders * len(GRADES), 1)), axis=1)
    for query, row in zip(*(excluded or ((), ())), strict=True):
        of_query = rows[query :: len(GRADES)]
        of_query[of_query == row] = -1
    closed_up = np.argsort(rows < 0, axis=1, kind="stable")
    return np.take_along_axis(rows, closed_up, axis=1)[:, :depth]


@pytest.mark.parametrize(
    ("depth", "excluded"), [(None, None), (4, None), (None, EXCLUDED), (4, EXCLUDED), (11, EXCLUDED)]
)
def test_the_floor_is_what_random_orders_score_on_average(depth, excluded):
    names = [name for name in NAMES if not (depth and name == "bpref")]
    floor = chance(judgements(), DOCUMENTS, names, depth, excluded)
    orders = 6000
    flat = judgements()
    many = Judgements(
        np.concatenate([flat.queries + len(GRADES) * place for place in range(orders)]),
        np.tile(flat.rows, orders),
        np.tile(flat.grades, orders),
        len(GRADES) * orders,
    )
    rows = hits(orders, depth, excluded)
    scores = np.broadcast_to(-np.arange(rows.shape[1], dtype=np.float32), rows.shape)
    simulated = evaluate(np.arange(many.query_count), rows, scores, many, names)
    for name in names:
        by_order = simulated.values[name].reshape(orders, -1)
        error = by_order.std(axis=0) / np.sqrt(orders)
        assert (np.abs(by_order.mean(axis=0) - floor[name]) <= 4.5 * error + 1e-9).all(), name


def test_what_is_excluded_is_never_a_hit_and_stays_in_the_ideal_ranking():
    two = Judgements(np.zeros(2, int), np.arange(2), np.ones(2), 1)
    floor = chance(two, 5, ["recall@1", "recall", "mrr"], excluded=(np.array([0, 0, 0]), np.array([0, 4, 4])))
    assert floor["recall@1"][0] == pytest.approx(1 / 3 / 2)  # one of three documents, one of two relevant ones
    assert floor["recall"][0] == pytest.approx(1 / 2)
    assert floor["mrr"][0] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_an_ending_for_ties_changes_nothing_and_folding_is_refused():
    floor = chance(judgements(), DOCUMENTS, ["mrr", "mrr-best"])
    assert floor["mrr"].tolist() == floor["mrr-best"].tolist()
    with pytest.raises(DataError, match="mrr-folded has no floor"):
        chance(judgements(), DOCUMENTS, ["mrr-folded"])


def test_bpref_of_a_cut_run_and_a_corpus_smaller_than_its_judgements_are_refused():
    with pytest.raises(DataError, match="bpref has no floor here where the run is cut"):
        chance(judgements(), DOCUMENTS, ["bpref"], depth=3)
    with pytest.raises(DataError, match="a query has 5 judged documents, but the corpus has 4"):
        chance(judgements(), 4, ["mrr"])


def test_a_million_documents_cost_no_more_than_a_table():
    many = Judgements(np.repeat(np.arange(1000), 2), np.arange(2000), np.ones(2000), 1000)
    floor = chance(many, 1_000_000, ["mrr", "hit@10", "ndcg-within", "ndcg@10"], depth=100)
    assert floor["hit@10"][0] == pytest.approx(2e-5, rel=1e-4)
