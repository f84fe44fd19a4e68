import pytest
from small_runs import corpus, dataset

from coderet.metrics.difficulty import difficulty
from coderet.records import Queries, queries_table

METRICS = ("mrr-expected", "recall@1-expected")
WORDS = corpus("openFile", "close_file", "read lines", "nothing")


def asked(*texts: str, gold: str):
    return dataset(WORDS, list(texts), {text: {gold: 1} for text in texts})


def test_words_that_only_the_answer_has_make_a_question_easy():
    told = difficulty(asked("open", gold="openFile"), METRICS)
    assert told == {
        "bm25": {"mrr-expected": 1.0, "recall@1-expected": 1.0},
        "random": {"mrr-expected": pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4), "recall@1-expected": 0.25},
    }


def test_words_that_two_documents_have_leave_it_to_the_order_of_a_tie():
    assert difficulty(asked("the file", gold="close_file"), METRICS)["bm25"]["recall@1-expected"] == 0.5


def test_a_question_of_unknown_words_finds_nothing_and_what_is_excluded_is_not_found():
    assert difficulty(asked("zebra", gold="nothing"), METRICS)["bm25"]["mrr-expected"] == 0.0
    found = asked("file", gold="openFile")
    object.__setattr__(found, "queries", Queries(queries_table(["file"], ["file"], excluded=[["close_file"]])))
    assert difficulty(found, METRICS)["bm25"]["recall@1-expected"] == 1.0


def test_a_benchmark_that_asks_for_no_metric_is_not_gauged():
    assert difficulty(asked("open", gold="openFile"), ()) == {}
