"""Fine-tuning a checkpoint: the vectors are those of inference, gradients reach what learns, what is saved is whole."""

import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from tiny_checkpoints import TEXTS, checkpoint, tokenizer
from torch import Tensor

from coderet import encoders
from coderet.corpora import sources
from coderet.encoders.pretrained import MODEL, Pretrained
from coderet.encoders.tuning import Tunable
from coderet.records import DataError
from coderet.registry import BadValue, UnknownName

TREE = pa.array(["passage tree"], pa.large_string())
SIZES: dict[str, dict[str, Any]] = {
    "Bert": {"max_position_embeddings": 64},
    "Roberta": {"max_position_embeddings": 64, "type_vocab_size": 1},
    "DistilBert": {"dim": 32, "n_heads": 4, "n_layers": 2, "hidden_dim": 64, "max_position_embeddings": 64},
    "ModernBert": {"max_position_embeddings": 64, "global_attn_every_n_layers": 2},
    "Mistral": {"max_position_embeddings": 64, "num_key_value_heads": 2, "sliding_window": None},
    "GPT2": {"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 64},
}


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """folder_of(architecture): a tiny checkpoint of it."""
    made: dict[str, Path] = {}

    def folder(architecture: str) -> Path:
        if architecture not in made:
            made[architecture] = tmp_path_factory.mktemp(architecture) / "model"
            tokenizer(checkpoint(made[architecture], architecture, **SIZES[architecture]))
        return made[architecture]

    return folder


@pytest.fixture
def bert(folder_of: Callable[[str], Path]) -> Path:
    return folder_of("Bert")


def fp32(folder: Path, **settings: Any) -> Tunable:
    return Tunable(folder, precision="fp32", **settings).train()


def vectors(encoder: Tunable, texts: pa.Array = TEXTS) -> Tensor:
    """What encoder makes of documents in training, all in one batch."""
    tokens = encoder.tokens(texts, "document")
    ids, mask = tokens.padded(np.arange(len(tokens)), fill=encoder.fill)
    made: Tensor = encoder("document", torch.from_numpy(ids), torch.from_numpy(mask))
    return made


def learn(encoder: Tunable, steps: int = 3) -> None:
    """Move vectors apart from each other, the way any objective would."""
    optimizer = torch.optim.SGD([each for each in encoder.parameters() if each.requires_grad], lr=0.1)
    for _ in range(steps):
        made = vectors(encoder, TEXTS.slice(2, 3))
        (made @ made.T).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def same(each: Tensor) -> Tensor:
    return each


def named(encoder: Tunable) -> Iterator[tuple[str, Tensor]]:
    return ((name, weights.detach().clone()) for name, weights in encoder.named_parameters())


@pytest.mark.parametrize("pooling", ["mean", "last"])
@pytest.mark.parametrize("attention", ["auto", "eager", "sdpa"])
@pytest.mark.parametrize("architecture", SIZES)
def test_vectors_in_training_are_those_of_inference(
    folder_of: Callable[[str], Path], architecture: str, attention: Any, pooling: Any
):
    folder = folder_of(architecture)
    made = vectors(fp32(folder, attention=attention, pooling=pooling))
    expected = Pretrained(folder, precision="fp32", normalise=True, pooling=pooling).encode_documents(TEXTS)
    assert made.dtype == torch.float32
    assert np.abs(made.detach().numpy() - expected).max() < 1e-5


def test_minilm_in_training_gives_its_own_vectors(minilm: Path):
    texts = pa.array(["Sort a list in place.", "def f(x):\n    return x + 1", "", "word " * 300], pa.large_string())
    expected = Pretrained(minilm, precision="fp32").encode_documents(texts)
    assert np.abs(vectors(fp32(minilm), texts).detach().numpy() - expected).max() < 1e-5
    half = vectors(Tunable(minilm, precision="bf16").train(), texts).detach().numpy()
    assert half.dtype == np.float32 and 1e-5 < np.abs(half - expected).max() < 0.02


def test_tokens_are_those_of_inference_up_to_the_limits_of_training(bert: Path):
    settings = {"max_tokens": 12, "query_prefix": "query : ", "marks_before": ["<s>", "<encoder-only>"]}
    encoder = fp32(bert, **settings, max_query_tokens=7)
    reader = Pretrained(bert, precision="fp32", **settings)
    same, read = encoder.tokens(TEXTS, "document"), reader.tokens(TEXTS, "document")
    assert same.ids.tolist() == read.ids.tolist() and same.offsets.tolist() == read.offsets.tolist()
    short = encoder.tokens(TEXTS, "query")
    assert short.lengths.max() == 7 and reader.tokens(TEXTS, "query").lengths.max() == 12
    assert short.ids[-1] == 2  # the mark at the end is kept
    assert encoder.settings["max_tokens"] == 12  # what is saved reads as far as it can


@pytest.mark.parametrize("architecture", SIZES)
def test_a_gradient_reaches_every_number_that_learns(folder_of: Callable[[str], Path], architecture: str):
    encoder = fp32(folder_of(architecture))
    vectors(encoder)[:, 0].sum().backward()
    assert [name for name, each in encoder.named_parameters() if each.requires_grad and each.grad is None] == []


@pytest.mark.parametrize("architecture", ["Bert", "ModernBert", "Mistral", "GPT2"])
def test_checkpointing_gives_equal_gradients(folder_of: Callable[[str], Path], architecture: str):
    gradients, saved = [], []
    for checkpointing in (False, True):
        encoder = fp32(folder_of(architecture), gradient_checkpointing=checkpointing)
        sizes: list[int] = []

        def note(each: Tensor, sizes: list[int] = sizes) -> Tensor:
            sizes.append(each.numel())
            return each

        with torch.autograd.graph.saved_tensors_hooks(note, same):
            made = vectors(encoder)
        made[:, 0].sum().backward()
        gradients.append([each.grad for each in encoder.parameters() if each.grad is not None])
        saved.append(sum(sizes))
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))
    assert saved[1] < saved[0] / 2  # states are made again instead of kept


