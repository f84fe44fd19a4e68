import pytest
import torch

from coderet.encoders import pooling

# Two texts: three tokens, and two tokens, padded with a value that must never show.
PADDING = 1e6
RIGHT = torch.tensor([[[1.0, 8.0], [2.0, 4.0], [6.0, 0.0]], [[3.0, -1.0], [5.0, -3.0], [PADDING, PADDING]]])
RIGHT_MASK = torch.tensor([[True, True, True], [True, True, False]])
LEFT = torch.stack([RIGHT[0], RIGHT[1].roll(1, 0)])
LEFT_MASK = torch.stack([RIGHT_MASK[0], RIGHT_MASK[1].roll(1, 0)])
EXPECTED = {
    "mean": [[3.0, 4.0], [4.0, -2.0]],
    "max": [[6.0, 8.0], [5.0, -1.0]],
    "cls": [[1.0, 8.0], [3.0, -1.0]],
    "last": [[6.0, 0.0], [5.0, -3.0]],
    "weightedmean": [[23 / 6, 16 / 6], [13 / 3, -7 / 3]],
}


@pytest.mark.parametrize("name", sorted(pooling.POOLINGS))
@pytest.mark.parametrize(("tokens", "mask"), [(RIGHT, RIGHT_MASK), (LEFT, LEFT_MASK)], ids=["right", "left"])
def test_padding_on_either_side_leaves_no_trace(name: str, tokens: torch.Tensor, mask: torch.Tensor):
    torch.testing.assert_close(pooling.POOLINGS[name](tokens, mask), torch.tensor(EXPECTED[name]), rtol=1e-6, atol=0)


def test_weights_make_a_weighted_mean():
    weights = torch.tensor([[1.0, 0.0, 3.0], [1.0, 1.0, 1.0]])
    assert pooling.weighted(RIGHT, RIGHT_MASK, weights).tolist() == [[19 / 4, 2.0], [4.0, -2.0]]


@pytest.mark.parametrize("name", sorted(pooling.POOLINGS))
def test_a_text_without_tokens_is_the_zero_vector(name: str):
    assert pooling.POOLINGS[name](RIGHT, torch.zeros(2, 3, dtype=torch.bool)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
