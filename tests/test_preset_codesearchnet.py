"""presets/codesearchnet trains the baselines of 2019 with the hyper-parameters that data/published has of them."""

from pathlib import Path

import pytest
import yaml

from coderet import params

ROOT = Path(__file__).parents[1]
PRESET = params.read(ROOT / "presets" / "codesearchnet" / "params.yaml")
PUBLISHED = yaml.safe_load((ROOT / "data" / "published" / "codesearchnet.yaml").read_text(encoding="utf-8"))
THEIRS = PUBLISHED["baseline_hyperparameters"]
COMMON = THEIRS["common"]
NAMES = {"nbow-2019": "nbow", "cnn-2019": "1d-cnn", "rnn-2019": "birnn", "attention-2019": "selfatt"}


def fit(name: str) -> dict:
    return dict(PRESET.retrievers[name].fit)


def test_the_grid_trains_the_four_baselines():
    assert set(PRESET.grid.trained) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_all_baselines_have_in_common_is_theirs(name: str):
    encoder, training = fit(name)["encoder"], fit(name)["training"]
    assert encoder["dim"] == COMMON["representation"] == COMMON["token_embedding"]
    assert encoder["max_query_tokens"] == COMMON["query_tokens"]
    assert encoder["max_document_tokens"] == COMMON["code_tokens"]
    assert encoder["tied"] is False and encoder["pooling"] == "weighted"
    assert training["clip_norm"] == COMMON["gradient_clip_global_norm"]
    assert training["patience"] == COMMON["patience"]
    assert PRESET.vocabulary.size == COMMON["vocabulary"]
    assert PRESET.retrievers[name].index["similarity"] == COMMON["test_distance"]


@pytest.mark.parametrize(("name", "theirs"), NAMES.items())
def test_loss_batch_and_learning_rate_are_theirs(name: str, theirs: str):
    own = fit(name)
    assert own["objective"]["kind"] == f"{THEIRS[theirs]['loss']}-2019"
    assert own["batches"]["size"] == THEIRS[theirs]["batch"]
    assert own["training"]["learning_rate"] == THEIRS[theirs]["learning_rate"]
    assert own["encoder"].get("normalise", True) is (THEIRS[theirs]["loss"] == "cosine")


def test_the_bag_of_words_has_their_margin_and_share_of_dropout():
    own = fit("nbow-2019")
    assert own["objective"]["margin"] == COMMON["margin"]
    assert own["encoder"]["dropout"] == pytest.approx(1 - COMMON["dropout_keep"])


def test_the_convolution_is_theirs():
    own, theirs = fit("cnn-2019")["encoder"], THEIRS["1d-cnn"]
    assert [own["dim"]] * own["layers"] == theirs["layers"] and [own["width"]] * own["layers"] == theirs["kernel"]
    assert own["activation"] == theirs["activation"] and own["positions"] == COMMON["code_tokens"]
    assert own["dropout"] == own["table_dropout"] == pytest.approx(1 - COMMON["dropout_keep"])


def test_the_recurrent_network_is_theirs():
    own, theirs = fit("rnn-2019")["encoder"], THEIRS["birnn"]
    assert (own["layers"], own["dim"] // 2, own["cell"]) == (
        theirs["layers"],
        theirs["hidden_per_direction"],
        theirs["cell_in_code"],
    )
    assert own["dropout"] == pytest.approx(1 - theirs["output_keep"])
    assert own["table_dropout"] == pytest.approx(1 - COMMON["dropout_keep"])


@pytest.mark.parametrize("name", ["attention-2019", "attention-nbow-2019"])
def test_the_attention_is_theirs_but_for_dropout_of_attention(name: str):
    own, theirs = fit(name)["encoder"], THEIRS["selfatt"]
    own = own.get("query", own)
    names = {
        "layers": "layers",
        "heads": "heads",
        "dim": "hidden",
        "inner": "intermediate",
        "dropout": "hidden_dropout",
    }
    assert {name: own[name] for name in names} == {name: theirs[each] for name, each in names.items()}
    assert f"learned_{own['positions']}" == theirs["positions"] and own["attention_dropout"] == 0.0