def test_dropout_is_off_unless_asked_for(folder_of: Callable[[str], Path]):
    for architecture in SIZES:
        folder = folder_of(architecture)
        assert torch.equal(vectors(fp32(folder)), vectors(fp32(folder)))
        noisy = fp32(folder, dropout=0.5)
        assert not torch.equal(vectors(noisy), vectors(noisy))
        assert torch.equal(vectors(noisy.eval()), vectors(noisy))


def test_frozen_layers_keep_their_weights_and_the_others_learn(bert: Path):
    for settings, still in [
        ({"frozen_embeddings": True}, ("embeddings.", "pooler.")),
        ({"frozen_layers": 1}, ("embeddings.", "encoder.layer.0.", "pooler.")),
        ({}, ("pooler.",)),
    ]:
        encoder = fp32(bert, **settings)
        before = dict(named(encoder))
        learn(encoder)
        moved = {name.removeprefix("model.") for name, each in named(encoder) if not torch.equal(each, before[name])}
        kept = {name.removeprefix("model.") for name in before} - moved
        assert all(name.startswith(still) or name.endswith("key.bias") for name in kept)  # softmax ignores that bias
        assert not any(name.startswith(still) for name in moved)
    with pytest.raises(BadValue, match=r"frozen_layers is 3; wanted a number from 0 to 2"):
        fp32(bert, frozen_layers=3)
    with pytest.raises(DataError, match="freezes all of model; leave something to train"):
        fp32(bert, frozen_layers=2)


