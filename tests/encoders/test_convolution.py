"""The convolution against its definition, written out token by token in float64."""

import numpy as np
import pytest
import torch

from coderet.encoders.convolution import Convolution


def written_out(made: Convolution, ids: list[int]) -> np.ndarray:
    """(T, dim) of one text: each filter's sum over its places, those outside the text counting nothing."""

    def array(weights: torch.Tensor) -> np.ndarray:
        return weights.detach().double().numpy()

    current = array(made.table.weight)[ids] + array(made.places)[: len(ids)]
    before = (made.width - 1) // 2
    for number, layer in enumerate(made.layers):
        filters, bias = array(layer.weight), array(layer.bias)  # type: ignore[arg-type]
        sums = np.tile(bias, (len(ids), 1))
        for place in range(len(ids)):
            for offset in range(made.width):
                seen = place + offset - before
                if 0 <= seen < len(ids):
                    sums[place] += filters[:, :, offset] @ current[seen]
        current = np.tanh(sums + current if number else sums)
    return current


@pytest.mark.parametrize("width", [1, 4, 5, 16])
def test_every_layer_is_the_sum_over_neighbours_and_later_layers_add_what_they_read(width: int):
    torch.manual_seed(0)
    made = Convolution(30, dim=6, layers=3, width=width, positions=12, pooling="mean").eval()
    ids = [5, 1, 9, 9, 20, 3, 7, 2]
    found = made(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.bool))[0]
    np.testing.assert_allclose(found.detach().numpy(), written_out(made, ids).mean(0), atol=1e-6)


def test_places_are_counted_from_the_first_token():
    torch.manual_seed(0)
    made = Convolution(30, dim=6, width=1, layers=1, positions=4, pooling="cls").eval()
    ids, mask = torch.tensor([[0, 0, 8, 9]]), torch.tensor([[False, False, True, True]])
    expected = written_out(made, [8, 9])[0]
    np.testing.assert_allclose(made(ids, mask)[0].detach().numpy(), expected, atol=1e-6)
