import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from cross_encoders import write_cross_encoder

from coderet.corpora import sources
from coderet.records import DataError
from coderet.registry import BadValue
from coderet.retrievers.cross_encoder import CrossEncoder

PAIRS = [
    ("sort a list", "def sort x return list of numbers"),
    ("sort a list", ""),
    ("", "binary search tree"),
    ("", ""),
    ("binary search", "tree of unseen words " * 9),
    ("search " * 30, "x"),
    ("search tree " * 20, "sort numbers " * 20),
    *((f"sort {'x ' * (at % 5)}", "return a list " * (at % 7)) for at in range(12)),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_cross_encoder(tmp_path_factory.mktemp("model"))


def columns(pairs):
    return [pa.chunked_array([pa.array(list(side), pa.large_string())]) for side in zip(*pairs, strict=True)]


def scored(encoder, pairs=PAIRS):
    return encoder.scores(*columns(pairs))


def fp32(folder, **settings):
    return CrossEncoder(folder, precision="fp32", **({"max_tokens": 40} | settings))


def reference(folder, max_tokens):
    import torch
    from sentence_transformers import CrossEncoder as Theirs

    theirs = Theirs(str(folder), max_length=max_tokens, device="cpu")
    return theirs, theirs.predict(PAIRS, activation_fn=torch.nn.Identity(), batch_size=8)


@pytest.mark.parametrize("sides", [True, False])
@pytest.mark.parametrize("max_tokens", [40, 12])
def test_scores_are_the_logits_of_sentence_transformers(tmp_path, sides, max_tokens):
    folder = write_cross_encoder(tmp_path / "model", sides=sides)
    _, theirs = reference(folder, max_tokens)
    ours = scored(fp32(folder, max_tokens=max_tokens))
    assert ours.dtype == np.float32 and np.abs(ours - theirs).max() < 1e-5
    assert np.ptp(ours) > 1


def test_a_folder_that_sentence_transformers_saved_gives_the_same(model, tmp_path):
    theirs, logits = reference(model, 40)
    theirs.save_pretrained(str(tmp_path / "saved"))
    assert (tmp_path / "saved" / "modules.json").exists()
    assert np.abs(scored(fp32(tmp_path / "saved")) - logits).max() < 1e-5


def test_two_labels_score_the_log_odds_of_the_second(tmp_path):
    folder = write_cross_encoder(tmp_path / "model", labels=2)
    _, theirs = reference(folder, 40)
    assert np.abs(scored(fp32(folder)) - (theirs[:, 1] - theirs[:, 0])).max() < 1e-5


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_pair_s_score_depends_on_that_pair_alone(tmp_path, precision):
    folder = write_cross_encoder(tmp_path / "model", places=128)
    encoder = CrossEncoder(folder, max_tokens=100, precision=precision)
    alone = np.concatenate([scored(encoder, [pair]) for pair in PAIRS])
    assert np.array_equal(scored(encoder), alone)
    assert np.array_equal(scored(encoder, PAIRS[::-1]), alone[::-1])


def test_pairs_read_in_batches_score_the_same_but_for_the_last_digits(model):
    assert np.abs(scored(fp32(model, batch_tokens=256)) - scored(fp32(model))).max() < 1e-5


def test_no_pairs_have_no_scores(model):
    empty = pa.chunked_array([pa.array([], pa.large_string())])
    assert fp32(model).scores(empty, empty).shape == (0,)


def test_a_width_that_is_padded_beyond_the_model_s_places_is_cut_back(tmp_path):
    folder = write_cross_encoder(tmp_path / "model", places=21)
    _, theirs = reference(folder, 21)
    assert np.abs(scored(fp32(folder, max_tokens=21)) - theirs).max() < 1e-5


def test_cutting_only_the_document_keeps_the_query_whole(model):
    long, same = "sort a list of numbers", "x " * 30
    encoder = fp32(model, max_tokens=12, cut="document")  # three marks, five of the query, four of the document
    assert scored(encoder, [(long, same)]) == scored(encoder, [(long, "x " * 4)])
    assert scored(encoder, [(long, same)]) != scored(encoder, [(long, "x " * 3)])
    with pytest.raises(DataError, match=r"the query 'sort sort .*' has 9 tokens, which leaves no room"):
        scored(encoder, [("sort " * 9, "x")])


def test_what_shapes_a_score_is_in_the_fingerprint(model, tmp_path):
    base = fp32(model).fingerprint
    assert fp32(model).fingerprint == base
    other = write_cross_encoder(tmp_path / "other", seed=1)
    variations = [
        fp32(other),
        fp32(model, max_tokens=39),
        fp32(model, cut="document"),
        CrossEncoder(model, max_tokens=40, precision="bf16"),
    ]
    variations.append(fp32(model, batch_tokens=256))
    assert len({base, *(each.fingerprint for each in variations)}) == 6


def test_a_prepared_reranker_is_a_folder_that_scores_the_same(model, tmp_path):
    pin = f"file:{model}#sha256={sources.digest(model)}"
    (tmp_path / "work").mkdir()
    prepared = CrossEncoder.prepare(tmp_path / "work", source=pin)
    (tmp_path / "bge").mkdir()
    prepared.save(tmp_path / "bge")
    shutil.rmtree(tmp_path / "work")
    loaded = CrossEncoder.load(tmp_path / "bge", max_tokens=40, precision="fp32")
    assert np.array_equal(scored(loaded), scored(fp32(model)))
    assert loaded.parameters > 10_000


# --- folders that would give wrong numbers


def test_a_model_without_a_trained_classifier_is_refused(tmp_path):
    from transformers import BertForSequenceClassification

    folder = write_cross_encoder(tmp_path / "model")
    BertForSequenceClassification.from_pretrained(folder).bert.save_pretrained(folder)
    with pytest.raises(
        DataError, match=r"lacks the weights classifier\.bias, classifier\.weight: scores would be random"
    ):
        fp32(folder)


def test_more_labels_than_two_are_refused(tmp_path):
    with pytest.raises(DataError, match="has 3 labels; wanted one"):
        fp32(write_cross_encoder(tmp_path / "model", labels=3))


def test_what_would_be_left_out_is_refused(model, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    modules = [{"path": "", "type": "x.Transformer"}, {"path": "1_Dense", "type": "x.Dense"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(DataError, match="is made of Transformer, Dense; wanted a Transformer in the folder itself"):
        fp32(folder)
    (folder / "modules.json").write_text("{")
    with pytest.raises(DataError, match="is no list of modules"):
        fp32(folder)


def test_code_of_a_checkpoint_s_own_is_not_run(model, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "theirs.Model"}}))
    with pytest.raises(DataError, match="brings code of its own, which is not run for rerankers"):
        fp32(folder)


def test_a_folder_that_is_missing_or_broken_is_refused(model, tmp_path):
    with pytest.raises(DataError, match="there is no model folder"):
        fp32(tmp_path / "nothing")
    shutil.copytree(model, tmp_path / "cut")
    whole = (model / "model.safetensors").read_bytes()
    (tmp_path / "cut" / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="does not hold a whole cross-encoder"):
        fp32(tmp_path / "cut")


def test_settings_out_of_range_are_refused(model):
    with pytest.raises(DataError, match="max_tokens is 41, but the model has 40 places"):
        fp32(model, max_tokens=41)
    with pytest.raises(BadValue, match="max_tokens is 4; wanted a number from 5 on"):
        fp32(model, max_tokens=4)
    with pytest.raises(BadValue, match="batch_tokens is 0; wanted a number from 1 on"):
        fp32(model, batch_tokens=0)
    with pytest.raises(DataError, match="cut is 'query'; known: longest-first, document"):
        fp32(model, cut="query")
