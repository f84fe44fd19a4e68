from coderet.benchmarks import judging
from coderet.benchmarks.answering import Answer, Answering, Outcome, Parts, Program
from coderet.benchmarks.judging import Completed

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


def test_a_leak_is_the_share_of_the_references_own_lines_in_the_context():
    context = "x = 1\n  total  = sum(first,second)\n"
    assert judging.leak(ANSWERING, PROBLEM, "a question", context) == 0.5
    assert judging.leak(ANSWERING, PROBLEM, "total = sum(first, second)", context) == 0.0  # the question has it already
    assert judging.leak(ANSWERING, PROBLEM, "", "") == 0.0
    silent = Answering(prompt=ANSWERING.prompt, read=ANSWERING.read)
    assert judging.leak(silent, PROBLEM, "", context) is None
