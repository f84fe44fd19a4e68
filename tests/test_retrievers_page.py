"""docs/retrievers.yaml: entries that are copied into params.yaml, so each must be one that params.yaml may hold."""

import re
from pathlib import Path

import pytest
import yaml

from coderet import encoders, params, registry
from coderet.corpora import pins
from coderet.retrievers.dense import Dense

ROOT = Path(__file__).parents[1]
ENTRIES = yaml.safe_load((ROOT / "docs" / "retrievers.yaml").read_text(encoding="utf-8"))["retrievers"]
NAMED = """bge-base bge-large gist-base gist-large sfr-mistral codesage-small jina-v2-code openai-3-small voyage-code-2
    e5-base unixcoder codebert""".split()
OF_THE_PAPER = [name for name in ENTRIES if name.endswith("-paper")]


def sources(name: str) -> list[str]:
    encoder = ENTRIES[name]["fit"]["encoder"]
    return [encoder[key] for key in ("source", "code_source", "tokenizer") if key in encoder]


def test_every_model_that_the_papers_compare_is_there():
    assert set(NAMED) <= set(ENTRIES) and len(OF_THE_PAPER) >= 9


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_can_be_copied_into_params(name: str):
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    raw["retrievers"] = {name: ENTRIES[name]}
    raw["grid"] |= {
        "trained": [],
        "untrained": [name],
        "retrievers": [name],
        "fusions": [],
        "distilled": [],
        "teacher": "",
        "tuned": [],
        "runs": [name],
        "answered": [],
        "read": [],
    }
    raw["compare"]["baseline"] = name
    entry = params.of(raw).retrievers[name]
    assert entry.kind == "dense" and set(entry.fit) == {"encoder"}
    given = dict(entry.fit["encoder"])
    prepare = registry.load(encoders.ENCODERS, given.pop("kind"), "encoders").prepare
    registry.fit_arguments(prepare, given, name)
    registry.fit_arguments(Dense.load, dict(entry.index) | dict(entry.search), name)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_source_is_pinned_or_marked_as_a_place_to_fill(name: str):
    for source in sources(name):
        if "@<commit>" in source:
            with pytest.raises(pins.Unpinned):
                pins.parse(source)
            source = source.replace("<commit>", "0" * 40)
        parsed = pins.parse(source)
        assert parsed.sha256 or re.search(r"@[0-9a-f]{40}$", parsed.place)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_prefix_a_length_and_a_similarity_are_said(name: str):
    encoder, index = ENTRIES[name]["fit"]["encoder"], ENTRIES[name]["index"]
    assert "similarity" in index and "text_fields" in index
    if encoder["kind"] == "pretrained":
        assert {"query_prefix", "document_prefix", "max_tokens"} <= set(encoder)
    else:
        assert "max_tokens" in encoder or encoder["server_truncates"]


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_the_papers_reading_has_no_prefix_and_the_raw_dot_product_and_is_of_the_same_checkpoint(name: str):
    encoder, index = ENTRIES[name]["fit"]["encoder"], ENTRIES[name]["index"]
    assert not encoder.get("query_prefix") and not encoder.get("document_prefix")
    assert index["similarity"] == "inner-product"
    assert index["text_fields"] == (["text"] if encoder["kind"] == "api" else ["title", "text"])
    plain = ENTRIES[name.removesuffix("-paper")]["fit"]["encoder"]
    assert plain.get("source") == encoder.get("source") and plain.get("model") == encoder.get("model")


@pytest.mark.parametrize("name", [name for name in ENTRIES if ENTRIES[name]["fit"]["encoder"]["kind"] == "api"])
def test_an_encoder_on_a_server_takes_its_entry(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from coderet.encoders.api import Api

    given = {key: each for key, each in ENTRIES[name]["fit"]["encoder"].items() if key not in ("kind", "tokenizer")}
    (tmp_path / "tokenizer.json").write_text("{}")
    encoder = Api(tmp_path / "tokenizer.json" if sources(name) else None, **given)
    assert encoder.dim == given["dim"] and encoder.spending["api_tokens"] == 0
