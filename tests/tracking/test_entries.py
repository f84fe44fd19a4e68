from coderet import tracking
from coderet.tracking import entries

SPEC = {"kind": "dense", "fit": {"encoder": {"kind": "nbow", "dim": 8}}, "index": {"text_fields": ["text"]}, "batch": 4}
RESULTS = {
    "pypi": {
        "score": {
            "inputs": "aa",
            "all": {
                "ndcg@10": {"value": 0.5, "low": 0.4, "high": 0.6},
                "mrr": {"value": 0.25, "low": 0.2, "high": 0.3},
            },
        },
    },
    "humaneval": {"score": {"inputs": "bb", "all": {"ndcg@10": {"value": 1.0, "low": 1.0, "high": 1.0}}}},
}
TRAINING = {
    "seconds": 12.5,
    "curve": [
        {"step": 5, "epoch": 1, "seconds": 2.0, "loss": 3.0, "validation_mrr": None},
        {"step": 9, "epoch": 2, "seconds": 4.0, "loss": 2.0, "validation_mrr": 0.4},
    ],
}


def test_a_system_tells_quality_by_benchmark_and_efficiency_beside_it():
    entry = entries.of_system("nbow", SPEC, RESULTS, costs={"pypi": {"queries_per_second": 50.0}}, training=TRAINING)
    assert entry.metrics == {
        "pypi/ndcg@10": 0.5,
        "pypi/mrr": 0.25,
        "humaneval/ndcg@10": 1.0,
        "efficiency/pypi/queries_per_second": 50.0,
        "efficiency/training/seconds": 12.5,
    }
    assert (entry.tags["kind"], entry.tags["encoder"], entry.params) == ("dense", "nbow", SPEC)
    assert entry.curve[0] == (5, {"training/epoch": 1, "training/seconds": 2.0, "training/loss": 3.0})
    assert entry.curve[1][1]["training/validation_mrr"] == 0.4


def test_a_generator_with_a_context_tells_what_it_solves_by_set_of_problems():
    judged = {
        "inputs": "aa",
        "datasets": {"humaneval-40": {"metrics": {"pass@1": {"value": 0.25}}}},
        "told": {"humaneval-40": {"verdicts": {"passed": 10, "failed": 30}}},
    }
    spent = {"prompts": 40, "completion_tokens": 900, "seconds": 3.5, "finishes": {}}
    generated = {"datasets": {"humaneval-40": spent}}
    spec = {"context": {"run": "bm25", "documents": 5}, "generator": {"kind": "local"}, "sampling": {"samples": 1}}
    entry = entries.of_answerer("bm25+small", spec, {"humaneval": judged}, {"humaneval": generated})
    assert entry.metrics == {
        "humaneval-40/pass@1": 0.25,
        "verdicts/humaneval-40/passed": 10,
        "verdicts/humaneval-40/failed": 30,
        "efficiency/humaneval-40/prompts": 40,
        "efficiency/humaneval-40/completion_tokens": 900,
        "efficiency/humaneval-40/seconds": 3.5,
    }
    assert (entry.tags["kind"], entry.tags["context"], entry.params) == ("local", "bm25", spec)
    changed = {**judged, "inputs": "bb"}
    assert entry.identity != entries.of_answerer("bm25+small", spec, {"humaneval": changed}, {}).identity


def test_needles_are_logged_over_all_repositories_and_by_what_is_known_of_them():
    metrics = {"match@0.8": {"value": 0.5}, "similarity": {"value": 0.6}}
    judged = {
        "datasets": {"one:small": {"metrics": metrics}},
        "all": metrics,
        "groups": {"depth": {"0.3": {"metrics": metrics}}},
        "inputs": "aa",
    }
    logged = entries.of_answerer("window+small", {}, {"needles": judged}, {}).metrics
    assert logged == {
        "needles/match@0.8": 0.5,
        "needles/similarity": 0.6,
        "needles/depth 0.3/match@0.8": 0.5,
        "one:small/match@0.8": 0.5,
        "one:small/similarity": 0.6,
    }
    score = {"all": {"mrr-expected": {"value": 0.4}}, "ranks": {"median": 4.0, "random": 50.0, "candidates": 100.0}}
    assert entries.of_system("bm25", SPEC, {"needles": {"score": score}}).metrics == {
        "needles/mrr-expected": 0.4,
        "needles/median-rank": 4.0,
    }


def test_a_figure_that_changes_changes_the_identity_and_so_does_what_it_was_computed_from():
    before = entries.of_system("nbow", SPEC, RESULTS)
    assert before.identity == entries.of_system("nbow", SPEC, RESULTS).identity
    other = {**RESULTS, "humaneval": {"score": {**RESULTS["humaneval"]["score"], "inputs": "cc"}}}
    assert before.identity != entries.of_system("nbow", SPEC, other).identity
    assert before.identity != entries.of_system("nbow", {**SPEC, "batch": 5}, RESULTS).identity


def test_published_figures_are_runs_tagged_with_table_and_paper(store, runs):
    row = {"benchmark": "humaneval", "dataset": "all", "metric": "ndcg@10", "source": "published:Some Paper table 3"}
    logged = entries.of_published([{**row, "system": "bm25", "value": 1.0}, {**row, "system": "gist", "value": 0.98}])
    tracking.log(logged, uri=store)
    (run,) = runs("gist (Some Paper table 3)")
    assert run.data.metrics == {"humaneval/ndcg_at_10": 0.98}
    assert {key: run.data.tags[key] for key in ("source", "paper", "table")} == {
        "source": "published",
        "paper": "Some Paper",
        "table": "Some Paper table 3",
    }


def test_a_measured_row_is_not_published():
    row = {"system": "bm25", "benchmark": "b", "dataset": "all", "metric": "mrr", "value": 0.5, "source": "measured"}
    assert entries.of_published([row]) == []


def test_the_report_is_logged_again_when_its_text_changes(tmp_path, store):
    report = tmp_path / "report.md"
    outcomes = []
    for text in ("one", "one", "two"):
        report.write_text(text)
        outcomes.append(tracking.log([entries.of_report([report])], uri=store).added)
    assert outcomes == [("report",), (), ("report",)]
