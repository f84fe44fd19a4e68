"""Hard negatives against what can be worked out by hand or by comparing everything with everything."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from coderet import retrievers
from coderet.encoders.base import DualEncoder
from coderet.records import PAIRS, DataError
from coderet.registry import BadValue
from coderet.retrievers.bm25s import Bm25s
from coderet.retrievers.dense import Dense
from coderet.training import negatives
from coderet.training.mixture import NO_ROW
from coderet.training.negative_mining import mine, rescored
from coderet.training.vocabulary import load_vocabulary, train_vocabulary

WORDS = Bm25s(analyzer="code-words")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def pairs(write_pairs: Callable[..., Path]) -> Path:
    return write_pairs() / "train.parquet"


@pytest.fixture
def encoder(tokenizers_folder: Path) -> DualEncoder:
    torch.manual_seed(1)
    return DualEncoder.build(load_vocabulary(tokenizers_folder), {"kind": "nbow", "dim": 8}).eval()


@pytest.fixture
def mined(pairs: Path, encoder: DualEncoder, tmp_path: Path) -> Callable[..., tuple[negatives.Mined, dict[str, Any]]]:
    """mined(first=..., ...): what mining the pairs with the encoder gives, and its facts."""

    def made(**settings: Any) -> Any:
        out = tmp_path / "out.parquet"
        facts = mine(pairs, Dense(encoder), "1", out, tmp_path / "work", 5, **{"near_copies": False} | settings)
        return negatives.read(out, pairs), facts

    return made


def cosines(path: Path, encoder: DualEncoder) -> np.ndarray:
    table = pq.read_table(path)
    return encoder.encode_queries(table["query"]) @ encoder.encode_documents(table["code"]).T


def write(path: Path, queries: list[str], codes: list[str]) -> Path:
    count = len(queries)
    columns = {
        "pair_id": [f"id{number}" for number in range(count)],
        "repository": ["package"] * count,
        "path": ["module.py"] * count,
        "language": ["python"] * count,
        "name": ["f"] * count,
        "query": queries,
        "code": codes,
        "start_line": [1] * count,
        "end_line": [2] * count,
    }
    pq.write_table(pa.table(columns, schema=PAIRS), path)
    return path


def test_negatives_are_the_hits_in_the_window_of_ranks_without_the_own_code(mined, pairs: Path, encoder: DualEncoder):
    found, facts = mined(first=3, last=7, a_pair=4)
    scores = cosines(pairs, encoder)
    own = scores.diagonal().copy()
    for row, each in enumerate(scores):
        # of equal scores the later pair comes first: document ids fall
        order = [int(other) for other in np.lexsort((-np.arange(60), -each)) if other != row]
        assert np.allclose(np.sort(each[found.rows[row]]), np.sort(each[order[2:6]]), atol=1e-6)
        assert row not in found.rows[row] and np.all(np.diff(found.scores[row]) <= 0)
    assert np.allclose(found.scores, np.take_along_axis(scores, found.rows, 1), atol=1e-6)
    known = ~np.isnan(found.own)
    assert np.allclose(found.own[known], own[known], atol=1e-6)
    assert facts["hits"] == 60 * 5 and facts["taken"] == 60 * 4 and facts["not_wanted"] == 60
    assert found.pair_ids.to_pylist() == pq.read_table(pairs)["pair_id"].to_pylist()


def test_a_margin_and_a_factor_keep_negatives_below_the_own_score(mined, pairs: Path, encoder: DualEncoder):
    scores = cosines(pairs, encoder)
    own = scores.diagonal()[:, None]
    for settings, ceiling in (({"margin": 0.1}, own - 0.1), ({"factor": 0.8}, own * 0.8)):
        found, facts = mined(first=1, last=59, a_pair=59, **settings)
        others = ~np.eye(60, dtype=bool)
        wanted = ((scores <= ceiling) & others).sum(axis=1)
        unknown = np.isnan(found.own)
        assert np.array_equal((found.rows != NO_ROW).sum(axis=1), np.where(unknown, 0, wanted))
        assert facts["margin"] + facts["taken"] == facts["hits"] == 60 * 59 and facts["margin"] > 0
        assert facts["pairs_without"] == int((wanted == 0).sum())


def test_a_query_whose_own_code_is_no_hit_has_none_if_a_margin_is_asked_for(mined):
    found, _ = mined(first=1, last=5, a_pair=5, margin=0.0)
    assert np.isnan(found.own).any() and (found.rows[np.isnan(found.own)] == NO_ROW).all()
    without, _ = mined(first=1, last=5, a_pair=5)
    assert ((without.rows != NO_ROW).sum(axis=1) == 5).all()


def test_random_negatives_are_of_the_window_and_follow_from_the_seed(mined, pairs, encoder, tmp_path: Path):
    hardest, _ = mined(first=1, last=20, a_pair=20)
    found, _ = mined(first=1, last=20, a_pair=3, draw="random")
    assert all(
        set(some) <= set(window) for some, window in zip(found.rows.tolist(), hardest.rows.tolist(), strict=True)
    )
    assert not np.array_equal(found.rows, hardest.rows[:, :3]) and np.all(np.diff(found.scores, axis=1) <= 0)
    again = tmp_path / "again.parquet"
    settings = {"first": 1, "last": 20, "a_pair": 3, "draw": "random", "near_copies": False}
    for seed, same in ((5, True), (6, False)):
        mine(pairs, Dense(encoder), "1", again, tmp_path / f"work{seed}", seed, **settings)
        assert np.array_equal(negatives.read(again, pairs).rows, found.rows) == same


BODY = (
    "    total = width * height\n    for border in borders:\n        total += border.size * scale\n    return total\n"
)


def test_what_is_likely_to_be_right_is_no_negative(tmp_path: Path):
    queries = ["area of the box", "area of the box", "box area", "size of the box", "box area volume", "other"]
    codes = [
        f"def box_area(width, height, borders, scale):\n{BODY}",
        "def area_again(box):\n    return box.area\n",  # the same query
        f"def box_area(width, height, borders, scale):\n{BODY}\n",  # the same text
        f"def box_area(width, height, borders, scale):\n    # the box\n{BODY}",  # a near copy
        "def volume(box):\n    return box.area * box.depth\n",
        "def parse(text):\n    return text.split()\n",
    ]
    path = write(tmp_path / "p.parquet", queries, codes)
    facts = mine(path, WORDS, "1", tmp_path / "n.parquet", tmp_path / "work", 0, first=1, last=9, a_pair=9)
    found = negatives.read(tmp_path / "n.parquet", path)
    assert found.rows[0][found.rows[0] != NO_ROW].tolist() == [4]
    assert facts["same_text"] == 2 and facts["same_query"] == 2 and facts["near_copy"] >= 2
    assert (
        sum(facts[each] for each in ("same_text", "same_query", "margin", "near_copy", "not_wanted", "taken"))
        == (facts["hits"])
    )
    again = {"first": 1, "last": 9, "a_pair": 9, "near_copies": False}
    mine(path, WORDS, "1", tmp_path / "m.parquet", tmp_path / "work", 0, **again)
    near = negatives.read(tmp_path / "m.parquet", path).rows[0]
    assert set(near[near != NO_ROW].tolist()) == {3, 4}


def test_a_pair_without_a_side_keeps_its_row_and_is_nobodys_negative(tmp_path: Path):
    path = write(
        tmp_path / "p.parquet", ["box area", "", "area of a box"], ["def area(box): 1", "def area(box): 2", "area"]
    )
    mine(path, WORDS, "1", tmp_path / "n.parquet", tmp_path / "work", 0, first=1, last=9, a_pair=2)
    found = negatives.read(tmp_path / "n.parquet", path)
    assert found.rows[:, 0].tolist() == [2, NO_ROW, 0] and found.pair_ids.to_pylist() == ["id0", "id1", "id2"]


def test_a_killed_run_goes_on_where_it_was(mined, encoder: DualEncoder, monkeypatch: pytest.MonkeyPatch):
    from coderet.training import negative_mining

    monkeypatch.setattr(negative_mining, "QUERIES_AT_A_TIME", 25)
    whole, facts = mined(first=1, a_pair=3)
    asked: list[int] = []
    usual = DualEncoder.encode_queries

    def counted(self: DualEncoder, texts: pa.ChunkedArray) -> np.ndarray:
        if len(asked) == 1:
            raise KeyboardInterrupt
        asked.append(len(texts))
        return usual(self, texts)

    with monkeypatch.context() as patch:
        patch.setattr(DualEncoder, "encode_queries", counted)
        with pytest.raises(KeyboardInterrupt):
            mined(first=1, a_pair=4)
    asked.clear()
    with monkeypatch.context() as patch:
        patch.setattr(DualEncoder, "encode_queries", lambda *given: asked.append(len(given[1])) or usual(*given))
        patch.setattr(DualEncoder, "encode_documents", lambda self, texts: pytest.fail("the codes were encoded again"))
        found, _ = mined(first=1, a_pair=4)
    assert asked == [25, 10] and np.array_equal(found.rows[:, :3], whole.rows) and facts["taken"] == 180


def test_a_teacher_scores_anew_and_cuts_what_it_holds_for_right(
    mined, pairs: Path, tokenizers_folder: Path, tmp_path: Path
):
    found, _ = mined(first=1, a_pair=6)
    torch.manual_seed(2)
    teacher = DualEncoder.build(
        load_vocabulary(tokenizers_folder), {"kind": "nbow", "dim": 5, "normalise": False}
    ).eval()
    facts = rescored(tmp_path / "out.parquet", pairs, teacher, tmp_path / "t.parquet", tmp_path / "w", margin=0.05)
    judged = negatives.read(tmp_path / "t.parquet", pairs)
    table = pq.read_table(pairs)
    queries, codes = teacher.encode_queries(table["query"]), teacher.encode_documents(table["code"])
    wanted = (queries / np.linalg.norm(queries, axis=1)[:, None]) @ (codes / np.linalg.norm(codes, axis=1)[:, None]).T
    assert np.allclose(judged.own, wanted.diagonal(), atol=1e-6)
    for row in range(60):
        stays = [each for each in found.rows[row] if wanted[row, each] <= wanted[row, row] - 0.05]
        assert sorted(stays) == sorted(each for each in judged.rows[row].tolist() if each != NO_ROW)
        there = judged.rows[row] != NO_ROW
        assert np.allclose(judged.scores[row][there], wanted[row, judged.rows[row][there]], atol=1e-6)
        assert np.all(np.diff(judged.scores[row][there]) <= 0)
    assert facts["above_own"] > 0 and facts["taken"] + facts["above_own"] == int((found.rows != NO_ROW).sum())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"first": 0}, "negatives.first is 0; wanted a number from 1"),
        ({"first": 5, "last": 4}, "negatives.last is 4; wanted a number from 5"),
        ({"a_pair": 0}, "negatives.a_pair is 0"),
        ({"factor": 1.5}, "negatives.factor is 1.5; wanted a number from 0 to 1"),
        ({"margin": -0.1}, "negatives.margin is -0.1"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(mined, settings: dict[str, Any], said: str):
    with pytest.raises(BadValue, match=said):
        mined(**settings)


def test_negatives_of_other_pairs_or_a_broken_file_are_refused(mined, pairs: Path, tmp_path: Path):
    mined()
    path = tmp_path / "out.parquet"
    table = pq.read_table(pairs)
    pq.write_table(table.slice(1), pairs)
    with pytest.raises(DataError, match=r"was mined for other pairs than those of.*run: dvc repro negatives@out"):
        negatives.read(path, pairs)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="cut short or is no Parquet file"):
        negatives.read(path, pairs)
    with pytest.raises(DataError, match=r"none\.parquet is missing; name it in grid\.negatives"):
        negatives.read(tmp_path / "none.parquet", pairs)
    with pytest.raises(DataError, match="has columns"):
        negatives.read(pairs, pairs)


@pytest.fixture
def project(tmp_path: Path, write_pairs: Callable[..., Path], encoder: DualEncoder) -> Path:
    """A folder with params, pairs, a tokenizer and a retriever that mines."""
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    write_pairs().rename(folder / "data" / "pairs")
    train_vocabulary(folder / "data" / "pairs", folder / "models" / "tokenizers", kind="words", size=200, min_count=1)
    retrievers.save(Dense(encoder), "dense", folder / "models" / "retrievers" / "minilm")
    params: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    params["negatives"] = {"minilm": {"first": 1, "last": 30, "a_pair": 4, "near_copies": False}}
    params["rescorers"] = {"minilm": {"margin": 0.0}}
    params["grid"] |= {"trained": ["minilm-code"], "trained_on_negatives": ["nbow"]}
    params["grid"] |= {"negatives": ["minilm"], "rescorers": ["minilm"]}
    fit = params["retrievers"]["nbow"]["fit"]
    fit["encoder"]["dim"] = 16
    fit["batches"]["size"] = 8
    fit["training"] |= {"epochs": 2, "learning_rate": 0.02}
    fit["pairs"] = {"negatives": "minilm+minilm", "negatives_a_pair": 2}
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    return folder


def call(folder: Path, script: str, *names: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**kept, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, ROOT / "train" / script, *names], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_stages_mine_rescore_and_learn(project: Path):
    call(project, "negatives.py", "minilm")
    call(project, "rescore.py", "minilm", "minilm")
    results = project / "train" / "results"
    first, second = (
        json.loads((results / "negatives" / f"{name}.json").read_text()) for name in ("minilm", "minilm+minilm")
    )
    assert first["taken"] == 60 * 4 and first["settings"]["a_pair"] == 4 and first["seconds"] > 0
    assert second["taken"] + second["above_own"] == 60 * 4 and second["above_own"] > 0
    call(project, "fit.py", "nbow")
    facts = json.loads((results / "nbow.json").read_text())
    assert facts["settings"]["pairs"]["negatives"] == "minilm+minilm" and "minilm+minilm.parquet" in facts["data"]
    assert facts["pairs_without_negatives"] == second["pairs_without"]
