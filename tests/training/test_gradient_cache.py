"""Case D10: ten pairs, a small encoder with dropout, mini-batches of every size."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from coderet.registry import BadValue
from coderet.training.gradient_cache import Encoded, GradientCache, parts
from coderet.training.losses import info_nce

PAIRS, LENGTHS = 10, [3, 7, 1, 5, 5, 2, 8, 4, 6, 1]
SIZES = [1, 3, 4, 10, 64]


class Small(nn.Module):
    def __init__(self, dropout: float = 0.3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(20, 8)
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 6))
        self.log_temperature = nn.Parameter(torch.tensor(-1.0))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        summed = (self.table(ids) * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return nn.functional.normalize(self.layers(summed).float(), dim=1)

    def loss(self, queries: Tensor, documents: Tensor) -> Tensor:
        return info_nce(queries, documents, self.log_temperature.exp(), both_directions=True)


def texts(seed: int) -> tuple[Tensor, Tensor]:
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return torch.randint(1, 20, mask.shape, generator=torch.Generator().manual_seed(seed)) * mask, mask


def gradients(model: Small) -> dict[str, Tensor]:
    return {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}


def cached(model: Small, mini_batch: int) -> tuple[Tensor, dict[str, Tensor]]:
    torch.manual_seed(1)
    sides = [Encoded(model, *texts(seed), mini_batch) for seed in (2, 3)]
    loss = model.loss(*(side.vectors for side in sides))
    model.zero_grad()
    for part, _ in parts(loss, sides, [model.log_temperature]):
        part.backward()
    return loss.detach(), gradients(model)


def in_pieces(model: Small, ids: Tensor, mask: Tensor, mini_batch: int) -> Tensor:
    """The vectors with one graph, encoded in pieces by falling length, so that dropout draws what the cache draws."""
    order = sorted(range(PAIRS), key=lambda row: -LENGTHS[row])
    made = torch.cat([model(ids[rows], mask[rows]) for rows in torch.tensor(order).split(mini_batch)])
    return torch.stack([made[order.index(row)] for row in range(PAIRS)])


@pytest.mark.parametrize("mini_batch", SIZES)
def test_loss_and_gradients_are_those_of_a_plain_pass_with_the_same_dropout(mini_batch: int):
    model = Small()
    torch.manual_seed(1)
    expected = model.loss(*(in_pieces(model, *texts(seed), mini_batch) for seed in (2, 3)))
    expected.backward()
    plain = gradients(model)
    loss, found = cached(model, mini_batch)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    assert found.keys() == plain.keys() and "log_temperature" in found
    for name in plain:
        torch.testing.assert_close(found[name], plain[name], atol=1e-6, rtol=1e-5)


def test_without_dropout_the_size_of_mini_batches_changes_nothing():
    model = Small(dropout=0.0)
    every = [cached(model, size)[1] for size in (0, *SIZES)]
    for found in every[1:]:
        for name in found:
            torch.testing.assert_close(found[name], every[0][name], atol=1e-6, rtol=1e-5)


def test_both_halves_of_a_batch_have_gradients():
    class Halves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = nn.Parameter(torch.randn(PAIRS, 4, generator=torch.Generator().manual_seed(0)))

        def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
            return nn.functional.normalize(self.vectors[ids[:, 0]], dim=1)

    model = Halves()
    ids, mask = torch.arange(PAIRS)[:, None], torch.ones(PAIRS, 1, dtype=torch.bool)
    sides = [Encoded(model, ids, mask, 3), Encoded(model, ids.flip(0), mask, 3)]
    for part, _ in parts(info_nce(*(side.vectors for side in sides), 0.5), sides, []):
        part.backward()
    assert model.vectors.grad is not None
    assert model.vectors.grad[:5].abs().sum() > 0.01 and model.vectors.grad[5:].abs().sum() > 0.01


def test_two_forward_passes_before_one_backward_do_not_mix():
    model = Small()
    alone = cached(model, 3)[1]
    torch.manual_seed(1)
    sides = [Encoded(model, *texts(seed), 3) for seed in (2, 3)]
    loss = model.loss(*(side.vectors for side in sides))
    others = [Encoded(model, *texts(seed), 4) for seed in (5, 6)]
    other_loss = model.loss(*(side.vectors for side in others))
    model.zero_grad()
    for part, _ in parts(loss, sides, [model.log_temperature]):
        part.backward()
    first = gradients(model)
    assert all(torch.equal(first[name], alone[name]) for name in alone)
    for part, _ in parts(other_loss, others, [model.log_temperature]):
        part.backward()
    assert not torch.equal(gradients(model)["table.weight"], alone["table.weight"])


def test_a_loss_can_be_had_without_gradients():
    model = Small().eval()
    with torch.no_grad():
        sides = [Encoded(model, *texts(seed), 3) for seed in (2, 3)]
        loss = model.loss(*(side.vectors for side in sides))
    plain = model.loss(*(model(*texts(seed)) for seed in (2, 3)))
    assert loss.item() == pytest.approx(plain.item(), abs=1e-6) and not sides[0].vectors.requires_grad


def test_the_random_numbers_that_follow_are_not_disturbed():
    model = Small()
    torch.manual_seed(1)
    side = Encoded(model, *texts(2), 3)
    expected = torch.random.get_rng_state()
    for part in side.again(torch.ones(PAIRS, 6)):
        part.backward()
    assert torch.equal(torch.random.get_rng_state(), expected)


def test_the_second_pass_has_the_precision_of_the_first_and_reaches_the_weights():
    model = Small(dropout=0.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model.loss(*(model(*texts(seed)) for seed in (2, 3))).backward()
    plain = gradients(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        sides = [Encoded(model, *texts(seed), 4) for seed in (2, 3)]
        loss = model.loss(*(side.vectors for side in sides))
        model.zero_grad()
    for part, _ in parts(loss, sides, [model.log_temperature]):  # outside, as when somebody else calls backward
        part.backward()
    found = gradients(model)
    assert found.keys() == plain.keys()
    for name in plain:
        torch.testing.assert_close(found[name], plain[name], atol=0.02, rtol=0.05)


def test_mini_batches_are_cut_by_falling_length_and_no_wider_than_their_longest():
    widths: list[tuple[int, int]] = []

    def encode(model: Small, ids: Tensor, mask: Tensor) -> Tensor:
        widths.append(tuple(ids.shape))
        return model(ids, mask)

    encoding: Callable[[Tensor, Tensor], Tensor] = partial(encode, Small())
    Encoded(encoding, *texts(2), 4)
    assert widths == [(4, 8), (4, 5), (2, 1)]


def test_the_last_part_is_said_to_be_the_last():
    model = Small()
    sides = [Encoded(model, *texts(seed), 4) for seed in (2, 3)]
    loss = model.loss(*(side.vectors for side in sides))
    assert [is_last for _, is_last in parts(loss, sides, [])] == [False] * 5 + [True]


def test_a_batch_that_fits_is_encoded_once():
    cache = GradientCache(mini_batch=4)
    assert not cache.is_needed([4, 4]) and cache.is_needed([4, 8])
    assert not GradientCache(mini_batch=None).is_needed([4096]) and not GradientCache().is_needed([4096])
    with pytest.raises(BadValue, match=r"fit\.batches\.mini_batch is -1"):
        GradientCache(mini_batch=-1)
