from math import cos, pi

import pytest
import torch
from torch import nn

from coderet.records import DataError
from coderet.registry import UnknownName
from coderet.training.optimising import LOWEST_RATE, optimiser, share


def test_the_rate_rises_and_falls_linearly_to_what_is_left():
    rate = share("linear", 4, 100)
    assert [rate(step) for step in (0, 1, 50)] == pytest.approx([1 / 4, 2 / 4 * 0.99, 0.5])
    assert rate(99) == pytest.approx(LOWEST_RATE) == rate(1000)


def test_a_cosine_and_a_constant_rate():
    assert share("cosine", 0, 100)(25) == pytest.approx((1 + cos(pi / 4)) / 2)
    assert share("cosine", 0, 100)(100) == share("cosine", 0, 100)(300) == LOWEST_RATE
    assert [share("constant", 2, 100)(step) for step in (0, 1, 99)] == [0.5, 1.0, 1.0]


def test_a_warm_up_below_one_is_a_share_of_all_steps():
    part, steps = share("constant", 0.1, 100), share("constant", 10, 100)
    assert [part(step) for step in (0, 9)] == [steps(step) for step in (0, 9)]
    assert part(4) == 0.5


def layered() -> nn.Module:
    model = nn.Module()
    model.embeddings = nn.Embedding(3, 2)
    model.layer = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    model.head = nn.Linear(2, 2)
    outer = nn.Module()
    outer.encoder = model
    return outer


def test_weight_decay_spares_biases():
    made = optimiser(layered(), "adamw", 0.1, weight_decay=0.5)
    assert {(group["weight_decay"], each.ndim) for group in made.param_groups for each in group["params"]} == {
        (0.5, 2),
        (0.0, 1),
    }


def test_lower_layers_move_less():
    model = layered()
    made = optimiser(model, "adamw", 0.1, layer_decay=0.5)
    rate = {id(each): group["lr"] for group in made.param_groups for each in group["params"]}
    found = {name: rate[id(each)] for name, each in model.named_parameters() if name.endswith("weight")}
    assert found == pytest.approx(
        {
            "encoder.head.weight": 0.1,
            "encoder.layer.1.weight": 0.05,
            "encoder.layer.0.weight": 0.025,
            "encoder.embeddings.weight": 0.0125,
        }
    )


def test_frozen_weights_are_left_out():
    model = layered()
    model.encoder.embeddings.requires_grad_(False)
    (group,) = optimiser(model, "adam", 0.1).param_groups
    assert len(group["params"]) == 6


def test_layers_that_are_not_there_and_unknown_optimisers_are_refused():
    with pytest.raises(DataError, match="has no numbered layers"):
        optimiser(nn.Linear(2, 2), "adam", 0.1, layer_decay=0.9)
    with pytest.raises(UnknownName, match=r"fit\.training\.optimiser is 'adamm'.*Did you mean adam"):
        optimiser(nn.Linear(2, 2), "adamm", 0.1)


def test_a_step_is_that_of_torch():
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    other.load_state_dict(one.state_dict())
    for model, made in ((one, optimiser(one, "adam", 0.1)), (other, torch.optim.Adam(other.parameters(), lr=0.1))):
        model(torch.ones(1, 2)).sum().backward()
        made.step()
    torch.testing.assert_close(one.weight, other.weight)
