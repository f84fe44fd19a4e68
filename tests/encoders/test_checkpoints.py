"""The architectures that the papers compare, as tiny checkpoints with random weights in the hub's own layout.

What sentence-transformers makes of the same folder is the reference.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_checkpoints import TEXTS, WORDS, checkpoint, tokenizer

from coderet import encoders
from coderet.corpora.sources import SourceError
from coderet.encoders.pretrained import Pretrained
from coderet.records import DataError

REVISION, CODE_REVISION = "0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"
Hub = Callable[[str, Path, str], str]


@pytest.fixture(scope="session")
def run_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where transformers keeps the code that it runs: one place a process, from which it is imported."""
    return tmp_path_factory.mktemp("code")


@pytest.fixture
def hub(tmp_path: Path, run_code: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """hub(id, folder, revision): put folder into a cache of the hub client's layout; the line that names it."""
    from huggingface_hub import constants
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(run_code))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    def put(name: str, folder: Path, revision: str = REVISION) -> str:
        repository = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        (repository / "blobs").mkdir(parents=True)
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            blob = repository / "blobs" / hashlib.sha256(path.read_bytes()).hexdigest()
            shutil.copyfile(path, blob)
            place = repository / "snapshots" / revision / path.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(blob)
        return f"hub:{name}@{revision}"

    return put


def prepared(source: str, **settings: Any) -> Pretrained:
    """The encoder of an entry, saved and loaded again as the stages do it."""
    made = encoders.prepare({"kind": "pretrained", "source": source, "precision": "fp32", **settings}, Path("work"))
    shutil.rmtree("saved", ignore_errors=True)
    made.save(Path("saved"))
    fingerprint = made.fingerprint
    shutil.rmtree("work")
    loaded: Pretrained = encoders.load(Path("saved"))
    assert loaded.fingerprint == fingerprint
    return loaded


def reference(folder: Path, **settings: Any) -> Any:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu", **settings)


def agree(encoder: Pretrained, other: Any, query: str = "", document: str = "") -> None:
    texts = TEXTS.to_pylist()
    for batch in (1, 4):
        queries = other.encode(texts, prompt=query or None, batch_size=batch)
        documents = other.encode(texts, prompt=document or None, batch_size=batch)
        assert np.abs(encoder.encode_queries(TEXTS) - queries).max() < 1e-5
        assert np.abs(encoder.encode_documents(TEXTS) - documents).max() < 1e-5


def test_bge_and_gist_take_the_first_token_normalised_with_an_instruction_before_queries(
    hub: Hub, tmp_path: Path, sentence_folder_of: Callable[..., None]
):
    tokenizer(checkpoint(tmp_path / "m", "Bert", max_position_embeddings=64))
    sentence_folder_of(
        tmp_path / "m",
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "word_embedding_dimension": 32},
        ("Transformer", "Pooling", "Normalize"),
        sentence_bert_config={"max_seq_length": 16, "do_lower_case": True},
    )
    (tmp_path / "m" / "2_Normalize").mkdir()
    source = hub("BAAI/bge-tiny", tmp_path / "m")
    agree(prepared(source, query_prefix="find code : "), reference(tmp_path / "m"), query="find code : ")
    paper = prepared(source, query_prefix="")
    agree(paper, reference(tmp_path / "m"))
    assert paper.settings["max_tokens"] == 16 and paper.settings["pooling"] == "cls"


