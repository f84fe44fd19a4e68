"""What holds for every architecture that reads tokens in their order: a text's vector is its own."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from coderet.encoders.attention import Attention
from coderet.encoders.base import DualEncoder
from coderet.encoders.convolution import Convolution
from coderet.encoders.recurrent import Recurrent
from coderet.encoders.sequences import SequenceTower
from coderet.encoders.tokenizer import Tokens, WordTokenizer
from coderet.records import DataError
from coderet.registry import BadValue

SMALL = {
    "convolution": {"dim": 16, "width": 4, "positions": 40},
    "recurrent": {"dim": 16},
    "attention": {"dim": 16, "heads": 4, "inner": 32, "positions": 40},
}
TOWERS = {"convolution": Convolution, "recurrent": Recurrent, "attention": Attention}
KINDS = sorted(TOWERS)
LENGTHS = (5, 0, 33, 1, 16, 17, 40)
TEXTS = [torch.randint(1, 50, (length,), generator=torch.Generator().manual_seed(length)) for length in LENGTHS]


def tower(kind: str, **settings: object) -> SequenceTower:
    torch.manual_seed(0)
    made = TOWERS[kind](50, **SMALL[kind] | settings)  # type: ignore[arg-type]
    for weights in made.parameters():  # larger than at the start: an effect that is to be seen must not be rounded away
        torch.nn.init.normal_(weights, std=0.4)
    return made.eval()


def padded(texts: list[torch.Tensor], side: str = "right", more: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """ids and mask; padding holds ids of real tokens, so that whatever looks at it shows."""
    width = max(max(map(len, texts)), 1) + more
    ids, mask = torch.full((len(texts), width), 7), torch.zeros(len(texts), width, dtype=torch.bool)
    for row, text in enumerate(texts):
        places = slice(0, len(text)) if side == "right" else slice(width - len(text), width)
        ids[row, places], mask[row, places] = text, True
    return ids, mask


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_vector_depends_neither_on_batch_companions_nor_on_padding(kind: str, side: str):
    made = tower(kind)
    with torch.no_grad():
        alone = torch.cat([made(*padded([text])) for text in TEXTS])
        together = made(*padded(TEXTS, side, more=9))
    assert alone.abs().max() > 0.1
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_read_in_one_part_as_on_a_graphics_processor_gives_the_same(kind: str, monkeypatch: pytest.MonkeyPatch):
    made, batch = tower(kind), padded(TEXTS, "left")
    with torch.no_grad():
        parted = made(*batch)
        monkeypatch.setattr(made, "_parts", lambda lengths, width: [(torch.arange(len(lengths)), width)])
        torch.testing.assert_close(made(*batch), parted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_without_tokens_is_the_zero_vector_and_spoils_no_gradient(kind: str):
    made = tower(kind).train()
    vectors = made(*padded(TEXTS))
    assert not vectors[1].any() and vectors[0].any()
    vectors.square().sum().backward()
    assert all(torch.isfinite(each.grad).all() for each in made.parameters())  # type: ignore[arg-type]
    assert not made(*padded(TEXTS[1:2])).any()


@pytest.mark.parametrize("kind", KINDS)
def test_no_texts_give_no_vectors(kind: str):
    assert tower(kind)(torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, 3, dtype=torch.bool)).shape == (0, 16)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_tokens_is_seen(kind: str):
    made, (ids, mask) = tower(kind), padded(TEXTS[:1])
    with torch.no_grad():
        assert (made(ids, mask) - made(ids.flip(1), mask)).abs().max() > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_learns(kind: str):
    made = tower(kind).train()
    made(*padded([torch.arange(1, 41)])).mul(torch.arange(16)).sum().backward()
    for name, weights in made.named_parameters():
        assert weights.grad is not None and weights.grad.abs().sum() > 0, name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["mean", "max", "cls", "last"])
def test_every_pooling_gives_another_vector(kind: str, pooling: str):
    with torch.no_grad():
        ids, mask = padded(TEXTS[2:3])
        made = tower(kind, pooling=pooling)(ids, mask)
        assert (made - tower(kind)(ids, mask)).abs().max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_learned_weight_of_zero_is_a_plain_mean(kind: str):
    made, mean = tower(kind), tower(kind, pooling="mean")
    mean.load_state_dict({name: each for name, each in made.state_dict().items() if not name.startswith("pool.")})
    made.pool.weigh.weight.data.zero_()  # type: ignore[attr-defined]
    with torch.no_grad():
        torch.testing.assert_close(made(*padded(TEXTS)), mean(*padded(TEXTS)))


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_drawn_in_training_only_and_can_be_switched_off(kind: str):
    batch = padded(TEXTS)
    none = {"dropout": 0.0, "table_dropout": 0.0} | ({"attention_dropout": 0.0} if kind == "attention" else {})
    still = tower(kind, **none)
    with torch.no_grad():
        torch.testing.assert_close(still.train()(*batch), still.eval()(*batch), rtol=0, atol=1e-5)
        for name in none:
            made = tower(kind, **none | {name: 0.5})
            assert (made.train()(*batch) - made.eval()(*batch)).abs().max() > 1e-2, name
            assert torch.equal(made.eval()(*batch), still.eval()(*batch))


def test_the_tables_dropout_leaves_the_same_numbers_out_of_every_occurrence_of_a_token():
    class Bare(SequenceTower):
        def read(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return tokens

    torch.manual_seed(0)
    made = Bare(50, 64, "mean", 0.25).train()
    ids = torch.full((3, 20), 7)
    one, other, third = made(ids, torch.arange(20) < torch.tensor([[20], [3], [9]]))
    left = one != 0
    assert 8 < (~left).sum() < 24
    torch.testing.assert_close(one, made.table.weight[7] * left / 0.75)
    torch.testing.assert_close(other, one)
    torch.testing.assert_close(third, one)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_the_same_bit_for_bit_with_two_threads(kind: str):
    def gradient() -> bytes:
        made = tower(kind).train()
        torch.manual_seed(1)
        made(torch.randint(1, 50, (64, 40)), torch.rand(64, 40) < 0.5).square().sum().backward()
        return b"".join(each.grad.numpy().tobytes() for each in made.parameters())  # type: ignore[union-attr]

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert len({gradient() for _ in range(3)}) == 1
    finally:
        torch.set_num_threads(threads)


WORDS = WordTokenizer([f"w{a}{b}" for a in "abcdefg" for b in "abcdefg"])


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_gives_a_text_the_same_vector_whatever_else_it_is_given(kind: str):
    torch.manual_seed(0)
    settings = {"kind": kind, **SMALL[kind], "max_query_tokens": 9, "max_document_tokens": 40}
    made = DualEncoder.build(WORDS, settings)
    tokens = Tokens.of([each.tolist() for each in TEXTS])
    together = made.encode_tokens(tokens, "document")
    for row, text in enumerate(TEXTS):
        alone = made.encode_tokens(Tokens.of([text.tolist()]), "document")
        np.testing.assert_allclose(alone[0], together[row], rtol=0, atol=1e-6)
    assert np.array_equal(made.encode_tokens(tokens, "document"), together)
    assert made.encode_queries(pa.array([], pa.large_string())).shape == (0, 16)


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("convolution", {"layers": 0}, "layers is 0; wanted a number from 1"),
        ("convolution", {"width": 0}, "width is 0; wanted a number from 1"),
        ("convolution", {"dropout": 1.0}, "dropout is 1.0; wanted a number from 0"),
        ("recurrent", {"dim": 15}, "dim is 15; wanted an even number"),
        ("recurrent", {"layers": 0}, "layers is 0; wanted"),
        ("recurrent", {"table_dropout": -0.1}, "table_dropout is -0.1; wanted"),
        ("attention", {"heads": 5}, "dim is 16; wanted a multiple of heads, which is 5"),
        ("attention", {"inner": 0}, "inner is 0; wanted"),
        ("attention", {"attention_dropout": 1.0}, "attention_dropout is 1.0; wanted"),
        ("attention", {"dim": 0}, "dim is 0; wanted"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(kind: str, settings: dict[str, object], said: str):
    with pytest.raises(BadValue, match=said):
        tower(kind, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_pooling_is_refused(kind: str):
    with pytest.raises(DataError, match=r"pooling is 'men'; known: weighted, mean, max, cls, last\. Did you mean mean"):
        tower(kind, pooling="men")


@pytest.mark.parametrize("kind", ["convolution", "attention"])
@pytest.mark.parametrize("side", ["query", "document"])
def test_a_limit_of_tokens_beyond_the_positions_is_refused(kind: str, side: str):
    limits = {"max_query_tokens": 40, "max_document_tokens": 40}
    DualEncoder.build(WORDS, {"kind": kind, **SMALL[kind], **limits})
    with pytest.raises(BadValue, match=rf"max_{side}_tokens is 41, but its tower has positions for 40 tokens; lower"):
        DualEncoder.build(WORDS, {"kind": kind, **SMALL[kind], **limits, f"max_{side}_tokens": 41})
