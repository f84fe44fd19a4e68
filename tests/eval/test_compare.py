import imagined

from coderet import paths
from coderet.corpora import store


def test_the_report_and_the_summary_are_written_from_files_alone(root, run):
    done = run("compare")
    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
    rows = store.read_json(root / paths.SUMMARY)["rows"]
    assert [
        r["value"]
        for r in rows
        if (r["system"], r["benchmark"], r["dataset"], r["metric"])
        == (
            "learned",
            "functions",
            "all",
            "mrr",
        )
    ] == [0.9]
    assert "| **90.0 ▲** (80.0–100.0) |" in (root / paths.REPORT_MARKDOWN).read_text(encoding="utf-8")
    assert "<title>Code retrievers compared</title>" in (root / paths.REPORT_HTML).read_text(encoding="utf-8")


def test_results_of_different_assembly_print_a_warning(root, run):
    titled = {"kind": "dense", "index": {"text_fields": ["title", "text"]}}
    imagined.write_score(root, "functions", "learned", titled)
    assert "warning: functions: documents were assembled differently" in run("compare").stderr


def test_a_missing_result_prints_a_warning_and_the_others_are_compared(root, run):
    (root / paths.result("functions", "both", "score")).unlink()
    done = run("compare")
    assert done.returncode == 0
    assert "warning: eval/results/functions/both/score.json is missing" in done.stderr
    assert store.read_json(root / paths.SUMMARY)["rows"]
