"""What is kept of completions, and what a killed run, a torn line and a failure leave."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from coderet.generators.base import Completion, Prompt
from coderet.generators.completions import Store, Tally, complete
from coderet.records import DataError
from coderet.sampling import Sampling

GREEDY, THREE = Sampling(), Sampling(temperature=1, samples=3)
PROMPTS = [Prompt("a"), Prompt("b"), Prompt("c")]


class Echo:
    """Answers with prompt and sample, the last first; dies before the prompts in `fatal` and fails at `failing`."""

    layout, window, identity, template_tokens = "chat", 100, "e" * 64, 0

    def __init__(self, fatal: str = "", failing: str = "") -> None:
        self.fatal, self.failing, self.asked = fatal, failing, []

    def count_tokens(self, text: str) -> int:
        return len(text)

    def cut(self, text: str, tokens: int) -> str:
        return text[:tokens]

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Completion]:
        for place, prompt in reversed([*enumerate(prompts)]):
            if prompt.user in self.fatal:
                raise KeyboardInterrupt
            self.asked.append(prompt.user)
            if prompt.user in self.failing:
                yield Completion(place, "", "failed", 0, 0, "it says no")
            else:
                yield Completion(place, f"{prompt.user}{prompt.sample}", "stop", 1, 2)


def texts(found: list[list[Completion]]) -> list[list[str]]:
    return [[each.text for each in samples] for samples in found]


def test_completions_stand_in_the_order_of_their_prompts_whatever_order_they_came_in(tmp_path):
    assert texts(complete(Echo(), PROMPTS, GREEDY, tmp_path)) == [["a0"], ["b0"], ["c0"]]
    assert texts(complete(Echo(), PROMPTS[:2], THREE, tmp_path)) == [["a0", "a1", "a2"], ["b0", "b1", "b2"]]


def test_what_is_kept_is_not_asked_for_again(tmp_path):
    complete(Echo(), PROMPTS, GREEDY, tmp_path)
    echo, tally = Echo(), Tally()
    complete(echo, [*PROMPTS, Prompt("d")], GREEDY, tmp_path, tally=lambda _: tally)
    assert echo.asked == ["d"]
    assert (tally.kept, tally.made, tally.completion_tokens, tally.made_tokens) == (3, 1, 8, 2)
    assert tally.finishes == {"stop": 4}


def test_a_completion_is_counted_where_its_prompt_belongs_and_an_equal_one_as_kept(tmp_path):
    complete(Echo(), PROMPTS[:1], THREE, tmp_path)
    first, second = Tally(), Tally()
    prompts = [*PROMPTS[:2], PROMPTS[1], PROMPTS[2]]
    complete(Echo(), prompts, THREE, tmp_path, tally=lambda place: first if place < 2 else second)
    assert (first.kept, first.made, first.made_tokens, first.completion_tokens) == (3, 3, 6, 12)
    assert (second.kept, second.made, second.made_tokens, second.completion_tokens) == (3, 3, 6, 12)


def test_more_samples_are_added_to_those_that_are_there(tmp_path):
    complete(Echo(), PROMPTS[:1], Sampling(temperature=1), tmp_path)
    echo = Echo()
    assert texts(complete(echo, PROMPTS[:1], THREE, tmp_path)) == [["a0", "a1", "a2"]]
    assert len(echo.asked) == 2


def test_equal_prompts_are_asked_for_once(tmp_path):
    echo = Echo()
    assert texts(complete(echo, [PROMPTS[0]] * 3, GREEDY, tmp_path)) == [["a0"]] * 3
    assert echo.asked == ["a"]


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        complete(Echo(fatal="a"), PROMPTS, GREEDY, tmp_path)
    echo = Echo()
    complete(echo, PROMPTS, GREEDY, tmp_path)
    assert echo.asked == ["a"]


@pytest.mark.parametrize("torn", range(1, 60, 7))
def test_a_torn_last_line_is_asked_for_again_and_spoils_nothing(torn, tmp_path):
    complete(Echo(), PROMPTS, GREEDY, tmp_path)
    path = Store(tmp_path, Echo.identity).path
    path.write_bytes(path.read_bytes()[:-torn])
    echo = Echo()
    assert texts(complete(echo, PROMPTS, GREEDY, tmp_path)) == [["a0"], ["b0"], ["c0"]]
    assert echo.asked == (["a"] if torn > 1 else [])  # of its newline alone it is not missed
    assert texts(complete(Echo(fatal="abc"), PROMPTS, GREEDY, tmp_path)) == [["a0"], ["b0"], ["c0"]]


def test_a_failure_is_told_and_asked_for_again_while_the_others_are_kept(tmp_path):
    with pytest.raises(DataError, match=r"1 of 3 completions are missing: HumanEval/1 \(it says no\)"):
        complete(Echo(failing="b"), PROMPTS, GREEDY, tmp_path, name=lambda place: f"HumanEval/{place}")
    lines = Store(tmp_path, Echo.identity).path.read_text().splitlines()
    assert [json.loads(line)[2] for line in lines] == ["stop", "failed", "stop"]
    echo = Echo()
    assert texts(complete(echo, PROMPTS, GREEDY, tmp_path)) == [["a0"], ["b0"], ["c0"]]
    assert echo.asked == ["b"]


def test_a_completion_of_nothing_is_a_completion(tmp_path):
    Store(tmp_path, Echo.identity).add(PROMPTS[0].key(GREEDY), Completion(0, "", "stop", 1, 1))
    assert texts(complete(Echo(fatal="a"), PROMPTS[:1], GREEDY, tmp_path)) == [[""]]


def test_a_generator_that_leaves_prompts_out_is_found_out(tmp_path):
    class Lazy(Echo):
        def generate(self, prompts, sampling):
            return iter(())

    with pytest.raises(DataError, match="the generator gave none"):
        complete(Lazy(), PROMPTS, GREEDY, tmp_path)


@pytest.mark.parametrize("text", ["a\ud800b", "\x00", "a\r\nb\x85\u2028c", "x" * 100_000])
def test_every_text_is_found_as_it_was_kept(text, tmp_path):
    kept = Store(tmp_path, Echo.identity).add("k", Completion(0, text, "stop", 1, 1, stop="\n"))
    assert Store(tmp_path, Echo.identity).find("k", 0) == kept
    kept.text.encode()


def test_generators_have_files_of_their_own(tmp_path):
    complete(Echo(), PROMPTS, GREEDY, tmp_path)
    other = Echo()
    other.identity = "f" * 64
    complete(other, PROMPTS, GREEDY, tmp_path)
    assert len(other.asked) == 3 and len([*Path(tmp_path).iterdir()]) == 2