@pytest.mark.parametrize("architecture", SIZES)
def test_merged_adapters_give_the_vectors_of_separate_ones(
    folder_of: Callable[[str], Path], architecture: str, tmp_path: Path
):
    folder = folder_of(architecture)
    encoder = fp32(folder, lora={"rank": 4, "alpha": 16.0})
    untouched = Pretrained(folder, precision="fp32", normalise=True).encode_documents(TEXTS)
    assert np.abs(vectors(encoder).detach().numpy() - untouched).max() < 1e-5
    learn(encoder)
    separate = vectors(encoder).detach().numpy()
    encoder.save(tmp_path / "saved")
    merged = encoders.load(tmp_path / "saved").encode_documents(TEXTS)
    assert np.abs(merged - untouched).max() > 1e-3 > 1e-5 > np.abs(merged - separate).max()
    assert np.array_equal(vectors(encoder).detach().numpy(), separate)  # saving changed nothing


def test_only_adapters_learn_and_they_stand_where_they_were_asked_for(bert: Path):
    encoder = fp32(bert, lora={"rank": 2, "targets": ["query", "attention.output.dense"]}, frozen_layers=1)
    learning = [name for name, each in encoder.named_parameters() if each.requires_grad]
    assert learning and all("lora_" in name and "encoder.layer.1.attention." in name for name in learning)
    assert {name.split(".lora_")[0].split("attention.")[1] for name in learning} == {"self.query", "output.dense"}
    before = dict(named(encoder))
    learn(encoder)
    assert {name for name, each in named(encoder) if not torch.equal(each, before[name])} == set(learning)
    assert encoder.parameters_count == Pretrained(bert, precision="fp32").parameters_count


def test_adapters_that_cannot_be_are_refused_with_what_could_be(bert: Path):
    with pytest.raises(DataError, match=r"'querry', which is no linear.* known: dense, key, query, value\. Did"):
        fp32(bert, lora={"targets": ["querry"]})
    with pytest.raises(BadValue, match=r"fit\.encoder\.lora\.rank is 0; wanted a number from 1 on"):
        fp32(bert, lora={"rank": 0})
    with pytest.raises(BadValue, match=r"fit\.encoder\.lora\.rank is 'big'; wanted a whole number"):
        fp32(bert, lora={"rank": "big"})
    with pytest.raises(UnknownName, match=r"fit\.encoder\.lora\.ranks is not a setting.*Did you mean rank"):
        fp32(bert, lora={"ranks": 4})
    with pytest.raises(BadValue, match=r"fit\.encoder\.lora is 16; wanted a mapping"):
        fp32(bert, lora=16)
    with pytest.raises(DataError, match="no linear layer that is trained"):
        fp32(bert, lora={"targets": ["query"]}, frozen_layers=2)


@pytest.mark.parametrize("architecture", SIZES)
def test_what_is_saved_is_an_encoder_of_kind_pretrained_and_a_folder_of_sentence_transformers(
    folder_of: Callable[[str], Path], architecture: str, tmp_path: Path
):
    settings: dict[str, Any] = {"query_prefix": "query : ", "document_prefix": "passage : ", "pooling": "last"}
    encoder = fp32(folder_of(architecture), **settings, max_tokens=16, max_document_tokens=9)
    learn(encoder)
    encoder.save(tmp_path / "saved")
    loaded = encoders.load(tmp_path / "saved")
    assert isinstance(loaded, Pretrained) and loaded.settings == encoder.settings
    assert loaded.parameters_count == encoder.parameters_count
    short = pa.array([text for text in TEXTS.to_pylist() if len(text.split()) < 4], pa.large_string())
    assert np.abs(loaded.encode_documents(short) - vectors(encoder, short).detach().numpy()).max() < 1e-5
    sentence_transformers = pytest.importorskip("sentence_transformers")
    other = sentence_transformers.SentenceTransformer(str(tmp_path / "saved" / MODEL), device="cpu")
    assert other.max_seq_length == 16
    assert np.abs(loaded.encode_queries(TEXTS) - other.encode_query(TEXTS.to_pylist())).max() < 1e-5
    assert np.abs(loaded.encode_documents(TEXTS) - other.encode_document(TEXTS.to_pylist())).max() < 1e-5


