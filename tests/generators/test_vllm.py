"""vLLM against the generator in this process: a real server on the same folder, asked in OpenAI's words."""

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from coderet.benchmarks import humaneval
from coderet.generators.base import Prompt
from coderet.generators.openai import OpenAI
from coderet.generators.sampling import Sampling
from coderet.generators.vllm import Vllm
from coderet.records import DataError
from coderet.registry import BadValue

ENVIRONMENT = Path(os.environ.get("CODERET_VLLM", Path(__file__).parents[2] / ".vllm"))
SECONDS_TO_START = 600
PROBLEMS = 10
SAME_TOKENS = 8  # at least so many begin all greedy completions alike: bf16 rounds otherwise in another order of sums


def test_without_vllm_the_message_says_where_it_is(tmp_path):
    with pytest.raises(DataError, match=r"no vLLM.*make vllm"):
        Vllm(str(tmp_path))


def test_a_model_of_a_hub_is_written_down_with_its_commit(tmp_path):
    commit = "0" * 40
    assert Vllm.prepare(tmp_path, tmp_path, model="a/b", revision=commit) == {"model": "a/b", "revision": commit}
    for revision in (None, "main"):
        with pytest.raises(BadValue, match="commit"):
            Vllm.prepare(tmp_path, tmp_path, model="a/b", revision=revision)


@pytest.fixture(scope="module")
def address(smollm2) -> Iterator[str]:
    """A running `vllm serve`."""
    program = ENVIRONMENT / "bin" / "vllm"
    if not program.is_file():
        pytest.skip(f"no vLLM at {ENVIRONMENT}; run make vllm, or set CODERET_VLLM to its environment")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "serve", smollm2, "--served-model-name", "smollm2", "--enforce-eager", "--port", str(port)]
    command += ["--host", "127.0.0.1", "--max-model-len", "2048"]
    settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}
    server = subprocess.Popen(command, env=os.environ | settings, start_new_session=True)
    try:
        _wait(f"http://127.0.0.1:{port}/health", server)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def _wait(health: str, server: subprocess.Popen) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        assert server.poll() is None, "vllm serve ended by itself"
        with contextlib.suppress(OSError), urllib.request.urlopen(health, timeout=5):
            return
        time.sleep(1)
    raise AssertionError(f"vllm serve did not answer within {SECONDS_TO_START} s")


@pytest.mark.vllm
def test_a_server_of_vllm_agrees_with_the_generator_in_this_process(address, smollm2, real_data):
    from coderet.generators.local import Local

    local = Local(smollm2)
    served = OpenAI("smollm2", address=address, key_variable="", window=2048, continues=True)
    prompts = [
        Prompt(f"Complete the function.\n\n{each['prompt']}", start="```python\n", stop=("```",))
        for each in humaneval.problems(real_data / "humaneval")[:PROBLEMS]
    ]
    sampling = Sampling(max_new_tokens=64)
    here, there = (sorted(each.generate(prompts, sampling)) for each in (local, served))
    assert [each.prompt_tokens for each in here] == [each.prompt_tokens for each in there]
    ids = [[local._wording.tokenizer(each.text)["input_ids"] for each in made] for made in (here, there)]
    alike = [_alike(*pair) for pair in zip(*ids, strict=True)]
    print(f"equal: {sum(a.text == b.text for a, b in zip(here, there, strict=True))} of {PROBLEMS}; alike for {alike}")
    assert all(
        length >= SAME_TOKENS or one.text == other.text for length, one, other in zip(alike, here, there, strict=True)
    )


def _alike(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
