import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from coderet import encoders
from coderet.encoders.base import TOKENIZER, WEIGHTS, DualEncoder
from coderet.encoders.tokenizer import BEGIN, END, WordTokenizer
from coderet.records import DataError
from coderet.registry import BadValue, UnknownName

WORDS = WordTokenizer(["sort", "list", "query", "passage", *(f"w{'abcdefghij'[i]}" for i in range(10))])
LONG = pa.array([" ".join(["wa", "wb", "wc", "wd"] * 20)[: 3 * n - 1] for n in (3, 6, 7, 48)], pa.large_string())
TEXTS = pa.array(["sort list", "", "list", "wa wb wc wd we wf", "sort list", "unseen"], pa.large_string())


def encoder(**settings: object) -> DualEncoder:
    torch.manual_seed(0)
    return DualEncoder.build(WORDS, {"kind": "nbow", "dim": 8, **settings})


def test_texts_over_the_limit_are_cut_at_their_end_and_counted():
    tokens = encoder(marked=True, max_document_tokens=8).tokens(LONG, "document")
    assert tokens.lengths.tolist() == [5, 8, 8, 8]
    assert (tokens.cut, tokens.lost) == (2, 43)
    assert tokens.ids[tokens.offsets[:-1]].tolist() == [BEGIN] * 4
    assert tokens.ids[tokens.offsets[1:] - 1].tolist() == [END] * 4


def test_a_prefix_survives_truncation():
    tokens = encoder(document_prefix="passage: ", max_document_tokens=3).tokens(LONG, "document")
    passage = WORDS.content(pa.array(["passage"])).ids[0]
    assert tokens.ids[tokens.offsets[:-1]].tolist() == [passage] * 4 and tokens.lengths.tolist() == [3] * 4


def test_a_prefix_longer_than_the_limit_is_refused():
    with pytest.raises(DataError, match="shorten the prefix"):
        encoder(query_prefix="sort sort sort", max_query_tokens=3).encode_queries(TEXTS)


@pytest.mark.parametrize("pooling", ["weighted", "mean", "max"])
def test_a_vector_depends_on_its_text_alone_and_order_is_kept(pooling: str):
    made = encoder(pooling=pooling, marked=True)
    alone = np.concatenate([made.encode_documents(TEXTS.slice(row, 1)) for row in range(len(TEXTS))])
    for batch in (2, 4, 6):
        parts = [made.encode_documents(TEXTS.slice(start, batch)) for start in range(0, len(TEXTS), batch)]
        assert np.array_equal(np.concatenate(parts), alone)
    assert np.array_equal(alone[0], alone[4]) and not np.array_equal(alone[0], alone[2])


def test_vectors_have_length_one_and_an_empty_text_is_zero():
    vectors = encoder().encode_documents(TEXTS)
    assert vectors.dtype == np.float32 and vectors.shape == (6, 8)
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 1, 1, 1])


def test_a_marked_empty_text_is_not_zero():
    assert np.linalg.norm(encoder(marked=True).encode_documents(TEXTS)[1]) == pytest.approx(1)


def test_no_texts_give_no_vectors():
    assert encoder().encode_queries(pa.array([], pa.large_string())).shape == (0, 8)


def test_tied_towers_are_one_and_separate_ones_differ():
    tied, separate = encoder(), encoder(tied=False)
    assert np.array_equal(tied.encode_queries(TEXTS), tied.encode_documents(TEXTS))
    assert not np.array_equal(separate.encode_queries(TEXTS), separate.encode_documents(TEXTS))
    assert separate.parameters_count == 2 * tied.parameters_count == 2 * (len(WORDS) * 8 + 8)


def test_encoding_leaves_a_training_encoder_in_training():
    made = encoder(dropout=0.5).train()
    assert np.array_equal(made.encode_queries(TEXTS), made.encode_queries(TEXTS)) and made.training