def test_e5_takes_the_mean_with_a_prefix_on_either_side(hub: Hub, tmp_path: Path):
    tokenizer(checkpoint(tmp_path / "m", "Bert", max_position_embeddings=64))
    source = hub("intfloat/e5-tiny", tmp_path / "m")
    encoder = prepared(
        source,
        pooling="mean",
        normalise=True,
        max_tokens=20,
        query_prefix="query: ",
        document_prefix="passage: ",
    )
    other = reference(tmp_path / "m")
    other.max_seq_length = 20
    texts = TEXTS.to_pylist()
    for vectors, prompt in ((encoder.encode_queries(TEXTS), "query: "), (encoder.encode_documents(TEXTS), "passage: ")):
        assert np.abs(vectors - other.encode(texts, prompt=prompt, normalize_embeddings=True)).max() < 1e-5


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_codebert_is_a_plain_roberta_whose_last_places_are_not_for_tokens(hub: Hub, tmp_path: Path, pooling: str):
    tokenizer(checkpoint(tmp_path / "m", "Roberta", max_position_embeddings=22, type_vocab_size=1))
    encoder = prepared(hub("microsoft/codebert-tiny", tmp_path / "m"), pooling=pooling)
    assert encoder.settings["max_tokens"] == 20  # positions begin behind that of padding
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from sentence_transformers.models import Pooling, Transformer

    words = Transformer(str(tmp_path / "m"), max_seq_length=20)
    modules = [words, Pooling(32, pooling_mode=pooling)]
    agree(encoder, sentence_transformers.SentenceTransformer(modules=modules, device="cpu"))
    with pytest.raises(DataError, match="max_tokens is 21, but the model has 20 places"):
        prepared(hub("microsoft/codebert-other", tmp_path / "m"), max_tokens=21)


def test_unixcoder_reads_its_mode_before_every_text(hub: Hub, tmp_path: Path):
    import torch

    tokenizer(checkpoint(tmp_path / "m", "Roberta", max_position_embeddings=34, type_vocab_size=1))
    encoder = prepared(
        hub("microsoft/unixcoder-tiny", tmp_path / "m"),
        marks_before=["<s>", "<encoder-only>", "</s>"],
        max_tokens=16,
    )
    tokens = encoder.tokens(TEXTS, "document")
    starts, ends = tokens.offsets[:-1], tokens.offsets[1:]
    assert [tokens.ids[start : start + 3].tolist() for start in starts] == [[0, 4, 2]] * len(TEXTS)
    assert tokens.ids[ends - 1].tolist() == [2] * len(TEXTS) and tokens.lengths.max() == 16
    for row, vector in enumerate(encoder.encode_documents(TEXTS)):
        ids = torch.tensor([tokens.ids[starts[row] : ends[row]].tolist()])
        with torch.no_grad():
            expected = encoder.model(input_ids=ids).last_hidden_state[0].mean(0).numpy()
        assert np.abs(vector - expected).max() < 1e-5
    with pytest.raises(DataError, match=r"'<encoder>' is no token of .*Did you mean <encoder-only>"):
        Pretrained(tmp_path / "m", marks_before=["<encoder>"])


@pytest.mark.parametrize("side", ["left", "right"])
def test_sfr_mistral_takes_the_last_token_whatever_side_is_padded(
    hub: Hub, tmp_path: Path, sentence_folder_of: Callable[..., None], side: str
):
    sizes = {"max_position_embeddings": 64, "num_key_value_heads": 2, "sliding_window": None}
    tokenizer(checkpoint(tmp_path / "m", "Mistral", **sizes), padding_side=side)
    instruction = "instruct : given code find\nquery : "
    sentence_folder_of(
        tmp_path / "m",
        {"pooling_mode_lasttoken": True, "pooling_mode_mean_tokens": False, "word_embedding_dimension": 32},
        ("Transformer", "Pooling", "Normalize"),
        sentence_bert_config={"max_seq_length": 40},
    )
    (tmp_path / "m" / "2_Normalize").mkdir()
    source = hub("Salesforce/SFR-tiny", tmp_path / "m")
    agree(prepared(source, query_prefix=instruction), reference(tmp_path / "m"), query=instruction)


