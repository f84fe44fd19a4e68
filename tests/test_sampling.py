"""How completions are drawn, and what decides them."""

import pytest

from coderet.generators.base import Prompt, parted, whole
from coderet.registry import BadValue
from coderet.sampling import PAPER, Sampling


def test_the_papers_sampling():
    assert (PAPER.temperature, PAPER.top_p, PAPER.samples) == (0.2, 0.95, 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "leaves no token"),
        ({"top_p": 1.1}, "top_p is 1.1"),
        ({"samples": 0}, "samples"),
        ({"samples": 2}, "all are the same"),
        ({"stop": ("a", "")}, "empty text"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
    ],
)
def test_what_cannot_be_drawn_is_refused(settings, message):
    with pytest.raises(BadValue, match=message):
        Sampling(**settings)


def test_a_greedy_completion_does_not_depend_on_what_it_does_not_use():
    assert Prompt("a").key(Sampling()) == Prompt("a").key(Sampling(seed=3, top_p=0.5))


def test_more_samples_are_other_samples_and_leave_the_first_ones_as_they_are():
    few, many = (Sampling(temperature=1, samples=samples) for samples in (1, 5))
    assert Prompt("a").key(few) == Prompt("a").key(many) != Prompt("a", sample=1).key(many)


@pytest.mark.parametrize(
    "other", [Prompt("b"), Prompt("a", system="s"), Prompt("a", start="s"), Prompt("a", stop=("s",)), Prompt("", "a")]
)
def test_a_prompt_of_other_parts_has_another_key_and_seed(other):
    sampling = Sampling(temperature=1)
    assert Prompt("a").key(sampling) != other.key(sampling) and Prompt("a").seed(sampling) != other.seed(sampling)


def test_a_seed_is_the_same_on_every_machine():
    assert Prompt("a").seed(Sampling(temperature=1, seed=1)) == Prompt("a").seed(Sampling(temperature=1, seed=1))
    assert 0 <= Prompt("a").seed(Sampling()) < 2**63


def test_a_text_ends_before_the_first_of_its_stop_strings():
    assert parted("a b c b", ["c", "b"]) == ("a ", "b")
    assert parted("a b", ["x"]) == ("a b", "") and parted("", ["x"]) == ("", "")


def test_broken_unicode_is_mended():
    assert whole("a\ud800b") == "a\ufffdb"
    assert whole("\ud83d\ude00") == "\N{GRINNING FACE}"
