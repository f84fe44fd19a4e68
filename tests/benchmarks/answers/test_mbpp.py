import json

from coderet.benchmarks import benchmark, sandbox, selfchecking
from coderet.benchmarks.answering import Document
from coderet.benchmarks.answers import mbpp
from coderet.corpora import store

PROBLEM = {
    "task_id": 11,
    "text": "Say how deep a tree is.",
    "code": "class Node:\r\n\tleft = None\r\ndef depth(node):\r\n\treturn 1 if node else 0",
    "test_setup_code": "root = Node()",
    "test_list": ["assert depth(root) == 1", "assert depth(None) == 0"],
}


def verdict(completion, read=mbpp.read):
    (outcome,) = sandbox.run(mbpp.programs(PROBLEM, read(PROBLEM, completion, "chat")))
    return outcome[1].verdict


def test_the_setup_comes_after_the_answer_whose_class_it_uses():
    assert verdict(mbpp.reference(PROBLEM)) == "passed"
    assert verdict(mbpp.negative(PROBLEM)) == "failed"


def test_a_model_that_continues_may_open_a_fence_of_its_own():
    found = mbpp.read(PROBLEM, "\n```\ndef depth(node):\n    return 0\n```\nIt is 0.", "base")
    assert (found.code.strip(), found.form) == ("def depth(node):\n    return 0", "bare fence")


def test_the_asserts_stand_in_the_prompt_and_name_the_function():
    parts = mbpp.prompt(PROBLEM, [Document("a", "", "def f(): pass")], "chat")
    assert "assert depth(None) == 0" in parts.after and parts.start == "```python\n"
    assert mbpp.tested(PROBLEM) == "depth"


def test_the_paper_cuts_before_it_reads_the_fence():
    """So an answer that prints before its fence closes loses what follows; ours keeps it."""
    completion = f"{mbpp.reference(PROBLEM)[:-4]}\nprint(depth(None))\nx = 1\n```"
    assert "x = 1" in mbpp.read(PROBLEM, completion, "chat").code
    assert "x = 1" not in mbpp.paper_read(PROBLEM, completion, "chat").code


def test_a_problem_without_asserts_has_no_program():
    assert mbpp.programs({**PROBLEM, "test_list": []}, mbpp.read(PROBLEM, "x = 1", "chat")) == []


def test_a_function_that_is_called_like_a_builtin_is_the_one_that_is_tested():
    task = {
        **PROBLEM,
        "code": "def sum(a, b):\n    return a * b",
        "test_setup_code": "",
        "test_list": ["assert sum(2, 3) == 6"],
    }
    programs = [
        mbpp.programs(task, mbpp.read(task, answer(task), "chat"))[0] for answer in (mbpp.reference, mbpp.negative)
    ]
    found = dict(sandbox.run(programs))
    assert (found[0].verdict, found[1].verdict) == ("passed", "failed")


def test_nothing_is_no_code():
    assert verdict("") == "no code"


def test_all_974_tasks_ask_in_a_benchmark_of_their_own_and_their_references_pass(real_data, tmp_path):
    store.write_benchmark(tmp_path / "b", benchmark("mbpp-974").collect(real_data))
    problems = store.read_problems(tmp_path / "b", "mbpp")
    assert len(problems) == 974 and problems.ids[0] == "MBPP/1"
    by_id = dict(zip(problems.ids, problems.contents, strict=True))
    found = selfchecking.outcomes(mbpp.ANSWERING, by_id, mbpp.reference, lambda programs: sandbox.run(programs, 2))
    assert {name: each for name, each in found.items() if each.verdict != "passed"} == {}


def test_the_mended_tasks_are_read_from_their_own_file(tmp_path):
    (tmp_path / "mbpp").mkdir()
    task = {
        "task_id": 2,
        "prompt": "Add.",
        "code": "def f(): 0",
        "test_imports": ["import math"],
        "test_list": ["assert 1"],
    }
    (tmp_path / "mbpp" / "sanitized-mbpp.json").write_text(json.dumps([task]))
    (draft,) = benchmark("mbpp-sanitized").collect(tmp_path)
    assert draft.queries["text"].to_pylist() == ["Add."]
    problem = json.loads(draft.problems["problem"][0].as_py())
    (program,) = mbpp.programs(problem, mbpp.read(problem, "```\ndef f(): 0\n```", "chat"))
    assert program.check == "import math\n\nassert 1"
