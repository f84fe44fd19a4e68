import imagined
import numpy as np
import pyarrow as pa
import pytest

from coderet import paths, reports
from coderet.corpora import store
from coderet.records import DataError


def test_a_difference_beyond_chance_is_marked_and_one_within_is_not(results, root):
    found = reports.differences(results, "plain", root=root)
    better = found["functions", "learned", "ndcg@10"]
    assert better.value == pytest.approx(0.65)  # 18 of 20 against 5 of 20
    assert (better.mark, found["solutions", "learned", "ndcg@10"].mark) == ("▲", "≈")


def test_the_p_values_are_corrected_for_all_systems_together(results, root):
    # solutions: plain has all 20, learned 19, both 20. One coin: both its sides are as extreme, so p is 1 for both.
    found = reports.differences(results, "plain", root=root)
    assert found["solutions", "learned", "ndcg@10"].p == 1.0
    # functions: 13 and 10 coins that all fell one way: 2/2**13 and 2/2**10; the smaller is doubled by Holm.
    assert found["functions", "learned", "ndcg@10"].p == pytest.approx(2 * 2 / 2**13)
    assert found["functions", "both", "ndcg@10"].p == pytest.approx(2 / 2**10)


def test_the_baseline_worse_than_a_system_is_that_system_better(results, root):
    assert reports.differences(results, "learned", root=root)["functions", "plain", "ndcg@10"].mark == "▼"


def test_a_dataset_that_stands_apart_is_not_tested(results, root):
    for system in ("plain", "learned"):
        path = root / paths.result("functions", system, "score")
        score = store.read_json(path)
        score["datasets"]["all"] = {**score["datasets"]["pool"], "apart": True}
        store.write_json(path, score)
        ids = pa.chunked_array([pa.array(["q"], pa.large_string())])
        store.write_scorecard(root / paths.scores("functions", system) / "all.arrow", ids, {"ndcg@10": np.ones(1)})
    found = reports.differences(imagined.read(root), "plain", root=root)
    assert found["functions", "learned", "ndcg@10"].value == pytest.approx(0.65)


def test_without_scorecards_there_is_no_test(results, tmp_path_factory):
    assert reports.differences(results, "plain", root=tmp_path_factory.mktemp("empty")) == {}


def test_scorecards_of_different_queries_are_refused(results, root):
    ids = pa.chunked_array([pa.array(["other"], pa.large_string())])
    store.write_scorecard(root / paths.scores("functions", "learned") / "pool.arrow", ids, {"ndcg@10": np.ones(1)})
    with pytest.raises(DataError, match="learned and plain on functions are of different queries"):
        reports.differences(results, "plain", root=root)


def test_systems_that_read_the_same_fields_give_no_warning(results):
    assert reports.all_warnings(results) == []


def test_systems_that_read_different_fields_give_a_warning(root):
    titled = {"kind": "dense", "index": {"text_fields": ["title", "text"]}}
    imagined.write_score(root, "functions", "learned", titled)
    (warning,) = reports.all_warnings(imagined.read(root))
    assert warning.startswith(
        "functions: documents were assembled differently (plain read text; learned read title, text)"
    )


def test_means_over_different_numbers_of_queries_give_a_warning(root):
    path = root / paths.result("solutions", "plain", "score")
    score = store.read_json(path)
    score["all"]["ndcg@10"]["queries"] = 19
    store.write_json(path, score)
    (warning,) = reports.all_warnings(imagined.read(root))
    assert "ndcg@10 is a mean over different numbers of queries (plain 19, learned 20, both 20)" in warning
