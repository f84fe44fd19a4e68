"""What other tools are given, and what the Challenge's predictions score, by the scripts."""

import numpy as np
import pyarrow as pa
import pytest

from coderet import paths
from coderet.corpora import exchange, store
from coderet.records import Run


@pytest.fixture
def searched(root):
    """A run of `plain` on `functions`, which finds its one document."""
    corpus = store.read_corpus(root / paths.benchmark("functions"), "pool")
    run = Run.of(corpus, pa.array(["q"], pa.large_string()), np.array([[0]]), np.array([[0.5]], np.float32))
    store.write_run(root / paths.runs("functions", "plain") / "pool.arrow", run, {})
    return root


def test_a_run_and_its_data_are_read_back_from_the_forms_of_trec_eval_and_beir(searched, run):
    done = run("export_trec", "functions", "plain")
    assert done.returncode == 0, done.stderr
    path = searched / "eval/exports/trec/plain/functions/pool.run"
    assert path.read_text(encoding="utf-8") == "q Q0 d 1 0.5 plain\n"
    corpus = store.read_corpus(searched / paths.benchmark("functions"), "pool")
    assert exchange.read_trec_run(path, corpus).scores.tolist() == [[0.5]]
    beir = exchange.beir_folder(searched / "eval/exports/beir/functions/pool")
    assert exchange.beir_qrels(beir, "test").to_pylist() == [{"query_id": "q", "document_id": "d", "grade": 1.0}]


def test_predictions_are_written_for_the_challenge_and_scored(searched, run):
    done = run("export_challenge", "functions", "plain")
    assert done.returncode == 0, done.stderr
    predictions = searched / "eval/exports/challenge/plain/functions.csv"
    assert predictions.read_text(encoding="utf-8").splitlines()[1:] == ['"pool","f","","d"']
    annotations = searched / "annotations.csv"
    annotations.write_text("Language,Query,GitHubUrl,Relevance\npool,f,other,3\npool,f,d,1\n", encoding="utf-8")
    done = run("challenge", str(annotations), str(predictions))
    assert done.returncode == 0, done.stderr
    values = {tuple(line.split()[:2]): float(line.split()[2]) for line in done.stdout.splitlines()}
    # One of two judged functions is submitted, at the first rank: gain 1 of 7 + 1 / log2(3).
    assert values["ndcg-all-2019", "pool"] == pytest.approx(1 / (7 + 1 / np.log2(3)), abs=1e-6)
    assert values["ndcg-all-2019", "mean"] == values["ndcg-all-2019", "pool"]


def test_a_file_that_is_no_csv_of_the_challenge_is_refused_in_one_line(searched, run):
    (searched / "bad.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    done = run("challenge", "bad.csv", "bad.csv")
    assert done.returncode == 1 and "Traceback" not in done.stderr and "bad.csv" in done.stderr
