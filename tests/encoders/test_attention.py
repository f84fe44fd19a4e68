"""The self-attention against transformers' BERT with the same weights."""

import torch

from coderet.encoders.attention import Attention

IDS = torch.tensor([[5, 1, 9, 9, 20, 3, 7], [8, 2, 4, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0, 0]])
MASK = IDS > 0


def reference(made: Attention) -> torch.nn.Module:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=len(made.layers),
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=12,
        type_vocab_size=1,
    )
    bert = BertModel(config, add_pooling_layer=False).eval()
    state = {
        "embeddings.word_embeddings.weight": made.table.weight,
        "embeddings.position_embeddings.weight": made.places,
        "embeddings.token_type_embeddings.weight": torch.zeros(1, 16),
        "embeddings.LayerNorm.weight": made.norm.weight,
        "embeddings.LayerNorm.bias": made.norm.bias,
    }
    names = {
        "answered": "attention.output.dense",
        "norms.0": "attention.output.LayerNorm",
        "widened": "intermediate.dense",
        "narrowed": "output.dense",
        "norms.1": "output.LayerNorm",
    }
    for number, layer in enumerate(made.layers):
        own = layer.state_dict()
        for part in ("weight", "bias"):
            asked = own[f"asked.{part}"].chunk(3)
            for name, each in zip(("query", "key", "value"), asked, strict=True):
                state[f"encoder.layer.{number}.attention.self.{name}.{part}"] = each
            for ours, theirs in names.items():
                state[f"encoder.layer.{number}.{theirs}.{part}"] = own[f"{ours}.{part}"]
    missing, unexpected = bert.load_state_dict(state, strict=False)
    assert unexpected == [] and set(missing) <= {"embeddings.position_ids", "embeddings.token_type_ids"}
    return bert


def test_it_is_bert_without_segments():
    torch.manual_seed(0)
    made = Attention(30, dim=16, heads=4, inner=24, positions=12, pooling="mean").eval()
    for weights in made.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    with torch.no_grad():
        states = reference(made)(input_ids=IDS, attention_mask=MASK.long()).last_hidden_state
        expected = (states * MASK.unsqueeze(2)).sum(1) / MASK.sum(1, keepdim=True)
        torch.testing.assert_close(made(IDS, MASK), expected, rtol=0, atol=1e-5)


def test_weights_begin_as_berts_do():
    torch.manual_seed(0)
    made = Attention(3000, dim=128)
    layer = made.layers[0]
    for weights in (made.table.weight, made.places, layer.asked.weight, layer.narrowed.weight):  # type: ignore[union-attr]
        assert 0.019 < weights.std() < 0.021  # type: ignore[operator,union-attr]
    assert not layer.asked.bias.any() and torch.equal(made.norm.weight, torch.ones(128))  # type: ignore[union-attr,operator]
