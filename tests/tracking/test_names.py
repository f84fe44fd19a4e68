import posixpath
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coderet.tracking import allowed, original


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("ndcg@10", "ndcg_at_10"),
        ("humaneval/ndcg@10", "humaneval/ndcg_at_10"),
        ("mrr-1000-paper", "mrr-1000-paper"),
        ("bm25+smollm2", "bm25_plus_smollm2"),
        ("validation_mrr", "validation_mrr"),
        ("MTEB(Code, v1)/cosqa/ndcg@10", "MTEB_x28_Code_x2c_ v1_x29_/cosqa/ndcg_at_10"),
    ],
)
def test_a_name_becomes_this_one(name, kept):
    assert allowed(name) == kept


def test_a_name_that_looks_escaped_already_is_told_from_one_that_is():
    assert allowed("ndcg_at_10") != allowed("ndcg@10")
    assert original(allowed("ndcg_at_10")) == "ndcg_at_10"


@given(st.text() | st.text(alphabet="_@x28at/.+", max_size=12))
def test_every_name_comes_back_and_is_one_that_mlflow_takes(name):
    kept = allowed(name)
    assert original(kept) == name
    assert re.fullmatch(r"[A-Za-z0-9_\-./ ]+", kept)
    assert posixpath.normpath(kept) == kept
    assert kept != "." and not kept.startswith(("..", "/"))


@given(st.text(alphabet="_@x2at/.", max_size=8), st.text(alphabet="_@x2at/.", max_size=8))
def test_two_names_stay_two(one, other):
    assert (allowed(one) == allowed(other)) == (one == other)
