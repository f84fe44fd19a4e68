import json

import pytest

from coderet.benchmarks import benchmark, sandbox, selfchecking
from coderet.benchmarks.answering import Document
from coderet.benchmarks.answers import ds1000

CONTEXT = '''
def generate_test_case(number):
    return [2, 1], [1, 2]


def exec_test(result, ans):
    return int(result == ans)


exec_context = r"""
values = test_input
%s
"""


def test_execution(solution: str):
    code = exec_context.replace("[insert]", solution)
    test_input, expected = generate_test_case(1)
    test_env = {"test_input": test_input}
    exec(code, test_env)
    assert exec_test(test_env["result"], expected)


def test_string(solution: str):
    assert "for" not in solution
'''
LINE = {
    "prompt": "A:\n<code>\nvalues = [2, 1]\n</code>\nresult = ... # put it here\nBEGIN SOLUTION\n<code>\n",
    "reference_code": "result = sorted(values)",
    "code_context": CONTEXT % "[insert]",
    "library": "Pandas",
}
BODY = LINE | {
    "prompt": "def solve(values):\n    # return the solution in this function\n    ### BEGIN SOLUTION",
    "reference_code": "    ### BEGIN SOLUTION\n    result = sorted(values)\n    ### END SOLUTION\n\n    return result",
    "code_context": CONTEXT % "def solve(values):\n[insert]\nresult = solve(values)",
}


def run(problem, completion, layout="chat"):
    (program,) = ds1000.programs(problem, ds1000.read(problem, completion, layout))
    own = program._replace(environment="", modules=())
    ((_, outcome),) = sandbox.run([own])
    return outcome


def test_the_prompt_breaks_off_where_the_solution_begins():
    documents = [Document("1", "python.sorted", "Sorts.")]
    assert ds1000.prompt(LINE, documents, "base").after.endswith(LINE["prompt"])
    chat = ds1000.prompt(BODY, documents, "chat")
    assert "into the body of solve, indented by four blanks" in chat.after and chat.start == "```python\n"
    paper = ds1000.paper_prompt(LINE, documents, "chat")
    assert paper.documents == ("Sorts.",) and paper.after == "\n\n\n" + LINE["prompt"]
    assert ds1000.paper_prompt(LINE, [], "chat").before == ""


@pytest.mark.parametrize(
    "completion",
    [
        "result = sorted(values)\n</code>\nEND SOLUTION\nanything",
        "result = sorted(values)\n# SOLUTION END\n",
        "```python\nresult = sorted(values)\n```",
    ],
)
def test_a_continuation_ends_at_a_mark(completion):
    assert ds1000.read(LINE, completion, "base").code.strip() == "result = sorted(values)"


def test_the_code_tag_that_the_prompt_has_is_a_fence():
    found = ds1000.read(LINE, "Sure:\n<code>\nresult = sorted(values)\n</code>", "chat")
    assert found.code.strip() == "result = sorted(values)" and found.form == "code tag"


@pytest.mark.parametrize(
    "completion",
    [
        "    return sorted(values)\n```",
        "return sorted(values)\n```",
        "def solve(values):\n    return sorted(values)\n```",
        "import os\n\ndef solve(values):\n    result = sorted(values)\n    return result\n```",
    ],
)
def test_an_answer_is_moved_into_the_body_that_it_belongs_to(completion):
    assert run(BODY, completion).verdict == "passed"


def test_the_reference_passes_and_a_statement_that_does_nothing_does_not():
    for problem in (LINE, BODY):
        assert run(problem, ds1000.reference(problem)).verdict == "passed"
        assert run(problem, ds1000.negative(problem)).verdict == "failed"


def test_a_solution_may_go_on_in_a_body_that_the_script_began():
    problem = BODY | {
        "prompt": BODY["prompt"].replace("    # return", "    more = 0\n    # return"),
        "reference_code": "    result = sorted(values)\n\n    return result",
        "code_context": CONTEXT % "def solve(values):\n    more = 0\n[insert]\nresult = solve(values)",
    }
    assert run(problem, ds1000.reference(problem)).verdict == "passed"
    behind = LINE | {"code_context": CONTEXT % "def first(values):\n    return values[0]\n[insert]"}
    assert run(behind, ds1000.reference(behind)).verdict == "passed"


def test_a_script_may_go_on_in_the_solutions_last_line():
    problem = LINE | {"code_context": CONTEXT % "[insert].copy()"}
    assert run(problem, ds1000.reference(problem)).verdict == "passed"


def test_the_test_looks_at_the_words_of_a_solution_too():
    assert run(LINE, "result = [each for each in sorted(values)]\n```").verdict == "failed"


def test_an_answer_that_ends_early_does_not_pass():
    assert run(LINE, "import os\nos._exit(0)\n```").verdict != "passed"
    assert run(LINE, "raise SystemExit(0)\n```").verdict != "passed"


def test_nothing_is_no_code():
    assert ds1000.read(LINE, "", "base").form == "nothing"
    assert run(LINE, "```").verdict == "no code"


def test_a_task_of_each_library_passes_by_its_own_answer_in_the_pinned_environment(real_data):
    try:
        sandbox.interpreter(ds1000.ENVIRONMENT)
    except sandbox.SandboxError as error:
        pytest.skip(str(error))
    (draft,) = benchmark("ds1000-devdocs").collect(real_data)
    tasks = {row["id"]: json.loads(row["problem"]) for row in draft.problems.to_pylist()}
    first = {task["library"]: name for name, task in reversed(tasks.items())}
    assert first.keys() == ds1000.MODULES.keys()
    report = selfchecking.check(
        ds1000.ANSWERING, {name: tasks[name] for name in first.values()}, lambda programs: sandbox.run(programs, 2)
    )
    assert (report["passed"], report["failed"], report["negative_passed"]) == (7, {}, [])
