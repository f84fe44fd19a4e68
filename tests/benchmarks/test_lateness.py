import pytest

from coderet.benchmarks import judging, lateness, sandbox
from coderet.benchmarks.answering import Answer, Answering, Outcome, Parts, Program
from coderet.benchmarks.judging import Completed


def test_the_limit_grows_with_the_reference_and_is_never_less_than_the_programs_own():
    assert lateness.limit(10.0, 0.1) == 10.0 and lateness.limit(10.0, 12.0) == 60.0
    assert lateness.limit(60.0, 12.1) == 61.0


@pytest.mark.parametrize(
    ("timed", "limits"),
    [
        ([("passed", 1.0), ("passed", 4.0)], {1: 20.0}),
        ([("failed", 9.0), ("timeout", 9.0)], {}),
        ([("passed", 4.0)], {0: 20.0, 1: 20.0}),  # not one for each: the slowest counts for all
        ([], {}),
    ],
)
def test_programs_get_the_time_of_the_references_program_in_their_place(timed, limits):
    programs = [Program("a", "1"), Program("b", "1")]
    outcomes = [Outcome(verdict, "", seconds) for verdict, seconds in timed]
    more = lateness.given_more(programs, outcomes)
    assert {place: each.seconds for place, each in more.items()} == limits
    assert all(each.source == programs[place].source for place, each in more.items())


class Watch:
    """A stand-in for the sandbox: a program takes as many seconds as its source says."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, float]] = []

    def __call__(self, programs):
        self.ran += [(each.source, each.seconds) for each in programs]
        for place, each in enumerate(programs):
            late = float(each.source) > each.seconds
            yield place, Outcome("timeout" if late else "passed", "", min(float(each.source), each.seconds))


ANSWERING = Answering(
    prompt=lambda problem, documents, layout: Parts("", (), ""),
    read=lambda problem, completion, layout: Answer(completion, "fence"),
    programs=lambda problem, answer: [Program(answer.code, problem["check"])],
    reference=lambda problem: problem["reference"],
)


def verdicts(reference, answers):
    watch = Watch()
    completed = [Completed(0, sample, text) for sample, text in enumerate(answers)]
    judged = judging.judge(ANSWERING, [{"check": "1", "reference": reference}], completed, "chat", watch)
    return [each.verdict for each in judged], watch.ran


def test_an_answer_that_is_late_runs_again_where_the_reference_is_slow():
    found, ran = verdicts("8", ["3", "30", "41"])
    assert found == ["passed", "passed", "timeout"]
    assert ran == [("3", 10.0), ("30", 10.0), ("41", 10.0), ("8", 50.0), ("30", 40.0), ("41", 40.0)]


def test_a_quick_reference_grants_no_more():
    assert verdicts("2", ["30"]) == (["timeout"], [("30", 10.0), ("2", 50.0)])


def test_where_nobody_is_late_no_reference_runs():
    assert verdicts("8", ["3"]) == (["passed"], [("3", 10.0)])


def test_a_reference_that_takes_longer_than_the_least_limit_passes_its_own_check():
    assert verdicts("12", ["12"])[0] == ["passed"]


def test_without_references_the_least_limit_holds():
    without = Answering(prompt=ANSWERING.prompt, read=ANSWERING.read, programs=ANSWERING.programs)
    judged = judging.judge(without, [{"check": "1"}], [Completed(0, 0, "30")], "chat", Watch())
    assert [each.verdict for each in judged] == ["timeout"]


def test_in_the_sandbox_a_slow_reference_gives_slow_answers_their_time():
    spin = "import time\nwhile time.process_time() < {}: pass\n"
    slow = Answering(
        prompt=ANSWERING.prompt,
        read=ANSWERING.read,
        programs=lambda problem, answer: [Program(answer.code, "x = 1", seconds=1.0)],
        reference=lambda problem: spin.format(0.9),
    )
    judged = judging.judge(slow, [{}], [Completed(0, 0, spin.format(1.3))], "chat", sandbox.run)
    assert [each.verdict for each in judged] == ["passed"], judged
