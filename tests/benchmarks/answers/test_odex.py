import json

import pytest

from coderet.benchmarks import benchmark, sandbox, selfchecking
from coderet.benchmarks.answering import Document
from coderet.benchmarks.answers import odex

PLAIN = {
    "intent": "sort list `x`",
    "prompt": "def f_1(x):\n\treturn ",
    "suffix": "",
    "canonical_solution": "sorted(x)",
    "test_start": "\nimport os\n\ndef check(candidate):",
    "test": ["\n    assert candidate([2, 1]) == [1, 2]\n", "\n    assert candidate([]) == []\n"],
    "entry_point": "f_1",
    "library": [],
}
SUFFIXED = PLAIN | {
    "intent": "sort list `x` in its place",
    "prompt": "def f_1(x):\n\t",
    "suffix": "\n\treturn x",
    "canonical_solution": "x.sort()",
}
DOCUMENTS = [Document("7", "python.list#sort", "Sorts the list.\n")]


def test_a_chat_model_is_shown_the_function_with_its_hole_and_what_comes_behind():
    parts = odex.prompt(SUFFIXED, DOCUMENTS, "chat")
    assert parts.documents == ("python.list#sort\nSorts the list.\n",)
    assert (
        '```python\ndef f_1(x):\n    """sort list `x` in its place"""\n    ...  # your code\n    return x\n```'
        in parts.after
    )
    assert parts.start == "```python\n"


def test_a_model_that_continues_goes_on_where_the_hole_begins():
    parts = odex.prompt(PLAIN, [], "base")
    assert (parts.before, parts.documents, parts.after) == ("", (), "")
    assert parts.start == 'def f_1(x):\n    """sort list `x`"""\n    return '


def test_the_paper_refers_to_the_documentation_only_where_there_is_some():
    assert odex.paper_prompt(PLAIN, [], "chat").before == ""
    parts = odex.paper_prompt(PLAIN, DOCUMENTS, "chat")
    assert "documentation" in parts.before and parts.documents == ("Sorts the list.\n",)


@pytest.mark.parametrize(
    "completion",
    [
        "sorted(x)\n\nprint(f_1([1]))",
        "sorted(x)\ndef another():\n    pass",
    ],
)
def test_a_continuation_ends_where_something_else_begins(completion):
    assert odex.read(PLAIN, completion, "base").code == "def f_1(x):\n    return sorted(x)\n"
    assert odex.read_paper(PLAIN, completion, "base").code == "def f_1(x):\n    return sorted(x)\n"


def test_the_suffix_stands_behind_a_body():
    assert odex.read(SUFFIXED, "x.sort()\n", "base").code == "def f_1(x):\n    x.sort()\n    return x\n"


def test_a_function_that_an_answer_brings_whole_is_all_there_is():
    code = odex.read(SUFFIXED, "import os\n\ndef f_1(x):\n    x.sort()\n    return x\n```\nThis sorts.", "chat").code
    assert code == "import os\n\ndef f_1(x):\n    x.sort()\n    return x\n"


@pytest.mark.parametrize("body", ["sorted(x)", "return sorted(x)", "    return sorted(x)", "y = sorted(x)\nreturn y"])
def test_a_body_alone_is_put_into_the_function(body):
    names: dict = {}
    exec(odex.read(PLAIN, f"```python\n{body}\n```", "chat").code, names)
    assert names["f_1"]([2, 1]) == [1, 2]


def test_nothing_is_no_code():
    for layout in ("chat", "base"):
        assert odex.read(PLAIN, "  \n", layout).form == "nothing"
        assert odex.read_paper(PLAIN, "", layout).code == ""


def test_tabs_indent_by_four_and_stay_in_strings():
    mixed = SUFFIXED | {"canonical_solution": "\n    y = 'a\tb'\n"}
    assert odex.reference(mixed) == "```python\ndef f_1(x):\n    \n    y = 'a\tb'\n\n    return x\n```"


def test_a_program_is_the_answer_and_what_the_tests_bring_then_all_assertions():
    (program,) = odex.programs(PLAIN, odex.read(PLAIN, odex.reference(PLAIN), "chat"))
    assert program.source == "def f_1(x):\n    return sorted(x)\n\n\nimport os\n\n"
    assert program.check.startswith("def check(candidate):\n") and program.check.endswith("check(f_1)\n")
    assert program.check.count("assert") == 2 and program.environment == "odex"


def test_mocks_that_tests_put_into_modules_are_taken_out_again():
    mocking = PLAIN | {"test": ["\n    os.getcwd = len\n    assert candidate([1]) == [1]\n"]}
    (program,) = odex.programs(mocking, odex.read(mocking, odex.reference(mocking), "chat"))
    names: dict = {}
    exec(program.source, names)
    own = names["os"].getcwd
    exec(program.check, names)
    assert names["os"].getcwd is own


def test_a_task_without_tests_has_no_program():
    assert odex.programs(PLAIN | {"test": []}, odex.read(PLAIN, odex.reference(PLAIN), "chat")) == []


def test_reference_solutions_pass_but_the_seven_that_are_known(real_data):
    try:
        sandbox.interpreter("odex")
    except sandbox.SandboxError as error:
        pytest.skip(str(error))
    (draft,) = benchmark("odex-devdocs").collect(real_data)
    problems = {row["id"]: json.loads(row["problem"]) for row in draft.problems.to_pylist()}
    report = selfchecking.check(odex.ANSWERING, problems, lambda programs: sandbox.run(programs, 2))
    assert report["passed"] == 432 and report["failed"].keys() == odex.KNOWN_FAILURES.keys()
    assert set(report["negative_passed"]) == set(odex.WEAK) and report["negative_failed"] == 421
