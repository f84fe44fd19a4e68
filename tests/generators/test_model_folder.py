"""Model folders for generators: copied, or made of the GGUF file in a wheel."""

import json

import pytest

from coderet.corpora import sources
from coderet.generators import model_folder
from coderet.generators.base import Prompt
from coderet.records import DataError
from coderet.sampling import Sampling


def test_what_a_source_lacks_is_told(tiny, tmp_path):
    pin = f"file:{tiny}#sha256={sources.digest(tiny)}"
    with pytest.raises(DataError, match=r"has no \./weights\.gguf; wanted a model's folder, or a GGUF file"):
        model_folder.prepare(pin, ".", "weights.gguf", tmp_path / "work", tmp_path / "g")


def test_a_file_that_is_no_gguf_is_told(tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(DataError, match=r"a\.gguf is not a whole GGUF file"):
        model_folder.convert(tmp_path / "a.gguf", tmp_path / "m")


def test_smollm2_is_a_plain_folder_that_does_not_say_where_it_was_made(smollm2):
    config = json.loads((smollm2 / "config.json").read_text())
    assert (config["model_type"], config["dtype"], config["vocab_size"]) == ("llama", "bfloat16", 49152)
    assert "_name_or_path" not in config
    assert 260e6 < (smollm2 / "model.safetensors").stat().st_size < 280e6


def test_smollm2_parts_digits_as_it_was_trained_to(smollm2):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    # Without the rule for digits the last blank would stand beside the number: ĊĠĠĠ, Ġ, 4.
    assert tokenizer.tokenize("x:\n    42") == ["x", ":", "ĊĠĠĠĠ", "4", "2"]
    assert tokenizer.decode(tokenizer("a\n    42 é 好")["input_ids"]) == "a\n    42 é 好"


def test_smollm2_completes_a_function(smollm2):
    from coderet.generators.local import Local

    local = Local(smollm2)
    assert (local.layout, local.window, local.parameters) == ("chat", 8192, 134_515_008)
    question = "Write a Python function `add(a, b)` that returns the sum of a and b. Answer with code only."
    made = next(local.generate([Prompt(question, start="```python\n", stop=("```",))], Sampling(max_new_tokens=64)))
    assert "return a + b" in made.text and made.finish == "stop"
