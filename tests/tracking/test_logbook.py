import json

import numpy as np
import pyarrow as pa
import pytest

from coderet import tracking
from coderet.corpora import store as stored
from coderet.records import DOCUMENTS, QRELS, QUERIES, Draft
from coderet.tracking import logbook


def entry(name, *, mrr=0.5, **more):
    return tracking.Entry(name, "system", params={"kind": "lucene", "k1": 1.2}, metrics={"pypi/mrr": mrr}, **more)


def test_logging_the_same_results_again_adds_nothing(store, runs):
    first = tracking.log([entry("twice")], uri=store)
    again = tracking.log([entry("twice")], uri=store)
    assert (first.added, first.unchanged) == (("twice",), ())
    assert (again.added, again.unchanged) == ((), ("twice",))
    assert again.runs == first.runs
    assert len(runs("twice")) == 1


def test_changed_results_are_a_new_run_and_the_older_one_names_it(store, runs):
    tracking.log([entry("changed", mrr=0.4)], uri=store)
    second = tracking.log([entry("changed", mrr=0.6)], uri=store)
    new, old = runs("changed")
    assert (new.data.metrics["pypi/mrr"], old.data.metrics["pypi/mrr"]) == (0.6, 0.4)
    assert (new.data.tags["current"], old.data.tags["current"]) == ("true", "false")
    assert old.data.tags["superseded_by"] == new.info.run_id == second.runs["system", "changed"]


def test_results_of_before_that_come_back_are_current_again(store, runs):
    for mrr in (0.1, 0.2, 0.1):
        outcome = tracking.log([entry("back", mrr=mrr)], uri=store)
    assert (outcome.added, outcome.superseded) == ((), 1)
    assert {run.data.metrics["pypi/mrr"]: run.data.tags["current"] for run in runs("back")} == {
        0.1: "true",
        0.2: "false",
    }


def test_another_grids_system_of_the_same_name_is_left_alone(store, runs):
    tracking.log([entry("gridded")], uri=store)
    tracking.log([entry("gridded", grid="full", mrr=0.9)], uri=store)
    assert [run.data.tags["current"] for run in runs("gridded")] == ["true", "true"]


def test_a_run_that_was_cut_off_is_written_again(store, client, runs):
    outcome = tracking.log([entry("cut")], uri=store)
    client.set_terminated(outcome.runs["system", "cut"], "FAILED")
    again = tracking.log([entry("cut")], uri=store)
    assert again.added == ("cut",)
    assert [run.info.status for run in runs("cut")] == ["FINISHED"]


def test_a_run_says_what_it_was_made_of(store, runs, client, tmp_path):
    score, large = tmp_path / "score.json", tmp_path / "large.arrow"
    score.write_text("{}")
    large.write_bytes(bytes(logbook.LARGEST_ARTIFACT_BYTES + 1))
    tracking.log(
        [
            entry(
                "told",
                tags={"kind": "lucene"},
                curve=[(10, {"training/loss": 2.0}), (20, {"training/loss": 1.0})],
                artifacts={"pypi/results": [score], "pypi/runs": [large]},
            )
        ],
        uri=store,
        commit="abc123",
    )
    (run,) = runs("told")
    assert run.data.tags["git_commit"] == run.data.tags["mlflow.source.git.commit"] == "abc123"
    assert run.data.tags["source"] == "measured"
    assert run.data.tags["left_on_disk"] == large.as_posix()
    assert run.data.params == {"kind": "lucene", "k1": "1.2"}
    assert [(e.step, e.value) for e in client.get_metric_history(run.info.run_id, "training/loss")] == [
        (10, 2.0),
        (20, 1.0),
    ]
    assert [each.path for each in client.list_artifacts(run.info.run_id, "pypi/results")] == ["pypi/results/score.json"]


@pytest.fixture
def benchmark(tmp_path):
    def write(grade):
        rows = {"id": ["b", "a"], "title": ["", ""], "text": ["def f(): pass", "def g(): pass"]}
        documents = pa.RecordBatch.from_pydict(rows, DOCUMENTS)
        queries = pa.table({"id": ["q"], "text": ["a function"], "excluded": [[]], "withheld": [[]]}, QUERIES)
        qrels = pa.table({"query_id": ["q"], "document_id": ["a"], "grade": np.float32([grade])}, QRELS)
        stored.write_benchmark(tmp_path / "tiny", [Draft("only", [documents], queries, qrels)])
        return tmp_path / "tiny"

    return write


def test_datasets_carry_a_digest_that_moves_with_a_judgement(store, runs, benchmark):
    for grade in (1, 1, 2):
        folder = benchmark(grade)
        tracking.log([entry(f"data{grade}", datasets=[(folder, "only")])], uri=store)
    (first,), (second,) = runs("data1"), runs("data2")
    (one,), (other,) = first.inputs.dataset_inputs, second.inputs.dataset_inputs
    assert one.dataset.name == other.dataset.name == "tiny/only"
    assert one.dataset.digest != other.dataset.digest
    assert json.loads(one.dataset.profile)["documents"] == 2


def test_the_training_that_was_watched_hangs_below_its_system(store, runs, client):
    tracker = tracking.start("nbow-live", {"batch": 8}, uri=store)
    tracker.metrics({"loss": 1.0}, 1)
    tracker.close()
    outcome = tracking.log([entry("nbow-live")], uri=store)
    system = outcome.runs["system", "nbow-live"]
    assert client.get_run(tracker.run_id).data.tags["mlflow.parentRunId"] == system
    assert client.get_run(system).data.tags["training_run"] == tracker.run_id
