"""Case D14 on a real transformer, and the numbers of sentence-transformers as the reference."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from coderet import encoders
from coderet.encoders.pretrained import Pretrained
from coderet.records import DataError
from coderet.registry import UnknownName

WORDS = "sort a list of numbers in place def return the binary search tree".split()
CLS, SEP = 2, 3


def text(tokens: int) -> str:
    """A text that is `tokens` long with its two marks."""
    return " ".join(WORDS[place % len(WORDS)] for place in range(tokens - 2))


LENGTHS = pa.array([text(n) for n in (5, 8, 9, 50)], pa.large_string())
TEXTS = pa.array(["sort a list", "", text(9), text(30), "sort a list", text(5), text(50)], pa.large_string())


def fp32(folder: Path, **settings: object) -> Pretrained:
    return Pretrained(folder, precision="fp32", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("pooling", ["last", "cls", "mean"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch", [1, 2, 4, 7])
def test_a_vector_depends_on_its_text_alone_and_order_is_kept(
    tiny_models: Callable[..., Path], pooling: str, side: str, batch: int
):
    encoder = fp32(tiny_models(0, side), pooling=pooling, max_tokens=8)
    together = encoder.encode_documents(TEXTS)
    parts = [encoder.encode_documents(TEXTS.slice(start, batch)) for start in range(0, len(TEXTS), batch)]
    assert np.array_equal(np.concatenate(parts), together)
    assert np.array_equal(together[0], together[4])
    assert len(np.unique(together, axis=0)) == 3  # the long texts are one once they are cut


@pytest.mark.parametrize("pooling", ["last", "cls", "mean"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_vectors_are_those_of_each_text_alone_without_any_padding(
    tiny_models: Callable[..., Path], pooling: str, side: str
):
    import torch

    encoder = fp32(tiny_models(0, side), pooling=pooling, max_tokens=8, normalise=False)
    tokens = encoder.tokens(TEXTS, "document")
    for row, vector in enumerate(encoder.encode_documents(TEXTS)):
        ids = torch.tensor([tokens.ids[tokens.offsets[row] : tokens.offsets[row + 1]].tolist()])
        with torch.no_grad():
            states = encoder.model(input_ids=ids).last_hidden_state[0]
        expected = {"last": states[-1], "cls": states[0], "mean": states.mean(0)}[pooling]
        assert np.allclose(vector, expected.numpy(), atol=1e-5)


def test_truncation_keeps_the_marks_and_is_counted(tiny_models: Callable[..., Path]):
    tokens = fp32(tiny_models(), max_tokens=8).tokens(LENGTHS, "document")
    assert tokens.lengths.tolist() == [5, 8, 8, 8]
    assert tokens.ids[tokens.offsets[:-1]].tolist() == [CLS] * 4
    assert tokens.ids[tokens.offsets[1:] - 1].tolist() == [SEP] * 4
    assert (tokens.cut, tokens.lost) == (2, 1 + 42)


def test_a_prefix_is_never_what_gets_cut(tiny_models: Callable[..., Path]):
    encoder = fp32(tiny_models(), max_tokens=8, document_prefix="passage: ")
    tokens = encoder.tokens(LENGTHS, "document")
    passage = encoder.tokenizer("passage :", add_special_tokens=False)["input_ids"]
    for start in tokens.offsets[:-1]:
        assert tokens.ids[start : start + 3].tolist() == [CLS, *passage]
    assert tokens.lengths.tolist() == [7, 8, 8, 8] and (tokens.cut, tokens.lost) == (3, 2 + 3 + 44)


def test_a_prefix_that_leaves_no_room_is_refused(tiny_models: Callable[..., Path]):
    with pytest.raises(DataError, match="no room beside 2 marks and a prefix of 2"):
        fp32(tiny_models(), max_tokens=4, query_prefix="query: ").encode_queries(LENGTHS)


def test_an_empty_text_is_read_as_its_marks(tiny_models: Callable[..., Path]):
    encoder = fp32(tiny_models(), normalise=True)
    assert encoder.tokens(pa.array([""]), "query").ids.tolist() == [CLS, SEP]
    assert np.linalg.norm(encoder.encode_queries(pa.array([""]))) == pytest.approx(1)
    assert encoder.encode_queries(pa.array([], pa.large_string())).shape == (0, 32)


def test_a_plain_folder_is_pooled_by_the_mean_up_to_the_models_places(tiny_models: Callable[..., Path]):
    settings = fp32(tiny_models()).settings
    assert (settings["pooling"], settings["normalise"], settings["max_tokens"]) == ("mean", False, 64)


def test_a_sentence_transformers_folder_says_how_it_is_used(
    tiny_models: Callable[..., Path], sentence_folder_of: Callable[..., None], tmp_path: Path
):
    shutil.copytree(tiny_models(), tmp_path / "model")
    sentence_folder_of(
        tmp_path / "model",
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
        ("Transformer", "Pooling", "Normalize"),
        sentence_bert_config={"max_seq_length": 16},
        config_sentence_transformers={"prompts": {"query": "query: ", "passage": "passage: "}},
    )
    settings = fp32(tmp_path / "model").settings
    assert {
        key: settings[key] for key in ("pooling", "normalise", "max_tokens", "query_prefix", "document_prefix")
    } == {
        "pooling": "cls",
        "normalise": True,
        "max_tokens": 16,
        "query_prefix": "query: ",
        "document_prefix": "passage: ",
    }
    own = fp32(tmp_path / "model", pooling="last", normalise=False, max_tokens=9, query_prefix="").settings
    assert (own["pooling"], own["normalise"], own["max_tokens"], own["query_prefix"]) == ("last", False, 9, "")


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken", "max", "weightedmean"])
def test_vectors_are_those_of_sentence_transformers(
    tiny_models: Callable[..., Path], sentence_folder_of: Callable[..., None], tmp_path: Path, pooling: str
):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    shutil.copytree(tiny_models(), tmp_path / "model")
    sentence_folder_of(
        tmp_path / "model",
        {"embedding_dimension": 32, "pooling_mode": pooling},
        ("Transformer", "Pooling", "Normalize"),
        sentence_bert_config={"max_seq_length": 16, "do_lower_case": False},
        config_sentence_transformers={"prompts": {"query": "query: ", "document": "passage: "}},
    )
    reference = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    encoder = fp32(tmp_path / "model")
    texts = TEXTS.to_pylist()
    assert np.abs(encoder.encode_queries(TEXTS) - reference.encode_query(texts)).max() < 1e-5
    assert np.abs(encoder.encode_documents(TEXTS) - reference.encode_document(texts)).max() < 1e-5


@pytest.mark.parametrize(
    ("pooling", "modules", "message"),
    [
        ({"pooling_mode": "mean"}, ("Transformer", "Pooling", "Dense"), "made of Transformer, Pooling, Dense"),
        ({"pooling_mode": "mean_sqrt_len_tokens"}, ("Transformer", "Pooling"), "pools by mean_sqrt_len_tokens"),
        ({"pooling_mode": ["mean", "max"]}, ("Transformer", "Pooling"), "pools by mean and max"),
        ({"include_prompt": False}, ("Transformer", "Pooling"), "leaves the prompt out"),
    ],
)
def test_a_folder_that_would_be_used_wrongly_is_refused(
    tiny_models: Callable[..., Path],
    sentence_folder_of: Callable[..., None],
    tmp_path: Path,
    pooling: dict[str, object],
    modules: tuple[str, ...],
    message: str,
):
    shutil.copytree(tiny_models(), tmp_path / "model")
    sentence_folder_of(tmp_path / "model", pooling, modules)
    with pytest.raises(DataError, match=message):
        fp32(tmp_path / "model")


def test_only_the_first_dimensions_are_kept_before_normalisation(tiny_models: Callable[..., Path]):
    whole = fp32(tiny_models(), normalise=False).encode_documents(TEXTS)
    cut = fp32(tiny_models(), normalise=True, truncate_dim=8)
    expected = whole[:, :8] / np.linalg.norm(whole[:, :8], axis=1, keepdims=True)
    assert cut.dim == 8 and np.allclose(cut.encode_documents(TEXTS), expected, atol=1e-6)


def test_half_precision_gives_nearly_the_same_vectors_of_length_one(tiny_models: Callable[..., Path]):
    half = Pretrained(tiny_models(), precision="bf16", normalise=True).encode_documents(TEXTS)
    whole = fp32(tiny_models(), normalise=True).encode_documents(TEXTS)
    assert half.dtype == np.float32 and np.allclose(np.linalg.norm(half, axis=1), 1, atol=1e-6)
    assert not np.array_equal(half, whole) and (half * whole).sum(1).min() > 0.99


def test_a_saved_encoder_loads_from_its_folder_alone(tiny_models: Callable[..., Path], tmp_path: Path):
    made = Pretrained(tiny_models(), max_tokens=9, query_prefix="query: ")
    made.save(tmp_path / "saved")
    (tmp_path / "saved").rename(tmp_path / "moved")
    loaded = encoders.load(tmp_path / "moved")
    assert loaded.fingerprint == made.fingerprint
    assert np.array_equal(loaded.encode_queries(TEXTS), made.encode_queries(TEXTS))


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_model_file_that_is_cut_short_is_refused(tiny_models: Callable[..., Path], tmp_path: Path, name: str):
    fp32(tiny_models()).save(tmp_path / "saved")
    path = tmp_path / "saved" / "model" / name
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="does not hold a whole model"):
        encoders.load(tmp_path / "saved")


def test_settings_that_cannot_be_are_refused(tiny_models: Callable[..., Path]):
    for settings, message in [
        ({"pooling": "lst"}, "Did you mean last"),
        ({"truncate_dim": 33}, "this model has 32 dimensions"),
        ({"max_tokens": 65}, "the model has 64 places"),
    ]:
        with pytest.raises(DataError, match=message):
            fp32(tiny_models(), **settings)
    with pytest.raises(DataError, match="known: auto, fp32, bf16"):
        Pretrained(tiny_models(), precision="fp8")  # type: ignore[arg-type]


def test_an_encoder_is_prepared_from_a_pinned_source(tiny_models: Callable[..., Path], tmp_path: Path):
    from coderet.corpora import sources

    folder = tmp_path / "published" / "inner"
    shutil.copytree(tiny_models(), folder)
    source = f"file:{folder.parent}#sha256={sources.digest(folder.parent)}"
    settings = {"kind": "pretrained", "source": source, "folder": "inner", "pooling": "cls", "precision": "fp32"}
    encoder = encoders.prepare(settings, tmp_path / "work")
    assert np.array_equal(encoder.encode_queries(TEXTS), fp32(folder, pooling="cls").encode_queries(TEXTS))
    with pytest.raises(DataError, match="has no folder other"):
        encoders.prepare(settings | {"folder": "other"}, tmp_path / "work")
    with pytest.raises(UnknownName, match="Did you mean pooling"):
        encoders.prepare(settings | {"poling": "cls"}, tmp_path / "work")
    with pytest.raises(UnknownName, match=r"fit\.encoder\.kind is 'nbow'"):
        encoders.prepare({"kind": "nbow"}, tmp_path / "work")


def test_minilm_gives_the_vectors_of_sentence_transformers(minilm: Path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    texts = ["Sort a list in place.", "def f(x):\n    return x + 1", "", "é → 好", "word " * 300]
    encoder = fp32(minilm)
    reference = sentence_transformers.SentenceTransformer(str(minilm), device="cpu").encode(texts)
    assert np.abs(encoder.encode_documents(pa.array(texts)) - reference).max() < 1e-5
    assert (encoder.dim, encoder.settings["max_tokens"], encoder.parameters_count) == (384, 256, 22_713_216)


@pytest.mark.parametrize("precision", ["fp32", "auto"])
def test_minilms_vectors_depend_on_each_text_alone(minilm: Path, precision: str):
    encoder = Pretrained(minilm, precision=precision)  # type: ignore[arg-type]
    texts = pa.array([f"text number {n} " * (n % 9) for n in range(24)])
    alone = np.concatenate([encoder.encode_documents(texts.slice(row, 1)) for row in range(len(texts))])
    together = encoder.encode_documents(texts)
    if precision == "fp32":
        assert np.array_equal(together, alone)
    else:  # the matrix units of some processors add up in an order that depends on how many rows there are
        assert np.abs(together - alone).max() < 4e-3  # what bf16 rounds numbers around one half by
        assert np.array_equal(encoder.encode_documents(texts), together)


def test_reading_the_tables_of_encoders_and_training_brings_no_torch_with_it():
    code = "import sys, coderet.encoders, coderet.training; print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
