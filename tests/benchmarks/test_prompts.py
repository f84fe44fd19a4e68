import re

import pytest

from coderet.benchmarks import prompts
from coderet.benchmarks.answering import Answer, Answering, Document, Parts
from coderet.records import DataError


class Words:
    """A token is a word; counts how often it is asked."""

    template_tokens = 3

    def __init__(self):
        self.asked = []

    def count_tokens(self, text):
        self.asked.append(text)
        return len(text.split())

    def cut(self, text, tokens):
        ends = [each.end() for each in re.finditer(r"\S+", text)]
        return text if len(ends) <= tokens else text[: ends[tokens - 1]]


def prompt(problem, documents, layout):
    before = "with these: " if documents else ""
    return Parts(before, tuple(each.text for each in documents), f" do {problem['what']}", joiner=" | ")


ASKING = Answering(prompt=prompt, read=lambda problem, completion, layout: Answer(completion, "no fence"))
DOCUMENTS = [Document("a", "", "one\ntwo three\nfour"), Document("b", "", "five six"), Document("c", "", "seven")]
FREE = prompts.RESERVE + Words.template_tokens


def pack(window, documents=DOCUMENTS, budget=None, counter=None, what="it all"):
    counter = counter or prompts.Counter(Words())
    return prompts.pack(ASKING, "p/1", {"what": what}, documents, "base", counter, window=FREE + window, budget=budget)


def test_what_fits_is_whole():
    packed = pack(14)
    assert packed.user == "with these: one\ntwo three\nfour | five six | seven do it all"
    assert not packed.truncated and packed.tokens == FREE + 14


def test_documents_are_cut_from_the_lowest_rank_and_by_whole_lines():
    """The question has 5 words, a document 4, 2 and 1, a joiner one."""
    packed = pack(5 + 4 + 1 + 2)
    assert packed.texts == ("one\ntwo three\nfour", "five six")
    assert [(each.id, each.tokens, each.kept) for each in packed.shown] == [("a", 4, 4), ("b", 2, 2), ("c", 1, 0)]
    packed = pack(5 + 3)
    assert packed.texts == ("one\ntwo three",)
    assert [each.kept for each in packed.shown] == [3, 0, 0] and packed.truncated
    assert pack(5 + 2).texts == ("one",)  # half of a line is none


def test_of_a_first_line_that_is_too_long_the_beginning_is_kept():
    """T27: it was lost, and the chunk empty."""
    assert pack(5 + 2, [Document("a", "", "one two three\nfour")]).texts == ("one two",)


def test_a_budget_bounds_the_documents_alone():
    assert pack(1000, budget=4).texts == ("one\ntwo three\nfour",)
    assert pack(1000, budget=0).texts == ()


def test_where_no_document_fits_the_prompt_reads_as_without():
    packed = pack(5, what="these many words")
    assert packed.user == " do these many words"
    assert [each.kept for each in packed.shown] == [0, 0, 0]


def test_a_question_alone_longer_than_the_window_is_an_error_that_names_it():
    with pytest.raises(DataError, match=f"p/1: the question alone has {FREE + 3} tokens and the window leaves it"):
        pack(2)


def test_a_text_is_counted_once_however_many_prompts_it_stands_in():
    words = Words()
    counter = prompts.Counter(words)
    for number in range(10):
        pack(100, counter=counter, what=f"thing {number}")
    assert len(words.asked) == len(set(words.asked)) == 5 + 10  # before, joiner, three documents; ten questions


def test_documents_that_fit_stand_by_rank_reversed_or_as_in_their_files():
    ids = ["b.py#L10", "b.py#L9", "a.py#L30"]
    assert prompts.arranged(ids, "rank") == [0, 1, 2]
    assert prompts.arranged(ids, "reversed") == [2, 1, 0]
    assert prompts.arranged(ids, "file") == [2, 1, 0]
    assert prompts.arranged(["a#L2", "a#L10"], "file") == [0, 1]