def test_files_of_a_sentence_transformers_base_are_kept_but_what_describes_the_base_alone(
    bert: Path, sentence_folder_of: Callable[..., None], tmp_path: Path
):
    base = tmp_path / "base"
    shutil.copytree(bert, base)
    sentence_folder_of(
        base,
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "word_embedding_dimension": 32},
        ("Transformer", "Pooling", "Normalize"),
        sentence_bert_config={"max_seq_length": 16, "do_lower_case": True},
        config_sentence_transformers={"prompts": {"query": "find : ", "passage": "", "other": "x"}, "similarity": 1},
    )
    for name in ("README.md", "LICENSE", "pytorch_model.bin"):
        (base / name).write_text("of the base")
    (base / "onnx").mkdir()
    (base / "onnx" / "model.onnx").write_text("of the base")
    Tunable(base, precision="fp32", normalise=False, query_prefix="query : ").save(tmp_path / "saved")
    place = tmp_path / "saved" / MODEL
    assert {path.name for path in place.iterdir()} >= {"LICENSE", "tokenizer.json", "model.safetensors", "1_Pooling"}
    assert not {"README.md", "pytorch_model.bin", "onnx"} & {path.name for path in place.iterdir()}
    assert len(json.loads((place / "modules.json").read_text())) == 2  # no Normalize any more
    said = json.loads((place / "config_sentence_transformers.json").read_text())
    assert said == {"prompts": {"other": "x", "query": "query : ", "document": ""}, "similarity": 1}
    settings = Pretrained(place, precision="fp32").settings
    assert (settings["pooling"], settings["max_tokens"], settings["normalise"]) == ("cls", 16, False)


def test_weights_are_saved_as_they_are_trained_whatever_the_base_was_in(bert: Path, tmp_path: Path):
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer

    AutoModel.from_pretrained(bert, dtype=torch.bfloat16).save_pretrained(tmp_path / "half")
    AutoTokenizer.from_pretrained(bert).save_pretrained(tmp_path / "half")
    encoder = fp32(tmp_path / "half")
    learn(encoder, steps=1)
    encoder.save(tmp_path / "saved")
    weights = load_file(tmp_path / "saved" / MODEL / "model.safetensors")
    assert {each.dtype for each in weights.values()} == {torch.float32}
    name = "encoder.layer.1.output.dense.weight"
    assert torch.equal(weights[name], dict(encoder.model.named_parameters())[name])
    assert json.loads((tmp_path / "saved" / MODEL / "config.json").read_text())["dtype"] == "float32"


def test_a_fingerprint_follows_weights_and_settings(bert: Path):
    assert fp32(bert).fingerprint == fp32(bert).fingerprint
    assert fp32(bert).fingerprint != fp32(bert, pooling="cls").fingerprint
    tuned = fp32(bert)
    learn(tuned)
    assert tuned.fingerprint != fp32(bert).fingerprint


@pytest.mark.parametrize("lora", [None, {"rank": 2}])
def test_averaged_weights_lie_between_base_and_tuned(bert: Path, tmp_path: Path, lora: Any):
    encoder = fp32(bert, lora=lora)
    base = {name: each.double() for name, each in fp32(bert).model.named_parameters()}
    learn(encoder)
    encoder.save(tmp_path / "tuned")
    tuned = {name: each.double() for name, each in fp32(tmp_path / "tuned" / MODEL).model.named_parameters()}
    encoder.average_with_base(0.25)
    assert not any("lora" in name for name, _ in encoder.named_parameters())
    for name, each in encoder.model.named_parameters():
        assert torch.allclose(each.double(), 0.75 * tuned[name] + 0.25 * base[name], atol=1e-7)
    name = "encoder.layer.0.attention.self.query.weight"
    assert (tuned[name] - base[name]).abs().max() > 1e-4
    encoder.average_with_base(1.0)
    assert all(torch.equal(each, base[name].float()) for name, each in encoder.model.named_parameters())
    with pytest.raises(BadValue, match=r"average_with_base is 1\.5; wanted a number from 0 to 1"):
        encoder.average_with_base(1.5)


