import numpy as np
import pytest
import torch

from coderet.encoders.nbow import NeuralBagOfWords
from coderet.records import DataError

IDS = torch.tensor([[1, 2, 2], [3, 0, 0], [0, 0, 0]])
MASK = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])
TABLE = torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 1.0], [4.0, 4.0]])


def tower(direction: tuple[float, float] = (0.0, 0.0), **settings: object) -> NeuralBagOfWords:
    made = NeuralBagOfWords(4, dim=2, **settings)  # type: ignore[arg-type]
    made.table.weight.data = TABLE.clone()
    if made.weigh is not None:
        made.weigh.weight.data = torch.tensor([direction])
    return made.eval()


def test_mean_pooling_is_the_mean_of_the_tokens_vectors():
    assert torch.allclose(tower(pooling="mean")(IDS, MASK)[0], torch.tensor([1 / 3, 2 / 3]))


def test_max_pooling_is_the_largest_value_of_each_dimension():
    assert tower(pooling="max")(IDS, MASK).tolist() == [[1.0, 1.0], [4.0, 4.0], [0.0, 0.0]]


def test_a_tokens_weight_is_the_sigmoid_of_a_linear_map_of_its_vector():
    low, high = torch.sigmoid(
        torch.tensor([0.0, 2.0])
    ).tolist()  # token 1 lies at right angles to (0, 2), token 2 on it
    total = low + 2 * high
    expected = torch.tensor([low / total, 2 * high / total])
    assert torch.allclose(tower(direction=(0.0, 2.0))(IDS, MASK)[0], expected)


def test_training_and_inference_give_the_same_vectors_without_dropout():
    made = tower(direction=(1.0, 2.0))
    assert torch.allclose(made.train()(IDS, MASK), made.eval()(IDS, MASK))


def test_a_vector_is_the_same_bit_for_bit_whether_there_are_more_occurrences_or_more_tokens_in_the_vocabulary():
    few, many = NeuralBagOfWords(300, dim=96).eval(), NeuralBagOfWords(3000, dim=96).eval()
    many.table.weight.data[:300] = few.table.weight.data
    assert few.weigh is not None
    many.weigh = few.weigh
    ids = torch.randint(0, 300, (64, 20), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids, dtype=torch.bool)
    assert torch.equal(few(ids, mask), many(ids, mask))


@pytest.mark.parametrize("pooling", ["weighted", "mean", "max"])
def test_a_text_without_tokens_is_the_zero_vector(pooling: str):
    assert tower(pooling=pooling)(IDS, MASK)[2].tolist() == [0.0, 0.0]


def test_distinct_counts_a_repeated_token_once():
    assert tower(pooling="mean", distinct=True)(IDS, MASK).tolist() == [[0.5, 0.5], [4.0, 4.0], [0.0, 0.0]]


def test_dropout_leaves_tokens_out_while_training_only():
    made = tower(pooling="mean", dropout=0.5)
    many = torch.full((1, 2000), 1)
    many[0, 1000:] = 2
    whole = torch.ones(1, 2000, dtype=torch.bool)
    torch.manual_seed(0)
    share = made.train()(many, whole)[0, 0].item()
    assert share != 0.5 and 0.4 < share < 0.6
    assert made.eval()(many, whole)[0].tolist() == [0.5, 0.5]


def test_training_can_start_from_given_token_weights():
    made = NeuralBagOfWords(4, dim=8)
    wanted = np.array([0.1, 0.5, 0.9, 0.98])
    made.start_from(wanted)
    assert made.weigh is not None
    found = torch.sigmoid(made.weigh(made.table.weight)).squeeze(1)
    assert np.allclose(found.detach().numpy(), wanted, atol=1e-5)


@pytest.mark.parametrize("pooling", ["weighted", "mean", "max"])
def test_a_gradient_reaches_every_token_that_occurs_and_no_other(pooling: str):
    made = NeuralBagOfWords(4, dim=2, pooling=pooling)  # type: ignore[arg-type]
    made.table.weight.data = TABLE.clone()
    made.train()(IDS[:1], MASK[:1]).square().sum().backward()
    assert made.table.weight.grad is not None
    assert made.table.weight.grad.abs().sum(1).gt(0).tolist() == [False, True, True, False]


@pytest.mark.parametrize("pooling", ["weighted", "mean", "max"])
def test_gradients_are_the_same_bit_for_bit_with_two_threads(pooling: str):
    def gradient() -> bytes:
        torch.manual_seed(0)
        made = NeuralBagOfWords(1000, dim=16, pooling=pooling).train()  # type: ignore[arg-type]
        ids = (torch.rand(512, 200) ** 3 * 1000).long()
        made(ids, torch.rand(512, 200) < 0.4).square().mul(torch.arange(16)).sum().backward()
        assert made.table.weight.grad is not None
        return made.table.weight.grad.numpy().tobytes()

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert len({gradient() for _ in range(8)}) == 1
    finally:
        torch.set_num_threads(threads)


def test_an_unknown_pooling_is_refused():
    with pytest.raises(DataError, match="weighted, mean and max"):
        NeuralBagOfWords(4, dim=2, pooling="median")  # type: ignore[arg-type]
