"""Retrieval over chunks and reranking through the pipeline itself, with a tiny real cross-encoder."""

import numpy as np
import pytest
import yaml
from cross_encoders import write_cross_encoder
from test_end_to_end import Project, beir_folder

from coderet import params, paths, reports
from coderet.corpora import store
from coderet.corpora.sources import digest
from coderet.retrievers.cross_encoder import CrossEncoder
from coderet.tracking import entries


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    from pathlib import Path

    sources = tmp_path_factory.mktemp("sources")
    model = write_cross_encoder(sources / "model", places=128)
    raw = yaml.safe_load((Path(__file__).parents[2] / "params.yaml").read_text(encoding="utf-8"))
    raw["benchmarks"] = {"mine": {"kind": "beir", "depth": 100, "source": [beir_folder(sources / "beir")]}}
    chunking = {"kind": "lines", "size": 1}
    raw["retrievers"]["bm25"] = {"kind": "bm25s", "fit": {}, "index": {"chunking": chunking, "analyzer": "code-words"}}
    raw["rerankers"] = {
        "tiny": {
            "kind": "cross-encoder",
            "fit": {"source": f"file:{model}#sha256={digest(model)}"},
            "top": 2,
            "below": "keep",
            "max_tokens": 100,
            "precision": "fp32",
        }
    }
    runs = ["bm25", "bm25+tiny"]
    raw["grid"] |= {
        "benchmarks": ["mine"],
        "answered": [],
        "read": [],
        "trained": [],
        "untrained": ["bm25"],
        "retrievers": ["bm25"],
        "fusions": [],
        "distilled": [],
        "teacher": "",
        "tuned": [],
        "reranked": ["bm25"],
        "rerankers": ["tiny"],
        "runs": runs,
    }
    raw["efficiency"] = {"batch_queries": 64, "single_queries": 5, "warm_up": 1}
    raw["scoring"]["resamples"] = 20
    raw["compare"] |= {"baseline": "bm25", "permutations": 20}
    made = Project(tmp_path_factory.mktemp("project") / "coderet", raw)
    made.ran = made.repro("score@mine-bm25", "score@mine-bm25+tiny")
    return made


def run_of(project, name):
    corpus = store.read_dataset(project.folder / paths.benchmark("mine"), "test").corpus
    return store.read_run(project.folder / paths.runs("mine", name) / "test.arrow", corpus)


def test_the_stages_are_those_of_the_crossed_lists(project):
    assert {"prepare-reranker@tiny", "rerank@mine-bm25-tiny", "score@mine-bm25+tiny"} <= project.ran
    listed = project.call("dvc", "stage", "list", "--name-only").split()
    assert [name for name in listed if name.startswith(("rerank@", "prepare-reranker@"))] == [
        "prepare-reranker@tiny", "rerank@mine-bm25-tiny"
    ]  # fmt: skip


def test_the_first_hits_carry_the_scores_of_the_cross_encoder(project):
    first, reranked = run_of(project, "bm25"), run_of(project, "bm25+tiny")
    assert (reranked.depth, first.depth) == (3, 3)
    assert [set(rows) for rows in reranked.rows[:, :2].tolist()] == [set(rows) for rows in first.rows[:, :2].tolist()]
    assert np.array_equal(reranked.rows[:, 2], first.rows[:, 2])
    model = CrossEncoder.load(project.folder / "models/rerankers/tiny", max_tokens=100, precision="fp32")
    queries = store.read_dataset(project.folder / paths.benchmark("mine"), "test").queries
    for at in range(len(queries)):
        rows = reranked.rows[at, :2][reranked.rows[at, :2] >= 0]
        texts = reranked.corpus.table["text"].take(rows)
        assert np.array_equal(
            model.scores(queries.texts.take([at] * len(rows)), texts), reranked.scores[at][: len(rows)]
        )


def test_the_retriever_worked_on_chunks_and_answered_with_documents(project):
    index = project.result("eval/results/mine/bm25/index.json")
    assert index["corpora"]["test"]["chunks"] == 3 and index["settings"]["chunking"] == {"kind": "lines", "size": 1}
    assert set(run_of(project, "bm25").corpus.ids.to_pylist()) == {"7", "8", "9"}


def test_the_results_tell_what_reranking_cost_and_with_what(project):
    told = project.result("eval/results/mine/bm25+tiny/rerank.json")
    cost = told["datasets"]["test"]
    assert (cost["hits"], cost["pairs"]) == (4, 3), "two documents are equal: their pair is scored once"
    assert cost["pairs_per_second"] > 0 and cost["query_milliseconds_p50"] > 0
    assert told["parameters"] > 10_000 and told["model_bytes"] > 10_000
    score = project.result("eval/results/mine/bm25+tiny/score.json")
    assert score["settings"] == told["settings"]
    assert (score["settings"]["of"], score["settings"]["top"], score["settings"]["max_tokens"]) == ("bm25", 2, 100)


def test_the_report_and_the_log_book_treat_it_like_any_run(project):
    project.call("python", "eval/compare.py")
    page = (project.folder / paths.REPORT_MARKDOWN).read_text(encoding="utf-8")
    assert (
        "bm25+tiny" in page and "pairs/s" in page and "missing" not in page.split("## Missing")[0].split("bm25+tiny")[1]
    )
    read = params.of(project.params)
    results = reports.read(["mine"], ["bm25"], rerankings=read.grid.rerankings, mined=False, root=project.folder)
    assert results.systems == ("bm25", "bm25+tiny") and results.missing == ()
    assert reports.costs(results, "bm25+tiny", "mine")["pairs_per_second"] > 0
    spec = entries.spec_of(read, "bm25+tiny")
    assert (spec["kind"], spec["of"], spec["fit"]) == ("cross-encoder", "bm25", read.rerankers["tiny"].fit)


def test_another_top_reranks_and_scores_only_what_is_new(project):
    project.params["rerankers"]["tiny"] |= {"top": 3, "below": "drop"}
    project.write()
    assert project.repro("score@mine-bm25+tiny") == {"rerank@mine-bm25-tiny", "score@mine-bm25+tiny"}
    cost = project.result("eval/results/mine/bm25+tiny/rerank.json")["datasets"]["test"]
    assert (cost["hits"], cost["pairs"]) == (6, 1), (
        "the third hit of the first query is another text, of the second not"
    )


def test_a_misspelt_setting_stops_the_stage_and_leaves_the_run(project):
    before = run_of(project, "bm25+tiny").scores
    project.params["rerankers"]["tiny"]["max_token"] = 5
    project.write()
    said = project.call("python", "eval/rerank.py", "mine", "bm25", "tiny", fails=True)
    assert "rerankers.tiny.max_token is not a setting" in said and "Did you mean max_tokens?" in said
    assert "Traceback" not in said and np.array_equal(run_of(project, "bm25+tiny").scores, before)


def test_without_rerankers_there_is_no_stage_of_theirs(project):
    project.params["grid"] |= {"reranked": [], "rerankers": [], "runs": ["bm25"]}
    project.write()
    listed = project.call("dvc", "stage", "list", "--name-only").split()
    assert "score@mine-bm25" in listed and not [name for name in listed if "rerank" in name or "+" in name]
