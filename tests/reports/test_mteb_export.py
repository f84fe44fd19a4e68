"""Results in mteb's form, read back by mteb itself."""

import pytest

from coderet import reports
from coderet.benchmarks.coir import BENCHMARKS, TASKS
from coderet.corpora.released import OFFICIAL
from coderet.records import DataError

COMMIT = "f22508f96b7a36c2415181ed8bb76f76e04ae2d5"


def score(name, **values):
    """A score.json with the headline of each dataset."""
    datasets = {
        each: {"metrics": {"ndcg@10": {"value": value}, "hit@1": {"value": 0.25}, "ndcg@10-folded": {"value": 0.9}}}
        for each, value in values.items()
    }
    return {"benchmark": name, "system": "s", "choices": dict(BENCHMARKS[name].choices), "datasets": datasets}


@pytest.fixture
def read_back(tmp_path):
    mteb = pytest.importorskip("mteb", reason="the extra mteb is not installed")

    def read(result):
        result.to_disk(tmp_path / "result.json")
        return mteb.TaskResult.from_disk(tmp_path / "result.json")

    return read


def test_mteb_reads_a_task_with_its_names_of_metrics_revision_and_time(read_back):
    import mteb

    result = read_back(reports.task_result(score("mteb-apps", apps=0.5), revision=COMMIT, seconds=2.5))
    assert (result.task_name, result.dataset_revision, result.evaluation_time) == ("AppsRetrieval", COMMIT, 2.5)
    assert result.mteb_version == mteb.__version__
    (scores,) = result.scores["test"]
    assert {name: value for name, value in scores.items() if isinstance(value, float)} == {
        "ndcg_at_10": 0.5,
        "main_score": 0.5,
        "hit_rate_at_1": 0.25,
    }
    assert (scores["hf_subset"], scores["languages"]) == ("default", ["eng-Latn", "python-Code"])
    assert result.get_score() == 0.5


def test_a_task_by_language_has_a_subset_a_language_and_their_plain_mean(read_back):
    values = {name: place / 10 for place, name in enumerate(TASKS["codesearchnet-ccr"].languages, 1)}
    result = read_back(reports.task_result(score("mteb-codesearchnet-ccr", **values), revision="x", seconds=None))
    assert {each["hf_subset"]: each["languages"] for each in result.scores["test"]} == {
        name: [f"{name}-Code"] for name in values
    }
    assert result.get_score() == pytest.approx(0.35) and result.evaluation_time is None


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name.startswith("mteb-")])
def test_mteb_knows_every_task_by_name_and_pins_the_data_that_the_benchmark_names(name):
    mteb = pytest.importorskip("mteb", reason="the extra mteb is not installed")
    task = mteb.get_task(BENCHMARKS[name].choices["mteb task"]).metadata
    (file,) = BENCHMARKS[name].files
    assert file.place == f"hub:datasets/{task.dataset['path']}@{task.dataset['revision']}"
    assert task.main_score == BENCHMARKS[name].headline.replace("@", "_at_")


@pytest.mark.parametrize("name", ["coir-apps", "humaneval"])
def test_a_result_by_other_choices_than_mtebs_is_refused(name):
    choices = dict(BENCHMARKS[name].choices) if name in BENCHMARKS else {}
    with pytest.raises(DataError, match=rf"the result of s on {name} is by .* only benchmarks of mteb's own choices"):
        reports.task_result(
            {"benchmark": name, "system": "s", "choices": choices, "datasets": {}}, revision="x", seconds=None
        )


def test_the_revision_is_that_of_the_one_data_set_that_the_source_names():
    files = BENCHMARKS["mteb-apps"].files
    other = "0" * 40
    assert reports.revision_of([OFFICIAL], files, OFFICIAL) == COMMIT
    assert reports.revision_of([f"hub:datasets/CoIR-Retrieval/apps@{other}"], files, OFFICIAL) == other
    pair = [f"hub:datasets/x/apps-queries-corpus@{other}", f"hub:datasets/x/apps-qrels@{other}"]
    for source in (pair, ["file:somewhere"]):
        assert reports.revision_of(source, files, OFFICIAL) == "no_revision_available"


def test_the_time_is_what_indexing_and_searching_took():
    index = {"corpora": {"a": {"documents": 60, "documents_per_second": 30.0}, "b": {"documents": 5, "encoded": 0}}}
    assert reports.seconds_of(index, {"datasets": {"a": {"seconds": 0.5}}}) == 2.5
    assert reports.seconds_of({}, {}) is None