def test_training_starts_from_a_pinned_source(bert: Path, tmp_path: Path):
    source = f"file:{bert}#sha256={sources.digest(bert)}"
    settings = {"kind": "pretrained", "source": source, "precision": "fp32", "pooling": "cls", "lora": {"rank": 2}}
    encoder = encoders.trainable(settings, tmp_path / "no tokenizers", tmp_path / "work")
    expected = Pretrained(bert, precision="fp32", pooling="cls", normalise=True).encode_documents(TEXTS)
    assert np.abs(vectors(encoder).detach().numpy() - expected).max() < 1e-5
    with pytest.raises(UnknownName, match=r"fit\.encoder\.drop_out is not a setting.*Did you mean dropout"):
        encoders.trainable(settings | {"drop_out": 0.1}, tmp_path, tmp_path / "work")
    with pytest.raises(BadValue, match=r"fit\.encoder\.attention is 'flash'; wanted auto, eager, sdpa, packed"):
        encoders.trainable(settings | {"attention": "flash"}, tmp_path, tmp_path / "work")
    with pytest.raises(UnknownName, match=r"fit\.encoder\.kind is 'api'; known encoders that are trained: attention, .*nbow"):
        encoders.trainable({"kind": "api"}, tmp_path, tmp_path / "work")


def test_limits_that_do_not_fit_are_refused(bert: Path):
    with pytest.raises(DataError, match="max_tokens is 65, but the model has 64 places"):
        fp32(bert, max_tokens=65)
    with pytest.raises(BadValue, match=r"max_document_tokens is 33; the encoder itself reads 32: raise max_tokens too"):
        fp32(bert, max_tokens=32, max_document_tokens=33)
    with pytest.raises(DataError, match="no room beside 2 marks"):
        fp32(bert, max_document_tokens=2).tokens(TREE, "document")
    with pytest.raises(BadValue, match=r"fit\.encoder\.dropout is 1\.5; wanted a number from 0 to 1"):
        fp32(bert, dropout=1.5)


def test_a_base_that_cannot_be_tuned_is_refused(bert: Path, tmp_path: Path):
    from transformers import T5Config, T5Model

    with pytest.raises(DataError, match="there is no model folder"):
        fp32(tmp_path / "nothing")
    bare = tmp_path / "bare"
    shutil.copytree(bert, bare, ignore=shutil.ignore_patterns("tokenizer*", "special*"))
    with pytest.raises(DataError, match=r"bare has no tokenizer; wanted .*tokenizer\.json.*: fetch the whole"):
        fp32(bare)
    other = tmp_path / "other"
    shutil.copytree(bert, other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(
        json.dumps(config | {"model_type": "roberta", "architectures": ["RobertaModel"]})
    )
    (other / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(DataError, match=r"lacks \d+ weights of a BertModel"):
        fp32(other)
    twofold = T5Config(vocab_size=24, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4, pad_token_id=1)
    T5Model(twofold).save_pretrained(tmp_path / "t5")
    tokenizer(tmp_path / "t5")
    with pytest.raises(DataError, match="is an encoder-decoder; wanted a model that is one stack"):
        fp32(tmp_path / "t5")


def test_the_loss_of_a_checkpoint_in_half_precision_is_that_of_float32_to_its_rounding(bert: Path):
    half = Tunable(bert, precision="bf16").train()
    whole = fp32(bert)
    for encoder in (half, whole):
        vectors(encoder)[:, 0].sum().backward()
    pairs = [(a.grad, b.grad) for a, b in zip(half.parameters(), whole.parameters(), strict=True) if b.grad is not None]
    assert all(one is not None and one.dtype == torch.float32 for one, _ in pairs)
    ours, theirs = (torch.cat([pair[side].flatten() for pair in pairs]) for side in (0, 1))
    assert float(ours @ theirs / (ours.norm() * theirs.norm())) > 0.99
    assert math.isfinite(float(ours.norm()))
