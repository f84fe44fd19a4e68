"""A set like HumanEval, of three problems, through collect, refer, generate, judge and compare; and the real ones.

Everything is the pipeline's own but the generator, which answers with the best document of its context.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import yaml
from extractive_answers import answer, project, stage

from coderet import paths
from coderet.benchmarks import humaneval
from coderet.corpora import answered, store

ROOT = Path(__file__).parents[2]
PROBLEMS = [
    {
        "task_id": f"HumanEval/{number}",
        "prompt": f'def {name}(a, b):\n    """The {said} of a and b."""\n',
        "entry_point": name,
        "canonical_solution": f"    return a {sign} b\n",
        "test": f"def check(candidate):\n    assert candidate(3, 2) == {value}\n",
    }
    for number, (name, said, sign, value) in enumerate(
        [("add", "sum", "+", 5), ("take", "difference", "-", 1), ("times", "product", "*", 6)]
    )
]
OTHERS = "oracle-without"
"""A context of the judgements without the problem's own answer, which leaves nothing."""


def folder_for(root, benchmark, contexts, **settings):
    """A folder with params for one benchmark."""
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    raw["benchmarks"][benchmark] |= settings
    raw["contexts"][OTHERS] = {"run": "oracle"}
    raw["grid"] |= {"benchmarks": [benchmark], "answered": [benchmark], "contexts": contexts, "read": []}
    raw["compare"]["permutations"] = 100
    project(root, raw)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root, contexts = tmp_path_factory.mktemp("three"), ["none", "oracle", OTHERS]
    content = "".join(json.dumps(each) + "\n" for each in PROBLEMS).encode()
    folder_for(root, "humaneval", contexts, posed="humaneval")
    (root / paths.raw("humaneval")).mkdir(parents=True)
    (root / paths.raw("humaneval") / humaneval.FILE).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setattr(humaneval, "SHA256", hashlib.sha256(content).hexdigest())
        patch.setattr(humaneval, "PROBLEMS", len(PROBLEMS))
        answer("humaneval", contexts)
        stage("eval/compare")
    return root


@pytest.fixture
def here(made, monkeypatch):
    monkeypatch.chdir(made)


def judged(benchmark, context):
    return store.read_json(paths.result(benchmark, f"{context}+extractive", "judge"))


@pytest.mark.parametrize(
    ("context", "value", "verdicts"),
    [("oracle", 1.0, {"passed": 3}), ("none", 0.0, {"no code": 3}), (OTHERS, 0.0, {"no code": 3})],
)
def test_what_a_context_holds_is_what_is_solved(here, context, value, verdicts):
    found = judged("humaneval", context)
    assert found["all"]["pass@1"]["value"] == value
    assert found["told"]["humaneval"]["verdicts"] == verdicts
    assert found["datasets"]["humaneval"]["queries"] == 3


def test_the_completion_of_a_problem_is_its_own_canonical_solution(here):
    path = answered.completions_path(paths.completions("humaneval", "oracle+extractive"), "humaneval")
    texts = {row["problem_id"]: row["text"] for row in answered.read(path, answered.COMPLETIONS).to_pylist()}
    assert {own: text.strip(" \n`") for own, text in texts.items()} == {
        each["task_id"]: each["canonical_solution"].strip() for each in PROBLEMS
    }


def test_compare_puts_every_context_into_report_and_summary(here):
    rows = store.read_json(paths.SUMMARY)["rows"]
    values = {row["system"]: row["value"] for row in rows if row["metric"] == "pass@1" and row["source"] == "measured"}
    assert values == {"oracle+extractive": 1.0, "none+extractive": 0.0, f"{OTHERS}+extractive": 0.0}
    text = paths.REPORT_MARKDOWN.read_text(encoding="utf-8")
    assert "| extractive | oracle | 5 of oracle, own answer kept | **100.0" in text
    assert (
        "- humaneval, oracle+extractive: +100.0 against no context, which chance explains too; 3 won, 0 lost." in text
    )


@pytest.mark.parametrize(("benchmark", "problems"), [("humaneval", 164), ("mbpp", 500)])
def test_the_canonical_documents_solve_every_problem_of_the_real_set(
    benchmark, problems, real_data, tmp_path, monkeypatch
):
    folder_for(tmp_path, benchmark, ["oracle"], **({"posed": "humaneval"} if benchmark == "humaneval" else {}))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(real_data / benchmark, paths.raw(benchmark) / benchmark)
    answer(benchmark, ["oracle"])
    found = judged(benchmark, "oracle")
    assert found["told"][benchmark]["verdicts"] == {"passed": problems}
    assert found["all"]["pass@1"]["value"] == 1.0
