import json

import pytest

from coderet.benchmarks import benchmark, sandbox, selfchecking
from coderet.benchmarks.answering import Document
from coderet.benchmarks.answers import repoeval

FILE = "def double(number):\n    # as it says\n    return 2 * number\n\n\ndef half(number):\n    return number / 2\n"
TEST = "from pack.long import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
BODY = {
    "prompt": "def double(number):",
    "ground_truth": "    # as it says\n    return 2 * number\n",
    "repository": "owner_project",
    "path": "pack/long.py",
    "line": 1,
    "lines": 2,
    "function_name": "double",
    "tests": ["pack/long_test.py"],
    "tree": repoeval.packed({"pack/long.py": FILE, "pack/long_test.py": TEST, "pack/__init__.py": ""}),
}
LINE = {"prompt": "x = 1\n", "ground_truth": "y = x + 1\n"}


def read(completion, layout="chat", problem=BODY):
    return repoeval.read(problem, completion, layout).code


def test_windows_stand_before_the_file_which_breaks_off():
    windows = [Document("w", "owner_project-pack-other.py", "a = 1\n\nb = 2")]
    chat = repoeval.prompt(BODY, windows, "chat")
    assert "the body of double" in chat.after and chat.documents == ("# owner_project-pack-other.py\na = 1\n\nb = 2",)
    base = repoeval.prompt(BODY, windows, "base")
    assert base.documents == ("# # owner_project-pack-other.py\n# a = 1\n#\n# b = 2\n",)
    assert base.after.endswith("\n\ndef double(number):\n")
    paper = repoeval.paper_prompt(BODY, windows, "chat")
    assert "\n# owner_project-pack-other.py\n" in paper.documents[0] and paper.after == "\n\ndef double(number):\n"


def test_a_continuation_ends_where_its_lines_come_out_of_the_body():
    completion = "    if number:\n        return 2 * number\n\n    return 0\n\ndef half(n):\n    return 1\n"
    assert read(completion, "base") == "    if number:\n        return 2 * number\n\n    return 0"


@pytest.mark.parametrize(
    "answer",
    [
        "    return 2 * number\n```",
        "return 2 * number\n```",
        "```python\ndef double(number):\n    return 2 * number\n```\nIt doubles.",
        "class A:\n  def double(self, number):\n    return 2 * number\n```",
        "def double(number): return 2 * number\n```",
    ],
)
def test_a_body_is_moved_under_its_head_however_it_stood(answer):
    assert read(answer) == "    return 2 * number"


def test_nothing_is_no_code():
    assert repoeval.read(BODY, "", "base").form == "nothing" and repoeval.read(BODY, "```", "chat").code == ""


def test_the_answer_takes_the_place_of_the_lines_of_the_body_by_their_numbers():
    assert repoeval.replaced(FILE, 1, 2, "    return 0").startswith("def double(number):\n    return 0\n\n\ndef half")
    assert repoeval.replaced("a\nb", 1, 1, "c") == "a\nc\n"


def test_a_program_is_pytest_over_the_tests_of_the_task():
    (program,) = repoeval.programs(BODY, repoeval.read(BODY, repoeval.reference(BODY), "chat"))
    assert program.files["pack/long.py"] == FILE.encode() and program.environment == "repoeval"
    assert program.command[:3] == ("{python}", "-m", "pytest") and program.command[-1] == "pack/long_test.py"


@pytest.mark.parametrize(
    ("tests", "verdict"),
    [(TEST, "passed"), ("", "failed"), ("import os\n\nos._exit(0)\n", "failed")],
)
def test_only_tests_that_ran_to_their_end_pass(tests, verdict):
    problem = BODY | {
        "tree": repoeval.packed({"pack/long.py": FILE, "pack/long_test.py": tests, "pack/__init__.py": ""})
    }
    (program,) = repoeval.programs(problem, repoeval.read(problem, repoeval.reference(problem), "chat"))
    ((_, outcome),) = sandbox.run([program._replace(environment="")])
    assert outcome.verdict == verdict


def test_a_body_that_does_nothing_fails():
    (program,) = repoeval.programs(BODY, repoeval.read(BODY, repoeval.negative(BODY), "chat"))
    ((_, outcome),) = sandbox.run([program._replace(environment="")])
    assert outcome.verdict == "failed"


def test_a_task_whose_tests_are_not_there_has_no_program():
    assert repoeval.programs(BODY | {"tests": []}, repoeval.read(BODY, repoeval.reference(BODY), "chat")) == []


def test_the_nearest_tests_are_those_of_the_same_module():
    tests = ["a/rasp_test.py", "a/integration_test.py", "a/lib_test.py"]
    assert repoeval.near(tests, "a/rasp.py") == ["a/rasp_test.py"]
    assert repoeval.near(tests, "a/other.py") == ["a/rasp_test.py", "a/lib_test.py"]
    assert repoeval.near(["b/integration_test.py"], "a/other.py") == ["b/integration_test.py"]


@pytest.mark.parametrize(
    ("answer", "exact", "similarity"),
    [("y = x + 1\nz = 3\n", 1.0, 1.0), ("\n  y = x + 1", 1.0, 1.0), ("y = x - 1", 0.0, 8 / 9), ("", 0.0, 0.0)],
)
def test_a_line_is_compared_with_as_many_lines_as_the_reference_has(answer, exact, similarity):
    graded = repoeval.grade(LINE, repoeval.read(LINE, answer, "base"))
    assert graded == {"exact_match": exact, "edit_similarity": pytest.approx(similarity)}


def test_letters_to_change_until_one_word_is_the_other():
    assert repoeval.edit_distance("kitten", "sitting") == 3
    assert repoeval.edit_distance("", "abc") == 3 and repoeval.edit_distance("same", "same") == 0


def test_319_of_351_tasks_have_their_tests_but_redframes_whose_release_brings_them(real_data):
    drafts = {each.name: each for each in benchmark("repoeval-5").collect(real_data)}
    with_tests = {
        name: sum(bool(json.loads(row)["tests"]) for row in draft.problems["problem"].to_pylist())
        for name, draft in drafts.items()
    }
    release = (real_data / "repoeval" / "redframes-1.4.1.tar.gz").is_file()
    assert with_tests == {
        "amazon-science_patchcore-inspection": 0,
        "deepmind_tracr": 146,
        "google_lightweight_mmm": 64,
        "lucidrains_imagen-pytorch": 67,
        "maxhumber_redframes": 42 if release else 0,
    }


def test_redframes_passes_its_tests_with_its_own_code(real_data):
    try:
        sandbox.interpreter("repoeval")
    except sandbox.SandboxError as error:
        pytest.skip(str(error))
    if not (real_data / "repoeval" / "redframes-1.4.1.tar.gz").is_file():
        pytest.skip("no release of redframes beside the repositories; run: make data BENCHMARK=repoeval-5")
    (draft,) = (each for each in benchmark("repoeval-5").collect(real_data) if each.name == "maxhumber_redframes")
    problems = {row["id"]: json.loads(row["problem"]) for row in draft.problems.to_pylist()}
    report = selfchecking.check(repoeval.ANSWERING, problems, lambda programs: sandbox.run(programs, 2))
    assert report["passed"] == 42 and report["unknown_negatives"] == []
