"""HumanEval's sample through refer, generate, judge and compare, answered by the generator without a model."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from extractive_answers import answer, project, stage

from coderet import paths, reports
from coderet.corpora import answered, store
from coderet.records import DataError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made(real_data, tmp_path_factory):
    root = tmp_path_factory.mktemp("answers")
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    raw["grid"] |= {"benchmarks": ["humaneval"], "read": [], "contexts": ["none", "oracle"]}
    project(root, raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        paths.raw("humaneval").parent.mkdir(parents=True)
        paths.raw("humaneval").symlink_to(real_data / "humaneval")
        answer("humaneval", ["none", "oracle"])
    return root


@pytest.fixture
def here(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def judged(context):
    return store.read_json(paths.result("humaneval", f"{context}+extractive", "judge"))


def test_the_canonical_document_solves_every_problem_and_no_context_none(here):
    oracle = judged("oracle")
    assert oracle["all"]["pass@1"]["value"] == 1.0
    assert oracle["datasets"]["humaneval-40"]["queries"] == 40
    assert oracle["told"]["humaneval-40"]["verdicts"] == {"passed": 40}
    none = judged("none")
    assert none["all"]["pass@1"]["value"] == 0.0
    assert none["told"]["humaneval-40"] == {"verdicts": {"no code": 40}, "forms": {"nothing": 40}}


def test_every_step_is_kept(here):
    folder = paths.completions("humaneval", "oracle+extractive")
    prompts = answered.read(answered.prompts_path(folder, "humaneval-40"), answered.PROMPTS).to_pylist()
    assert len(prompts) == 40
    first = prompts[0]
    assert [each["id"] for each in first["documents"]] == [f"{first['problem_id']}_code"]
    assert first["documents"][0]["kept"] == first["documents"][0]["tokens"] > 0 and first["context"] in first["user"]
    samples = answered.samples_path(paths.scores("humaneval", "oracle+extractive"), "humaneval-40")
    leaks = answered.read(samples, answered.SAMPLES)["leak"].to_pylist()
    assert set(leaks) - {None} == {1.0} and leaks.count(None) < 4  # of those few without a line that tells


KILLED = """
import os
import runpy
import signal
import sys

from coderet.generators import completions

keep = completions.Store.add


def kept(store, key, completion):
    found = keep(store, key, completion)
    if len(store) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return found


completions.Store.add = kept
runpy.run_path(sys.argv[1])["main"]("humaneval", "oracle", "extractive")
"""


def test_a_stage_that_is_killed_half_way_goes_on_and_ends_as_one_that_was_not(here, tmp_path, monkeypatch):
    shutil.copytree(here, tmp_path, symlinks=True, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    folder = paths.completions("humaneval", "oracle+extractive")
    shutil.rmtree(folder)
    shutil.rmtree(paths.WORK / "completions")
    (tmp_path / "killed.py").write_text(KILLED)
    command = [sys.executable, "killed.py", str(ROOT / "eval/generate.py"), "17"]
    assert subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}).returncode == -signal.SIGKILL
    assert not folder.exists()  # nothing that counts as done
    stage("eval/generate", "humaneval", "oracle", "extractive")
    told = store.read_json(paths.result("humaneval", "oracle+extractive", "generate"))["datasets"]["humaneval-40"]
    assert (told["kept"], told["made"]) == (17, 23)  # and nothing that was done is lost
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in (here / folder).iterdir())
    assert all((folder / name).read_bytes() == (here / folder / name).read_bytes() for name in names)


def test_the_report_lays_them_side_by_side(here):
    read = reports.read_answers([("humaneval", each, "extractive") for each in ("none", "oracle")])
    change = read.changes("humaneval-40", "humaneval")["oracle+extractive"]
    assert (len(change.gains), change.losses, change.value) == (40, (), 1.0) and change.p < 0.001


def test_generating_again_asks_for_nothing_and_changes_nothing(here):
    folder = paths.completions("humaneval", "oracle+extractive")
    before = store.identity(folder)
    stage("eval/generate", "humaneval", "oracle", "extractive")
    assert store.identity(folder) == before
    told = store.read_json(paths.result("humaneval", "oracle+extractive", "generate"))["datasets"]["humaneval-40"]
    assert (told["kept"], told["made"]) == (40, 0)


def test_a_problem_that_is_left_out_is_neither_asked_nor_counted(here):
    raw = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    before = Path("params.yaml").read_bytes()
    raw["answering"]["left_out"] = {"humaneval-40": ["HumanEval/1"]}
    Path("params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    try:
        stage("eval/generate", "humaneval", "none", "extractive")
        stage("eval/judge", "humaneval", "none", "extractive")
        assert judged("none")["datasets"]["humaneval-40"]["queries"] == 39
        raw["answering"]["left_out"] = {"humaneval-40": ["HumanEval/0"]}
        Path("params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
        with pytest.raises(DataError, match=r"left_out\.humaneval-40 names 'HumanEval/0', which is no problem of it"):
            stage("eval/generate", "humaneval", "none", "extractive")
    finally:
        Path("params.yaml").write_bytes(before)
