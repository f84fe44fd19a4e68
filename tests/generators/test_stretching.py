"""Rotary positions stretched: by transformers' own formulas, in its configuration and in vLLM's."""

import importlib.machinery
import sys
import types

import pytest
import tiny_checkpoints
import torch
from transformers import GPT2Config

from coderet.generators import stretching
from coderet.generators.base import Prompt
from coderet.generators.local import Local
from coderet.generators.vllm import Vllm
from coderet.records import DataError
from coderet.registry import BadValue
from coderet.sampling import Sampling

LINEAR = {"rope_type": "linear", "factor": 2}
YARN = {"rope_type": "yarn", "factor": 4.0}


@pytest.mark.parametrize(("rope", "window"), [(LINEAR, 256), (YARN, 512)])
def test_a_model_reads_so_many_times_more_tokens_and_is_another_one(tiny, rope, window):
    plain, stretched = Local(tiny, precision="fp32"), Local(tiny, precision="fp32", rope=rope)
    assert (plain.window, stretched.window) == (128, window)
    assert plain.identity != stretched.identity
    long = Prompt("sort list " * 70)
    with pytest.raises(DataError, match="wanted from 1 to 127"):
        next(plain.generate([long], Sampling(max_new_tokens=4)))
    assert next(stretched.generate([long], Sampling(max_new_tokens=4))).prompt_tokens > 128


def test_linear_stretching_divides_every_frequency_by_the_factor(tiny):
    frequencies = [Local(tiny, precision="fp32", rope=rope)._model.model.rotary_emb.inv_freq for rope in (None, LINEAR)]
    assert torch.allclose(frequencies[0] / 2, frequencies[1])


def test_yarn_keeps_the_window_that_the_model_was_trained_on(tiny):
    config = stretching.stretched(tiny, stretching.checked(YARN))
    assert config.rope_parameters["original_max_position_embeddings"] == 128
    assert config.max_position_embeddings == 512


@pytest.mark.parametrize(
    ("rope", "said"),
    [
        ({"rope_type": "dynamic", "factor": 2}, "rope.rope_type is 'dynamic'; wanted linear or yarn"),
        ({"factor": 2}, "rope.rope_type is None; wanted linear or yarn"),
        ({"rope_type": "yarn"}, "rope.factor is None; wanted a number from 1"),
        ({"rope_type": "yarn", "factor": 0.5}, "rope.factor is 0.5; wanted a number from 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(tiny, rope, said):
    with pytest.raises(BadValue, match=said):
        Local(tiny, precision="fp32", rope=rope)


def test_a_model_without_rotary_positions_or_with_stretched_ones_is_refused(tmp_path):
    GPT2Config().save_pretrained(tmp_path / "a")
    with pytest.raises(DataError, match="gpt2 model without plain rotary positions"):
        stretching.stretched(tmp_path / "a", stretching.checked(LINEAR))
    before = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
    stretched = tiny_checkpoints.causal(tmp_path / "b", rope_parameters=before)
    with pytest.raises(DataError, match="stretched already, by linear"):
        stretching.stretched(stretched, stretching.checked(LINEAR))


def test_vllm_is_given_the_same_positions(tiny, monkeypatch):
    given = {}

    class Engine:
        def __init__(self, **settings):
            given.update(settings)
            config = types.SimpleNamespace(max_model_len=64)
            self.llm_engine = types.SimpleNamespace(model_config=config)

    module = types.ModuleType("vllm")
    module.LLM = Engine
    module.__spec__ = importlib.machinery.ModuleSpec("vllm", None)
    monkeypatch.setitem(sys.modules, "vllm", module)
    plain = Vllm(str(tiny))
    assert "hf_overrides" not in given
    stretched = Vllm(str(tiny), rope={"rope_type": "dynamic", "factor": 2})
    positions = given["hf_overrides"]["rope_parameters"]
    assert (positions["rope_type"], positions["factor"], positions["rope_theta"]) == ("dynamic", 2.0, 10000.0)
    assert plain.identity != stretched.identity
