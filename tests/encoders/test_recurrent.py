"""The two stacks against torch's own cells and packed sequences, and against the equations in float64."""

import numpy as np
import pytest
import torch
from torch import nn

from coderet.encoders.recurrent import CELLS, Recurrent

IDS = torch.tensor([[5, 1, 9, 9, 20, 3, 7], [8, 2, 4, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0, 0]])
MASK = IDS > 0


def made(cell: str, layers: int = 1) -> Recurrent:
    torch.manual_seed(0)
    return Recurrent(30, dim=8, cell=cell, layers=layers, pooling="mean").eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("cell", sorted(CELLS))
def test_one_layer_is_torchs_bidirectional_network_over_packed_texts(cell: str):
    own = made(cell)
    reference = CELLS[cell](8, 4, batch_first=True, bidirectional=True)
    state = dict(own.forwards.state_dict())
    state |= {f"{name}_reverse": each for name, each in own.backwards.state_dict().items()}
    reference.load_state_dict(state)
    lengths = MASK.sum(1)
    packed = nn.utils.rnn.pack_padded_sequence(own.table(IDS), lengths, batch_first=True)
    outputs, _ = nn.utils.rnn.pad_packed_sequence(reference(packed)[0], batch_first=True)
    expected = outputs.sum(1) / lengths.unsqueeze(1)
    torch.testing.assert_close(own(IDS, MASK), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cell", sorted(CELLS))
def test_directions_do_not_know_each_other_in_any_layer(cell: str):
    own = made(cell, layers=2)
    tokens = own.table(IDS[:1]).detach().requires_grad_()
    outputs = own.read(tokens, MASK[:1])
    outputs[0, 3, :4].sum().backward()  # forwards: what stands behind the fourth token is not seen
    assert tokens.grad is not None
    assert tokens.grad[0].abs().sum(1).gt(0).tolist() == [True] * 4 + [False] * 3
    tokens.grad = None
    own.read(tokens, MASK[:1])[0, 3, 4:].sum().backward()
    assert tokens.grad is not None
    assert tokens.grad[0].abs().sum(1).gt(0).tolist() == [False] * 3 + [True] * 4


def test_a_gru_is_its_equations():
    own = made("gru")
    weights = {name: each.detach().double().numpy() for name, each in own.forwards.named_parameters()}
    x = own.table.weight.detach().double().numpy()[[8, 2, 4]]

    def sigmoid(value: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-value))

    state, total = np.zeros(4), np.zeros(4)
    for token in x:
        a = weights["weight_ih_l0"] @ token + weights["bias_ih_l0"]
        b = weights["weight_hh_l0"] @ state + weights["bias_hh_l0"]
        reset, update = sigmoid(a[:4] + b[:4]), sigmoid(a[4:8] + b[4:8])
        state = (1 - update) * np.tanh(a[8:] + reset * b[8:]) + update * state
        total += state
    np.testing.assert_allclose(own(IDS, MASK)[1, :4].detach().numpy(), total / 3, atol=1e-6)
