import imagined
import pytest

from coderet import paths, reports
from coderet.corpora import store
from coderet.records import DataError


def test_nothing_is_missing_where_every_stage_has_run(results):
    assert results.missing == ()
    assert (results.systems, results.benchmarks) == (("plain", "learned", "both"), ("functions", "solutions"))


def test_a_file_that_is_not_there_is_named_and_the_others_are_read(root):
    gone = paths.result("functions", "plain", "score")
    (root / gone).unlink()
    results = imagined.read(root)
    assert results.missing == (gone.as_posix(),)
    assert results.of("plain", "functions", "score") == {}
    assert results.mean("plain", "solutions", "mrr")["value"] == 1.0


def test_a_fusion_owes_only_scores(root):
    results = reports.read(["functions"], [], ["both", "other"], mined=False, root=root)
    assert results.missing == (paths.result("functions", "other", "score").as_posix(),)


def test_a_broken_file_is_an_error_that_names_it(root):
    path = root / paths.result("functions", "plain", "score")
    path.write_text("{")
    with pytest.raises(DataError, match=r"plain/score\.json is not JSON"):
        imagined.read(root)


def test_the_headline_leads_the_metrics(results):
    assert results.metrics("functions") == ["ndcg@10", "mrr"]
    assert results.leading_metrics("functions") == ["ndcg@10"]


def test_a_dataset_judged_by_another_metric_brings_it_to_the_front(root):
    path = root / paths.result("functions", "plain", "score")
    score = store.read_json(path)
    block = {"mrr-1000": imagined.figures(10), "mrr-1000-paper": imagined.figures(9)}
    score["datasets"]["block-00"] = {"metrics": block, "queries": 20}
    score["all"] |= {name: {**each, "queries": 20, "datasets": 1} for name, each in block.items()}
    store.write_json(path, score)
    results = imagined.read(root)
    assert results.metrics("functions") == ["ndcg@10", "mrr", "mrr-1000", "mrr-1000-paper"]
    assert results.leading_metrics("functions") == ["ndcg@10", "mrr-1000"]


def test_costs_are_those_of_the_headline_corpus_and_dataset(root):
    path = root / paths.result("functions", "plain", "index")
    index = store.read_json(path)
    index["corpora"]["other"] = {"documents": 70, "documents_per_second": 9.0, "index_bytes": 500}
    store.write_json(path, index)
    told = reports.costs(imagined.read(root), "plain", "functions")
    assert told == {
        "documents_per_second": 60.0,
        "milliseconds_per_document": pytest.approx(1000 / 60),
        "queries_per_second": 200.0,
        "query_milliseconds_p50": 4.0,
        "index_bytes": 1500,
        "model_bytes": 4000,
        "index_peak_memory_bytes": 10**8,
        "search_peak_memory_bytes": 2 * 10**8,
        "threads": 2,
    }


def test_the_recall_of_an_approximate_index_is_among_its_costs(root):
    path = root / paths.result("functions", "plain", "search")
    search = store.read_json(path)
    search["datasets"]["pool"]["recall_against_flat@100"] = 0.95
    store.write_json(path, search)
    results = imagined.read(root)
    assert reports.costs(results, "plain", "functions")["recall_against_flat@100"] == 0.95
    assert not any("recall" in name for name in reports.costs(results, "learned", "functions"))
    rows = [row for row in reports.summary_rows(results) if row["metric"] == "recall_against_flat@100"]
    assert [(row["system"], row["value"], row["unit"]) for row in rows] == [("plain", 0.95, "fraction")]


def test_what_was_not_measured_has_no_cost_and_is_not_zero(results):
    assert reports.costs(results, "both", "functions") == {}


def test_the_machine_is_told_in_words(results):
    assert reports.hardware(results, "plain", "functions") == "Imaginary 9000, 2 cores, 8 GiB, no accelerator"
    assert reports.hardware(results, "both", "functions") == ""


def test_a_file_of_another_shape_is_an_error_that_names_it(root):
    path = root / paths.result("functions", "plain", "score")
    path.write_text("[1]", encoding="utf-8")
    with pytest.raises(DataError, match=r"score\.json holds list, wanted an object"):
        imagined.read(root)
