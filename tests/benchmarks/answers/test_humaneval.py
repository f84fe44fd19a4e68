import pytest

from coderet.benchmarks import humaneval as benchmark
from coderet.benchmarks import sandbox
from coderet.benchmarks.answering import Document
from coderet.benchmarks.answers import humaneval

PROBLEM = {
    "task_id": "HumanEval/0",
    "prompt": "import math\n\n\ndef helper(x):\n    return x\n\n\ndef double(x):\n    '''Twice x.'''\n",
    "entry_point": "double",
    "canonical_solution": "    return 2 * helper(x)\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}
DOCUMENTS = [Document("a", "", "def triple(x):\n    return 3 * x\n")]


def verdict(code):
    (outcome,) = sandbox.run(humaneval.programs(PROBLEM, humaneval.ANSWERING.read(PROBLEM, code, "chat")))
    return outcome[1].verdict


def test_the_whole_function_or_its_body_is_an_answer_and_helpers_of_the_prompt_are_there():
    whole = "```python\ndef double(x):\n    return 2 * helper(x)\n```"
    body = humaneval.read(PROBLEM, "    return 2 * helper(x)\n\n\ndef other():\n    pass", "base")
    assert body.code.rstrip() == "    return 2 * helper(x)"
    for source in (
        humaneval.source(PROBLEM, humaneval.read(PROBLEM, whole, "chat").code),
        humaneval.source(PROBLEM, body.code),
    ):
        names = {}
        exec(source + PROBLEM["test"], names)
        names["check"](names["double"])


def test_a_model_that_continues_may_open_a_fence_of_its_own():
    whole = "```python\ndef double(x):\n    return 2 * helper(x)\n```\nIt doubles."
    found = humaneval.read(PROBLEM, whole, "base")
    assert (found.code.strip(), found.form) == ("def double(x):\n    return 2 * helper(x)", "fence")


def test_reference_passes_and_negative_fails():
    assert verdict(humaneval.reference(PROBLEM)) == "passed"
    assert verdict(humaneval.negative(PROBLEM)) == "failed"


@pytest.mark.parametrize("layout", ["chat", "base"])
@pytest.mark.parametrize("answering", [humaneval.ANSWERING, humaneval.PAPER], ids=["own", "paper"])
def test_the_question_is_whole_and_documents_stand_before_it(answering, layout):
    parts = answering.prompt(PROBLEM, DOCUMENTS, layout)
    assert parts.documents[0].strip() == DOCUMENTS[0].text.strip()
    assert PROBLEM["prompt"].strip() in parts.after and parts.stop
    alone = answering.prompt(PROBLEM, [], layout)
    assert alone.documents == () and "example" not in alone.after and "may help" not in alone.before


def test_the_papers_layout_is_context_instruction_and_an_open_fence():
    parts = humaneval.paper_prompt(PROBLEM, DOCUMENTS, "base")
    assert parts.before == "" and parts.after.startswith("\n\nPlease complete")
    assert parts.after.endswith(PROBLEM["prompt"].strip()) and parts.after.count("```") == 1


def test_a_closing_fence_ends_a_base_models_answer():
    """T21: it stayed in the program, a syntax error."""
    assert humaneval.paper_read(PROBLEM, "    return 2 * x\n```\nDone.", "base").code == "    return 2 * x"


def test_the_sample_is_the_40_problems_whose_ids_have_the_smallest_hashes(real_data):
    import hashlib

    ids = [each["task_id"] for each in benchmark.problems(real_data)]
    drawn = sorted(ids, key=lambda own: hashlib.sha256(own.encode()).hexdigest())[:40]
    (draft,) = benchmark.collect(real_data, posed="humaneval-40")
    assert set(draft.problems["id"].to_pylist()) == set(drawn) and draft.posed == "humaneval-40"
    assert draft.queries.num_rows == 164