def test_an_end_mark_that_a_tokenizer_does_not_set_can_be_asked_for(hub: Hub, tmp_path: Path):
    sizes = {"max_position_embeddings": 64, "num_key_value_heads": 2}
    for name, marks in (("with", "<s> $A </s>"), ("without", "<s> $A")):
        tokenizer(checkpoint(tmp_path / name, "Mistral", **sizes), marks)
    whole = prepared(hub("own/with", tmp_path / "with"), pooling="last").encode_documents(TEXTS)
    bare = hub("own/without", tmp_path / "without")
    assert np.abs(prepared(bare, pooling="last").encode_documents(TEXTS) - whole).max() > 1e-3
    assert np.array_equal(prepared(bare, pooling="last", marks_after=["</s>"]).encode_documents(TEXTS), whole)


def test_weights_that_are_not_there_are_not_made_up(tmp_path: Path):
    from safetensors.torch import load_file, save_file

    tokenizer(checkpoint(tmp_path / "m", "Bert", max_position_embeddings=64))
    weights = load_file(tmp_path / "m" / "model.safetensors")
    weights = {name: each for name, each in weights.items() if not name.startswith("pooler.")}
    save_file(weights, tmp_path / "m" / "model.safetensors", metadata={"format": "pt"})
    Pretrained(tmp_path / "m")  # no vector is made of the pooler
    del weights["encoder.layer.1.attention.self.query.weight"]
    save_file(weights, tmp_path / "m" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(DataError, match=r"lacks 1 weights of a BertModel, such as encoder\.layer\.1"):
        Pretrained(tmp_path / "m")


# Checkpoints with code of their own. This one is an imagined encoder that adds a slope of distance to its attention,
# which it computes and does not save, and asks transformers for what version 5 has no more.

CONFIGURATION = """
from transformers import PretrainedConfig

class SlopeConfig(PretrainedConfig):
    model_type = "bert"

    def __init__(self, vocab_size=8, hidden_size=8, max_position_embeddings=64, **kwargs):
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        self.max_position_embeddings = max_position_embeddings
        super().__init__(**kwargs)
"""
MODEL = """
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput
from transformers.modeling_utils import Conv1D, PreTrainedModel
from transformers.pytorch_utils import find_pruneable_heads_and_indices, prune_linear_layer

from .configuration_slope import SlopeConfig

class SlopeModel(PreTrainedModel):
    config_class = SlopeConfig

    def __init__(self, config):
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.mix = Conv1D(config.hidden_size, config.hidden_size)
        places = torch.arange(config.max_position_embeddings, dtype=torch.float32)
        self.register_buffer("slope", -(places[:, None] - places[None]).abs() / 2, persistent=False)
        self.init_weights()

    def _init_weights(self, module):
        pass

    def forward(self, input_ids=None, attention_mask=None, head_mask=None):
        head_mask = self.get_head_mask(head_mask, self.config.num_hidden_layers)
        mask = self.get_extended_attention_mask(attention_mask, input_ids.shape)[:, 0]
        words = self.words(input_ids)
        length = input_ids.shape[1]
        scores = words @ words.transpose(1, 2) + self.slope[:length, :length] + mask
        return BaseModelOutput(last_hidden_state=self.mix(scores.softmax(-1) @ words))
"""


def with_code(folder: Path, where: str = "") -> tuple[np.ndarray, np.ndarray]:
    """A checkpoint whose config names its classes in the repository where; its two weights."""
    from safetensors.numpy import save_file

    random = np.random.default_rng(0)
    words = random.normal(size=(len(WORDS), 8)).astype(np.float32)
    mix = random.normal(size=(8, 8)).astype(np.float32)
    folder.mkdir()
    weights = {"words.weight": words, "mix.weight": mix, "mix.bias": np.zeros(8, np.float32)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    places = {"AutoConfig": "configuration_slope.SlopeConfig", "AutoModel": "modeling_slope.SlopeModel"}
    config = {"model_type": "bert", "vocab_size": len(WORDS), "hidden_size": 8, "max_position_embeddings": 64}
    config |= {"num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8}
    config |= {"architectures": ["SlopeModel"], "auto_map": {key: where + place for key, place in places.items()}}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer(folder)
    return words, mix


def code(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "configuration_slope.py").write_text(CONFIGURATION)
    (folder / "modeling_slope.py").write_text(MODEL)
    return folder


def by_hand(ids: Sequence[int], words: np.ndarray, mix: np.ndarray) -> np.ndarray:
    vectors = words[np.asarray(ids)]
    places = np.arange(len(ids))
    scores = vectors @ vectors.T - np.abs(places[:, None] - places[None]) / 2
    weights = np.exp(scores - scores.max(1, keepdims=True))
    mean: np.ndarray = (weights / weights.sum(1, keepdims=True) @ vectors @ mix).mean(0)
    return mean


@pytest.mark.parametrize("elsewhere", [False, True])
def test_code_of_a_checkpoint_is_run_if_asked_for_and_gives_what_it_would_by_hand(
    hub: Hub, tmp_path: Path, elsewhere: bool
):
    words, mix = with_code(tmp_path / "m", "own/slope-code--" if elsewhere else "")
    settings: dict[str, Any] = {"trust_remote_code": True, "pooling": "mean"}
    if elsewhere:
        settings["code_source"] = hub("own/slope-code", code(tmp_path / "code"), CODE_REVISION)
    else:
        code(tmp_path / "m")
    encoder = prepared(hub("own/slope", tmp_path / "m"), **settings)
    tokens = encoder.tokens(TEXTS, "document")
    for row, vector in enumerate(encoder.encode_documents(TEXTS)):
        ids = tokens.ids[tokens.offsets[row] : tokens.offsets[row + 1]].tolist()
        assert np.abs(vector - by_hand(ids, words, mix)).max() < 1e-5


def test_code_is_part_of_the_fingerprint(hub: Hub, tmp_path: Path):
    with_code(tmp_path / "m")
    settings = {"trust_remote_code": True}
    first = prepared(hub("own/one", code(tmp_path / "m")), **settings).fingerprint
    (tmp_path / "m" / "modeling_slope.py").write_text(MODEL.replace("/ 2", "/ 3"))
    assert prepared(hub("own/two", tmp_path / "m"), **settings).fingerprint != first


def test_code_that_nobody_asked_for_is_not_run_and_not_left_out_in_silence(hub: Hub, tmp_path: Path):
    with_code(tmp_path / "m")
    source = hub("own/slope", code(tmp_path / "m"))
    with pytest.raises(DataError, match=r"brings code of its own \(configuration_slope.*set trust_remote_code"):
        prepared(source)
    with pytest.raises(DataError, match=r"lacks \d+ weights of a BertModel"):
        prepared(source, trust_remote_code=False)


def test_code_that_lies_elsewhere_is_asked_for_and_pinned(hub: Hub, tmp_path: Path):
    with_code(tmp_path / "m", "own/slope-code--")
    source = hub("own/slope", tmp_path / "m")
    with pytest.raises(DataError, match="lies in own/slope-code; wanted code_source: hub:own/slope-code@<commit>"):
        prepared(source, trust_remote_code=True)
    with pytest.raises(SourceError, match="it names no commit"):
        prepared(source, trust_remote_code=True, code_source="hub:own/slope-code")


def test_code_that_was_not_fetched_is_missed(hub: Hub, tmp_path: Path):
    with_code(tmp_path / "m")
    with pytest.raises(DataError, match=r"lacks configuration_slope\.py, modeling_slope\.py; add \?include=\*\.py"):
        prepared(hub("own/slope", tmp_path / "m"), trust_remote_code=True)


def test_code_that_does_not_run_says_what_to_do(hub: Hub, tmp_path: Path):
    with_code(tmp_path / "m")
    (code(tmp_path / "m") / "modeling_slope.py").write_text("from transformers.gone import Gone\n" + MODEL)
    # A class of the configuration that transformers has met keeps the class of the model that it was met with.
    (tmp_path / "m" / "configuration_slope.py").write_text(CONFIGURATION + "# another\n")
    with pytest.raises(DataError, match=r"may not run with transformers .* kind api"):
        prepared(hub("own/slope", tmp_path / "m"), trust_remote_code=True)
