"""A hybrid through its scripts: two members prepared, tuned on pairs, searched, fused with what was chosen."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from scripts import ROOT, main_of
from test_end_to_end import beir_folder

from coderet import paths
from coderet.corpora import store
from coderet.records import PAIRS
from coderet.retrievers.fusion import weighted

TEXTS = [("adds two numbers", "def add(a, b): return a + b"), ("numbers less numbers", "def sub(a, b): return a - b")]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("hybrid")
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    raw["benchmarks"] = {"mine": {"kind": "beir", "depth": 100, "source": [beir_folder(root / "beir")]}}
    raw["retrievers"] = {
        name: {"kind": "bm25s", "fit": {}, "index": {"analyzer": analyzer}}
        for name, analyzer in (("words", "code-words"), ("plain", "whitespace"))
    }
    grid = {"weight": [0.5, 0.25], "saturation": [2]}
    raw["fusions"] = {"hybrid": {"kind": "weighted", "members": ["words", "plain"], "tune": {"grid": grid}}}
    raw["grid"] |= {"benchmarks": ["mine"], "answered": [], "read": [], "trained": []}
    raw["grid"] |= {"untrained": ["words", "plain"], "tuned": ["hybrid"]}
    raw["grid"] |= {"distilled": [], "teacher": ""}
    raw["grid"] |= {"retrievers": ["words", "plain"], "fusions": ["hybrid"], "runs": ["words", "plain", "hybrid"]}
    raw["compare"]["baseline"] = "words"
    (root / "params.yaml").write_text(yaml.safe_dump(raw))
    columns = {name: ["x"] * len(TEXTS) for name in PAIRS.names} | {
        "pair_id": ["a", "b"],
        "query": [query for query, _ in TEXTS],
        "code": [code for _, code in TEXTS],
        "start_line": [1] * len(TEXTS),
        "end_line": [2] * len(TEXTS),
    }
    (root / paths.PAIRS).mkdir(parents=True)
    pq.write_table(pa.table(columns, schema=PAIRS), root / paths.PAIRS / "valid.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for script, arguments in (
            ("train/prepare", ["words"]),
            ("train/prepare", ["plain"]),
            ("train/tune", ["hybrid"]),
            ("eval/gather", ["mine"]),
            ("eval/collect", ["mine"]),
            ("eval/index", ["mine", "words"]),
            ("eval/index", ["mine", "plain"]),
            ("eval/search", ["mine", "words"]),
            ("eval/search", ["mine", "plain"]),
            ("eval/fuse", ["mine", "hybrid"]),
        ):
            main_of(script)(*arguments)
    return root


def test_what_was_chosen_says_what_it_was_chosen_from(root):
    found = json.loads((root / paths.fusion("hybrid")).read_text())
    assert found["fusion"] == "hybrid" and found["documents"] == 2
    assert found["settings"] in ({"weight": 0.5, "saturation": 2}, {"weight": 0.25, "saturation": 2})
    assert [trial["weight"] for trial in found["trials"]] == [0.5, 0.25]
    assert set(found["members"]["whole"]) == {"words", "plain"}


def test_the_members_are_fused_by_what_was_chosen_and_the_run_says_so(root):
    chosen = json.loads((root / paths.fusion("hybrid")).read_text())["settings"]
    corpus = store.read_dataset(root / paths.benchmark("mine"), "test").corpus
    words, plain, hybrid = (
        store.read_run(root / paths.runs("mine", name) / "test.arrow", corpus) for name in ("words", "plain", "hybrid")
    )
    expected = weighted([words, plain], **chosen)
    assert np.array_equal(hybrid.rows, expected.rows) and np.array_equal(hybrid.scores, expected.scores)
    settings = store.run_settings(root / paths.runs("mine", "hybrid") / "test.arrow")
    assert settings == {"kind": "weighted", "members": ["words", "plain"], **chosen}