@pytest.mark.parametrize("tied", [True, False])
def test_a_saved_encoder_loads_from_its_folder_alone(tied: bool, tmp_path: Path):
    made = encoder(tied=tied, query_prefix="query: ", max_query_tokens=5)
    made.save(tmp_path / "encoder")
    (tmp_path / "encoder").rename(tmp_path / "moved")
    loaded = encoders.load(tmp_path / "moved")
    assert np.array_equal(loaded.encode_queries(TEXTS), made.encode_queries(TEXTS))
    assert np.array_equal(loaded.encode_documents(TEXTS), made.encode_documents(TEXTS))
    assert loaded.fingerprint == made.fingerprint and loaded.dim == 8


def test_saving_twice_gives_the_same_bytes(tmp_path: Path):
    for name in ("a", "b"):
        encoder().save(tmp_path / name)
    written = [{p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in tmp_path.iterdir()]
    assert written[0] == written[1] and Path("weights.safetensors") in written[0]


def test_the_fingerprint_follows_weights_tokenizer_and_every_setting():
    made = [
        encoder(),
        encoder(query_prefix="query: "),
        encoder(document_prefix="passage: "),
        encoder(max_query_tokens=8),
        encoder(max_document_tokens=8),
        encoder(normalise=False),
        encoder(marked=True),
        encoder(pooling="mean"),
        encoder(distinct=True),
        encoder(tied=False),
        DualEncoder.build(WordTokenizer([*WORDS.words[:-1], "other"]), {"kind": "nbow", "dim": 8}),
    ]
    other_weights = encoder()
    other_weights.query_tower.table.weight.data[0, 0] += 1  # type: ignore[union-attr,operator,index]
    assert len({each.fingerprint for each in [*made, other_weights]}) == len(made) + 1
    assert encoder().fingerprint == made[0].fingerprint


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER, "encoder.json"])
@pytest.mark.parametrize("harm", ["cut", "gone"])
def test_a_file_that_is_cut_short_or_gone_is_refused(name: str, harm: str, tmp_path: Path):
    encoder().save(tmp_path)
    whole = (tmp_path / name).read_bytes()
    if harm == "cut":
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    else:
        (tmp_path / name).unlink()
    with pytest.raises(DataError, match=r"train it again|make it again|fit or prepare it"):
        encoders.load(tmp_path)


def test_weights_of_another_shape_are_refused(tmp_path: Path):
    encoder().save(tmp_path)
    settings = json.loads((tmp_path / "encoder.json").read_text())
    settings["architecture"]["dim"] = 16
    (tmp_path / "encoder.json").write_text(json.dumps(settings))
    with pytest.raises(DataError, match="does not hold the weights of this encoder"):
        encoders.load(tmp_path)


def test_an_encoder_of_another_format_or_kind_is_refused(tmp_path: Path):
    encoder().save(tmp_path)
    settings = json.loads((tmp_path / "encoder.json").read_text())
    (tmp_path / "encoder.json").write_text(json.dumps(settings | {"format": 99}))
    with pytest.raises(DataError, match="format 99, wanted 1"):
        encoders.load(tmp_path)
    (tmp_path / "encoder.json").write_text(json.dumps(settings | {"kind": "nbwo"}))
    with pytest.raises(UnknownName, match="Did you mean nbow"):
        encoders.load(tmp_path)


def test_misspelt_settings_are_refused_with_the_nearest():
    with pytest.raises(UnknownName, match=r"fit\.encoder\.poling is not a setting of nbow.*Did you mean pooling"):
        encoder(poling="mean")
    with pytest.raises(UnknownName, match=r"fit\.encoder\.max_query_token .*Did you mean max_query_tokens"):
        encoder(max_query_token=3)
    with pytest.raises(UnknownName, match=r"fit\.encoder\.kind is 'nbwo'.*Did you mean nbow"):
        encoder(kind="nbwo")


MIXED = {
    "query": {"kind": "attention", "dim": 8, "heads": 2, "inner": 16, "positions": 20},
    "document": {"kind": "nbow", "dim": 8},
}


def mixed(**settings: object) -> DualEncoder:
    torch.manual_seed(0)
    limits = {"max_query_tokens": 20, "max_document_tokens": 30}
    return DualEncoder.build(WORDS, {"kind": "mixed", **limits, **MIXED, **settings})


