import pyarrow as pa

from coderet.benchmarks import judging
from coderet.benchmarks.answering import Answer, Answering, Outcome, Parts, Program
from coderet.benchmarks.judging import Completed
from coderet.corpora import answered
from coderet.records import PROBLEMS, Problems

PROBLEM = {"tests": ["one", "two"]}


def run(programs):
    """A stand-in for the sandbox: a program passes if its source says so; tells in falling order."""
    run.ran += [program.source for program in programs]
    for place in reversed(range(len(programs))):
        verdict = "passed" if programs[place].check in programs[place].source else "failed"
        yield place, Outcome(verdict, "" if verdict == "passed" else "assert", 0.5)


ANSWERING = Answering(
    prompt=lambda problem, documents, layout: Parts("", (), ""),
    read=lambda problem, completion, layout: Answer(completion, "no fence" if completion else "nothing"),
    programs=lambda problem, answer: [Program(answer.code, check) for check in problem["tests"]],
    reference=lambda problem: "total = sum(first, second)\nreturn total + extra + rest",
)


def verdicts(problems, texts):
    run.ran = []
    completed = [Completed(place % len(problems), place // len(problems), text) for place, text in enumerate(texts)]
    return [each.verdict for each in judging.judge(ANSWERING, problems, completed, "chat", run)]


def test_an_answer_passes_if_all_of_its_programs_do():
    assert verdicts([PROBLEM], ["one two", "one", ""]) == ["passed", "failed", "no code"]


def test_equal_programs_run_once():
    verdicts([PROBLEM], ["one two"] * 5)
    assert len(run.ran) == 2


def test_a_problem_without_tests_is_told_and_not_passed():
    assert verdicts([{"tests": []}], ["one"]) == ["no tests"]


def test_an_answer_that_is_graded_is_not_run():
    graded = Answering(
        prompt=ANSWERING.prompt,
        read=ANSWERING.read,
        grade=lambda problem, answer: {"exact_match": float(answer.code == "x"), "edit_similarity": 0.5},
        metrics=("exact_match", "edit_similarity"),
    )
    judged = judging.judge(graded, [{}], [Completed(0, 0, "x"), Completed(0, 1, "y")], "base", run)
    assert [each.verdict for each in judged] == ["passed", "failed"]
    assert judged[1].grades == {"exact_match": 0.0, "edit_similarity": 0.5}
    assert [each.detail for each in judged] == ["", "exact_match 0.00, edit_similarity 0.50"]


def test_a_leak_is_the_share_of_the_references_own_lines_in_the_context():
    context = "x = 1\n  total  = sum(first,second)\n"
    assert judging.leak(ANSWERING, PROBLEM, "a question", context) == 0.5
    assert judging.leak(ANSWERING, PROBLEM, "total = sum(first, second)", context) == 0.0  # the question has it already
    assert judging.leak(ANSWERING, PROBLEM, "", "") == 0.0
    silent = Answering(prompt=ANSWERING.prompt, read=ANSWERING.read)
    assert judging.leak(silent, PROBLEM, "", context) is None


def test_a_completion_is_read_with_the_end_of_its_fence(tmp_path):
    texts = {"a": ("x", "stop", "\n```"), "b": ("x", "stop", ""), "c": ("x", "length", "")}
    told = {"query_id": "q", "system": "", "user": "", "start": "```python\n", "context": "", "documents": []}
    prompts = [{**told, "problem_id": own, "tokens": 1} for own in texts]
    spent = {"sample": 0, "prompt_tokens": 1, "completion_tokens": 1}
    made = [{**spent, "problem_id": own, "text": t, "finish": f, "stop": s} for own, (t, f, s) in texts.items()]
    answered.write(answered.prompts_path(tmp_path, "set"), prompts, answered.PROMPTS)
    answered.write(answered.completions_path(tmp_path, "set"), made, answered.COMPLETIONS, {"layout": "chat"})
    table = pa.table({"id": [*texts], "query_id": ["q"] * 3, "problem": ["{}"] * 3}, schema=PROBLEMS)
    asked = judging.asked(Problems("set", "data", table), tmp_path)
    assert [each.text for each in asked.completed] == ["x\n```", "x", "x"]


def test_problems_are_told_apart_by_whether_their_context_held_the_whole_answer():
    rows = [{"problem_id": own, "leak": leak} for own, leak in (("a", 1.0), ("a", 1.0), ("b", 0.9), ("c", None))]
    assert judging.told_apart(rows) == {"held": ["a"], "lacking": ["b"], "unknown": ["c"]}
