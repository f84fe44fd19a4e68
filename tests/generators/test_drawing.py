"""The next token, by hand: three tokens of shares 0.5, 0.3, 0.2, and what is left of them."""

import numpy as np
import pytest
import torch

from coderet.generators.drawing import drawn, likeliest
from coderet.sampling import Sampling

LOGITS = torch.tensor([[0.5, 0.2, 0.3]]).log()


def token(number: float, **settings) -> int:
    return int(drawn(LOGITS, Sampling(**{"temperature": 1} | settings), np.array([number]))[0])


def test_the_likeliest():
    assert likeliest(LOGITS).tolist() == [0]


@pytest.mark.parametrize(("number", "expected"), [(0, 0), (0.49, 0), (0.51, 2), (0.79, 2), (0.81, 1), (0.999999, 1)])
def test_tokens_stand_in_the_order_of_their_shares(number, expected):
    assert token(number) == expected


def test_top_p_keeps_the_fewest_that_reach_it():
    assert token(0.999999, top_p=0.5) == 0  # the first alone
    assert token(0.62, top_p=0.7) == 0 and token(0.63, top_p=0.7) == 2  # 0.5 of 0.8, not the third


def test_top_k_keeps_the_largest_before_top_p_looks():
    assert token(0.999999, top_k=1) == 0
    assert token(0.999999, top_k=2) == 2
    assert token(0.999999, top_k=2, top_p=0.6) == 0  # 0.5 / 0.8 is enough


def test_a_low_temperature_is_nearly_greedy():
    assert token(0.99, temperature=0.05) == 0


def test_a_row_does_not_depend_on_its_companions():
    logits = torch.randn(16, 1000, generator=torch.Generator().manual_seed(0))
    numbers = np.random.default_rng(0).random(16)
    for sampling in (Sampling(temperature=1), Sampling(temperature=0.7, top_p=0.95), Sampling(temperature=2, top_k=7)):
        together = drawn(logits, sampling, numbers)
        alone = [int(drawn(logits[[row]], sampling, numbers[[row]])[0]) for row in range(16)]
        assert together.tolist() == alone


def test_shares_come_out_as_they_are():
    numbers = (np.arange(1000) + 0.5) / 1000
    found = drawn(LOGITS.expand(1000, 3), Sampling(temperature=1), numbers)
    assert torch.bincount(found).tolist() == [500, 200, 300]
