import base64
import json
import pickle
import zlib

import pytest

from coderet.benchmarks import sandbox
from coderet.benchmarks.answering import Answer, Document
from coderet.benchmarks.answers import livecodebench as lcb
from coderet.records import DataError


def packed(tests):
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


STDIN = {
    "question_content": "Double the number.",
    "starter_code": "",
    "public_test_cases": json.dumps([{"input": "2\n", "output": "4", "testtype": "stdin"}]),
    "private_test_cases": packed([{"input": "-1\n", "output": "-2\n", "testtype": "stdin"}]),
    "metadata": "{}",
}
CALL = {
    "question_content": "Double each number.",
    "starter_code": "class Solution:\n    def double(self, numbers: List[int]) -> List[int]:\n        ",
    "public_test_cases": json.dumps([{"input": "[1, 2]", "output": "[2, 4]", "testtype": "functional"}]),
    "private_test_cases": "[]",
    "metadata": json.dumps({"func_name": "double"}),
}


def verdicts(problem, code, programs=lcb.programs):
    found = dict(sandbox.run(programs(problem, Answer(code, "fence"))))
    return [found[place].verdict for place in range(len(found))]


def test_the_question_then_how_to_answer_it():
    assert "standard input" in lcb.prompt(STDIN, [], "chat").after
    parts = lcb.prompt(CALL, [Document("1", "f", "def f(): 0")], "chat")
    assert "class Solution" in parts.after and parts.documents == ("def f(): 0",)
    assert "# YOUR CODE HERE" in lcb.paper_prompt(STDIN, [], "chat").after


def test_a_fenced_answer_keeps_its_lines_and_its_last_letters():
    code = "def f(ans):\n    return ans\n"
    assert lcb.paper_read(STDIN, f"Sure.\n```python\n{code}```", "chat").code == code
    assert lcb.paper_read(STDIN, code, "chat").code == code


def test_public_and_private_tests_judge_and_the_papers_public_ones_alone():
    assert verdicts(STDIN, "print(2 * int(input()))") == ["passed", "passed"]
    assert verdicts(STDIN, "print(abs(2 * int(input())))") == ["passed", "failed"]
    assert verdicts(STDIN, "print(abs(2 * int(input())))", lcb.public_programs) == ["passed"]


def test_a_program_may_read_all_at_once_and_end_itself():
    main = "def main():\n    print(2 * int(sys.stdin.read()))\n"
    code = f"import sys\n\n{main}\nif __name__ == '__main__':\n    sys.exit(main())"
    assert verdicts(STDIN, code) == ["passed", "passed"]


@pytest.mark.parametrize(
    "code",
    [
        "class Solution:\n    def double(self, given: List[int]):\n        return [2 * each for each in given]",
        "def double(numbers):\n    return tuple(2 * each for each in numbers)",
    ],
)
def test_a_method_or_a_function_is_called_and_tuples_count_as_lists(code):
    assert verdicts(CALL, code) == ["passed"]


def test_an_early_exit_from_a_function_is_no_pass():
    assert verdicts(CALL, "import os\n\ndef double(numbers):\n    os._exit(0)") == ["failed"]


def test_the_function_is_that_of_the_starter_code_where_metadata_names_none():
    code = "class Solution:\n    def double(self, numbers):\n        return [2 * each for each in numbers]"
    assert verdicts(CALL | {"metadata": "{}"}, code) == ["passed"]


@pytest.mark.parametrize(
    ("found", "same"),
    [("1 2 \n3\n\n", True), ("1.0 2\n3", True), ("1 2 3", False), ("1 2\n4", False), ("1 x\n3", False), ("", False)],
)
def test_lines_are_equal_but_for_blanks_or_the_same_numbers(found, same):
    assert lcb.same_output(found, "1 2\n3") is same


def test_a_pickle_that_is_more_than_a_text_is_refused():
    evil = base64.b64encode(zlib.compress(pickle.dumps(print))).decode()
    with pytest.raises(DataError, match="something else than one text"):
        lcb.tests(STDIN | {"private_test_cases": evil})
    with pytest.raises(DataError, match="cannot be unpacked"):
        lcb.tests(STDIN | {"private_test_cases": "!!!"})


def test_a_question_without_tests_has_no_program():
    assert lcb.programs(STDIN | {"public_test_cases": "", "private_test_cases": ""}, Answer("x = 1", "fence")) == []


def test_solutions_of_apps_pass_their_tests_of_both_styles(real_data):
    """The five problems that are given with theirs: three of stdin style, a method, and a function. Three of the 101
    solutions, all of 2287, are no Python: they return outside of a function."""
    folders = sorted((real_data / "apps" / "train").iterdir())
    programs, owners = [], []
    for folder in folders:
        problem, nothing = apps(folder)
        solutions = [each for each in json.loads((folder / "solutions.json").read_text()) if compiles(each)]
        for right, code in [*((True, each) for each in solutions[:5]), (False, nothing)]:
            own = lcb.programs(problem, Answer(code, "fence"))
            programs += own
            owners += [(folder.name, right)] * len(own)
    found = dict(sandbox.run(programs, 2))
    verdicts = {}
    for place, owner in enumerate(owners):
        verdicts.setdefault(owner, []).append(found[place].verdict)
    assert {name for name, _ in verdicts} == {"0001", "0111", "2287", "2404", "4184"}
    for (name, right), own in verdicts.items():
        assert set(own) == {"passed"} if right else "passed" not in own, (name, right, own)


def compiles(code):
    try:
        return bool(compile(code, "solution", "exec"))
    except SyntaxError:
        return False


def apps(folder):
    """A problem of APPS as LiveCodeBench has its own, and an answer to it that returns and writes nothing."""
    tests = json.loads((folder / "input_output.json").read_text())
    name = tests.get("fn_name")
    cases = [
        {
            "input": "\n".join(map(json.dumps, given)) if name else given,
            "output": json.dumps(wanted[0] if isinstance(wanted, list) and len(wanted) == 1 else wanted)
            if name
            else wanted,
            "testtype": "functional" if name else "stdin",
        }
        for given, wanted in zip(tests["inputs"], tests["outputs"], strict=True)
    ]
    half = len(cases) // 2
    starter = (folder / "starter_code.py").read_text() if (folder / "starter_code.py").exists() else ""
    problem = STDIN | {
        "starter_code": starter,
        "public_test_cases": json.dumps(cases[:half]),
        "private_test_cases": packed(cases[half:]),
        "metadata": json.dumps({"func_name": name} if name else {}),
    }
    return problem, f"def {name}(*given):\n    return None\n" if name else "import sys\nsys.stdin.read()\n"