def test_a_mixed_encoder_has_a_tower_of_its_own_kind_for_each_side():
    made = mixed()
    towers = [type(each).__name__ for each in (made.query_tower, made.document_tower)]
    assert towers == ["Attention", "NeuralBagOfWords"] and made.dim == 8
    bag = encoder(max_document_tokens=30)
    bag.document_tower.load_state_dict(made.document_tower.state_dict())
    assert np.array_equal(made.encode_documents(TEXTS), bag.encode_documents(TEXTS))
    assert made.encode_queries(TEXTS).shape == (6, 8)
    assert np.abs(made.encode_queries(TEXTS) - made.encode_documents(TEXTS)).max() > 0.1


def test_a_mixed_encoder_of_one_kind_has_settings_of_their_own():
    made = mixed(query={"kind": "nbow", "dim": 8, "pooling": "max"})
    assert (made.query_tower.pooling, made.document_tower.pooling) == ("max", "weighted")


def test_a_saved_mixed_encoder_loads_from_its_folder_alone(tmp_path: Path):
    made = mixed()
    made.save(tmp_path)
    loaded = encoders.load(tmp_path)
    assert np.array_equal(loaded.encode_queries(TEXTS), made.encode_queries(TEXTS))
    assert np.array_equal(loaded.encode_documents(TEXTS), made.encode_documents(TEXTS))
    assert loaded.fingerprint == made.fingerprint and loaded.parameters_count == made.parameters_count


def test_an_encoder_saved_before_there_were_mixed_ones_still_loads(tmp_path: Path):
    made = encoder(tied=False)
    made.save(tmp_path)
    (tmp_path / "encoder.json").write_text(
        json.dumps(
            {
                "format": 1,
                "kind": "nbow",
                "architecture": {"dim": 8},
                "tied": False,
                "max_query_tokens": 64,
                "max_document_tokens": 256,
                "query_prefix": "",
                "document_prefix": "",
                "marked": False,
                "normalise": True,
            }
        )
    )
    assert encoders.load(tmp_path).fingerprint == made.fingerprint


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"tied": True}, BadValue, r"fit\.encoder\.tied is true; two kinds of tower cannot be one"),
        ({"dim": 8}, UnknownName, r"fit\.encoder\.dim is not a setting of mixed; known settings: document,"),
        ({"document": {"kind": "nbwo"}}, UnknownName, r"fit\.encoder\.document\.kind is 'nbwo'.*Did you mean nbow"),
        ({"document": {"kind": "mixed"}}, UnknownName, r"fit\.encoder\.document\.kind is 'mixed'"),
        ({"document": {"kind": "nbow", "heads": 2}}, UnknownName, r"document\.heads is not a setting of nbow"),
        ({"document": {"kind": "nbow", "dim": "8"}}, BadValue, r"fit\.encoder\.document\.dim is '8'; wanted a whole"),
        ({"document": "nbow"}, BadValue, r"fit\.encoder\.document is 'nbow'; wanted a mapping"),
        ({"document": None}, BadValue, r"fit\.encoder\.document is None; wanted a mapping"),
        (
            {"document": {"kind": "nbow", "dim": 9}},
            BadValue,
            r"query\.dim is 8 and encoder\.document\.dim 9; wanted the",
        ),
        ({"max_query_tokens": 21}, BadValue, r"max_query_tokens is 21, but its tower has positions for 20 tokens"),
    ],
)
def test_a_mixed_encoder_that_cannot_be_meant_is_refused(settings: dict[str, object], error: type, said: str):
    with pytest.raises(error, match=said):
        mixed(**settings)


def test_a_kind_that_is_not_known_is_told_all_that_are():
    with pytest.raises(
        UnknownName, match=r"'mixd'; known .*attention, convolution, mixed, nbow, recurrent.*mean mixed"
    ):
        encoder(kind="mixd")


def test_an_encoder_that_is_to_be_trained_is_not_prepared(tmp_path: Path):
    with pytest.raises(UnknownName, match=r"fit\.encoder\.kind is 'mixed'; known encoders that need no training"):
        encoders.prepare({"kind": "mixed"}, tmp_path)
