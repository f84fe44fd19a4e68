"""A static encoder is a table and a mean, and sentence-transformers reads it alike."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from coderet import encoders
from coderet.corpora import sources
from coderet.encoders.static import TOKENIZER, WEIGHTS, Static, over_code_words
from coderet.encoders.tokenizer import BpeTokenizer, train_bpe
from coderet.records import Corpus, DataError, documents_batch
from coderet.registry import BadValue
from coderet.retrievers.dense import Dense
from coderet.words import code_words

TEXTS = [
    "Sort the list of numbers in place.",
    "def getHTTPResponse_v2(self, aURL):\n    return HTTPServer2.open(aURL)  # <pad> <unknown>",
    "Größe der Überschrift lesen: straßeÉcole ñandúTest ABΓδΕ",
    "x1y2Z = [3, 4.5e6] * snake_case__name",
    "",
    "%% -- ()",
]


def column(texts: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.large_string())])


@pytest.fixture(scope="module")
def pieces() -> BpeTokenizer:
    return train_bpe([column(TEXTS)], 120, 2)


@pytest.fixture(scope="module")
def table(pieces: BpeTokenizer) -> torch.Tensor:
    return torch.randn(len(pieces), 8, generator=torch.Generator().manual_seed(0))


def test_a_text_is_the_mean_of_its_tokens(pieces: BpeTokenizer):
    encoder = Static(over_code_words(pieces), torch.eye(len(pieces)), normalise=False, code_words=True)
    [vector] = encoder.encode_documents(column(["the the list"]))
    counts = np.bincount(pieces.content(column(["the the list"])).ids, minlength=len(pieces))
    assert np.allclose(vector, counts / counts.sum()) and vector.max() < 1
    scaled = Static(over_code_words(pieces), torch.eye(len(pieces)), code_words=True)
    assert np.allclose(scaled.encode_queries(column(["the the list"]))[0], counts / np.linalg.norm(counts))


def test_a_text_without_tokens_has_the_zero_vector(pieces: BpeTokenizer, table: torch.Tensor):
    vectors = Static(over_code_words(pieces), table, code_words=True).encode_documents(column(["", "%% -- ()", "the"]))
    assert not vectors[:2].any() and np.linalg.norm(vectors[2]) == pytest.approx(1)


def test_the_whole_text_and_its_code_words_one_by_one_are_cut_alike(pieces: BpeTokenizer):
    from tokenizers import Tokenizer

    whole = Tokenizer.from_str(over_code_words(pieces))
    for text in TEXTS:
        expected = [each for word in code_words(text) for each in pieces.content(column([word])).ids.tolist()]
        assert whole.encode(text, add_special_tokens=False).ids == expected
    assert [word for word, _ in whole.pre_tokenizer.pre_tokenize_str(whole.normalizer.normalize_str(TEXTS[1]))] == (
        code_words(TEXTS[1])
    )


@pytest.mark.parametrize("max_tokens", [None, 5])
def test_vectors_are_those_of_sentence_transformers(
    pieces: BpeTokenizer, table: torch.Tensor, tmp_path: Path, max_tokens: int | None
):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    encoder = Static(over_code_words(pieces), table, max_tokens=max_tokens, code_words=True)
    encoder.save(tmp_path / "saved")
    module = StaticEmbedding.load(str(tmp_path / "saved"))
    reference = sentence_transformers.SentenceTransformer(modules=[module, Normalize()], device="cpu")
    assert np.abs(encoder.encode_documents(column(TEXTS)) - reference.encode(TEXTS)).max() < 1e-5
    assert encoder.tokens(column(TEXTS), "document").cut == (0 if max_tokens is None else 4)


def test_a_folder_of_static_embedding_is_an_encoder(pieces: BpeTokenizer, table: torch.Tensor, tmp_path: Path):
    pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, pre_tokenizers

    fast = Tokenizer.from_str(pieces.model)
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    module = StaticEmbedding(fast, embedding_weights=table)
    (tmp_path / "model").mkdir()
    module.save(str(tmp_path / "model"))
    source = f"file:{tmp_path / 'model'}#sha256={sources.digest(tmp_path / 'model')}"
    encoder = encoders.prepare({"kind": "static", "source": source, "normalise": False}, tmp_path / "work")
    expected = module(module.preprocess(TEXTS))["sentence_embedding"]
    assert np.abs(encoder.encode_queries(column(TEXTS)) - expected.detach().numpy()).max() < 1e-5


def test_a_corpus_is_indexed_by_it(pieces: BpeTokenizer, table: torch.Tensor, tmp_path: Path):
    encoder = Static(over_code_words(pieces), table, code_words=True)
    corpus = Corpus("corpus", pa.Table.from_batches([documents_batch(["b", "a"], ["", ""], [TEXTS[0], TEXTS[1]])]))
    dense = Dense(encoder)
    dense.index(corpus, tmp_path)
    rows, scores = dense.open(corpus, tmp_path).search(column([TEXTS[0]]), 1)
    assert rows.tolist() == [[0]] and scores[0, 0] == pytest.approx(1, abs=1e-6)


def test_a_saved_encoder_loads_from_its_folder_alone(pieces: BpeTokenizer, table: torch.Tensor, tmp_path: Path):
    made = Static(over_code_words(pieces), table, max_tokens=7, code_words=True)
    made.save(tmp_path / "saved")
    loaded = encoders.load(tmp_path / "saved")
    assert (loaded.fingerprint, loaded.settings, loaded.dim) == (made.fingerprint, made.settings, 8)
    assert loaded.parameters_count == table.numel()
    assert np.array_equal(loaded.encode_documents(column(TEXTS)), made.encode_documents(column(TEXTS)))
    other = Static(over_code_words(pieces), table, max_tokens=8, code_words=True)
    assert other.fingerprint != made.fingerprint


@pytest.mark.parametrize("name", [TOKENIZER, WEIGHTS])
def test_a_file_that_is_cut_short_is_refused(pieces: BpeTokenizer, table: torch.Tensor, tmp_path: Path, name: str):
    Static(over_code_words(pieces), table, code_words=True).save(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-100])
    with pytest.raises(DataError, match="fetch it again"):
        encoders.load(tmp_path)


def test_what_cannot_be_is_refused(pieces: BpeTokenizer, table: torch.Tensor):
    with pytest.raises(DataError, match=f"has {len(pieces)} ids, but the table {len(pieces) - 1} rows"):
        Static(over_code_words(pieces), table[1:], code_words=True)
    with pytest.raises(BadValue, match="max_tokens is 0"):
        Static(over_code_words(pieces), table, max_tokens=0)
    with pytest.raises(DataError, match="none of the tokenizers library"):
        Static(json.dumps({"model": 1}), table)
