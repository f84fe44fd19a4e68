"""What a model should not write and does: every task reads it, judges it, and lets it not pass."""

import base64
import json
import zlib

import pytest

from coderet.benchmarks import judging, sandbox
from coderet.benchmarks.answers import ds1000, humaneval, livecodebench, mbpp, odex, repoeval, swebench
from coderet.benchmarks.judging import Completed

FUNCTION = "def double(x):\n"
PYTEST = "from mine import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
TASKS = {
    "humaneval": (
        humaneval.ANSWERING,
        {
            "prompt": f"{FUNCTION}    '''Twice x.'''\n",
            "entry_point": "double",
            "canonical_solution": "    return 2 * x\n",
            "test": "def check(candidate):\n    assert candidate(2) == 4\n",
        },
    ),
    "mbpp": (
        mbpp.ANSWERING,
        {
            "task_id": 1,
            "text": "Double a number.",
            "code": f"{FUNCTION}    return 2 * x",
            "test_setup_code": "",
            "test_list": ["assert double(2) == 4"],
        },
    ),
    "odex": (
        odex.ANSWERING,
        {
            "intent": "double `x`",
            "prompt": f"{FUNCTION}\treturn ",
            "suffix": "",
            "canonical_solution": "2 * x",
            "test_start": "\n\ndef check(candidate):",
            "test": ["\n    assert candidate(2) == 4\n"],
            "entry_point": "double",
            "library": [],
        },
    ),
    "ds1000": (
        ds1000.ANSWERING,
        {
            "prompt": "Double x.\nBEGIN SOLUTION\n<code>\n",
            "reference_code": "y = 2 * x",
            "code_context": 'exec_context = r"""\nx = 2\n[insert]\n"""\n\n\ndef test_execution(solution):\n'
            '    names = {}\n    exec(exec_context.replace("[insert]", solution), names)\n    assert names["y"] == 4\n',
            "library": "Pandas",
        },
    ),
    "livecodebench": (
        livecodebench.ANSWERING,
        {
            "question_content": "Double the number.",
            "starter_code": "",
            "public_test_cases": json.dumps([{"input": "2\n", "output": "4", "testtype": "stdin"}]),
            "private_test_cases": "[]",
            "metadata": "{}",
        },
    ),
    "repoeval": (
        repoeval.ANSWERING,
        {
            "prompt": FUNCTION,
            "ground_truth": "    return 2 * x\n",
            "repository": "owner_project",
            "path": "mine.py",
            "line": 1,
            "lines": 1,
            "function_name": "double",
            "tests": ["mine_test.py"],
            "tree": base64.b64encode(
                zlib.compress(json.dumps({"mine.py": f"{FUNCTION}    return 2 * x\n", "mine_test.py": PYTEST}).encode())
            ).decode(),
        },
    ),
    "repoeval-line": (repoeval.COMPARED, {"prompt": "x = 1\n", "ground_truth": "y = x + 1\n"}),
    "swebench": (swebench.ANSWERING, {"instance_id": "o__p-1", "problem_statement": "x is wrong.", "patch": DIFF}),
}
NOTHING = {"nothing": "", "blanks": " \n\t\n", "an end token": "<|im_end|>", "an empty fence": "```python\n```"}
BAD = {
    "a hundred thousand tokens": "x = 1\n" * 33_334,
    "a hundred thousand in a fence that never closes": "```python\n" + "x = 1\n" * 33_334,
    "a hundred thousand brackets": "(" * 100_000,
    "a line of a hundred thousand words": "word " * 100_000,
    "fences and nothing else": "```python\n" * 20_000,
    "halves of letters": "```python\nx = '\ud800'\n```\udfff",
    "letters that are none": "\x00\x1b[0m\ufffe\u202e```python\nx = '\x00'\n```",
}


def run(programs):
    """Behind the wall, by the interpreter that is here."""
    return sandbox.run([each._replace(environment="", modules=()) for each in programs], 2)


def verdicts(task, completions, layout="chat"):
    answering, problem = TASKS[task]
    completed = [Completed(0, sample, text) for sample, text in enumerate(completions)]
    return [each.verdict for each in judging.judge(answering, [problem], completed, layout, run)]


@pytest.mark.parametrize("task", TASKS)
def test_the_reference_passes_so_that_a_fail_says_something(task):
    answering, problem = TASKS[task]
    if answering.reference is None:
        pytest.skip(f"{task} has no references")
    assert verdicts(task, [answering.reference(problem)]) == ["passed"]


@pytest.mark.parametrize("layout", ["chat", "base"])
@pytest.mark.parametrize("task", TASKS)
def test_an_answer_of_nothing_is_no_code(task, layout):
    assert verdicts(task, NOTHING.values(), layout) == ["no code"] * len(NOTHING)


@pytest.mark.parametrize("layout", ["chat", "base"])
@pytest.mark.parametrize("task", TASKS)
def test_what_no_model_should_write_is_judged_and_does_not_pass(task, layout):
    found = dict(zip(BAD, verdicts(task, BAD.values(), layout), strict=True))
    assert not {name: verdict for name, verdict in found.items() if verdict in ("passed", "no tests", "judge error")}
