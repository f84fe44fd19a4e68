"""vLLM against the generator in this process: a real server on the same folder, asked in OpenAI's words."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from coderet.benchmarks import humaneval
from coderet.benchmarks.answers.humaneval import FENCE_STOP
from coderet.generators.base import Completion, Prompt
from coderet.generators.openai import OpenAI
from coderet.generators.vllm import Vllm
from coderet.records import DataError
from coderet.registry import BadValue
from coderet.sampling import Sampling

ENVIRONMENT = Path(os.environ.get("CODERET_VLLM", Path(__file__).parents[2] / ".vllm"))
PYTHON = ENVIRONMENT / "bin" / "python"
NO_VLLM = f"no vLLM at {ENVIRONMENT}; run make vllm, or set CODERET_VLLM to its environment"
SECONDS_TO_START = 600
PROBLEMS = 10
SAME_TOKENS = 8  # at least so many begin all greedy completions alike: bf16 rounds otherwise in another order of sums
SAMPLING = Sampling(max_new_tokens=64)
SETTINGS = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}
SCRIPT = """
import json
import sys

from coderet.generators.base import Completion, Prompt
from coderet.sampling import Sampling
from coderet.generators.vllm import Vllm

if __name__ == "__main__":
    model, prompts, answers, tokens = sys.argv[1:]
    asked = [Prompt(*each) for each in json.load(open(prompts))]
    made = Vllm(model, window=2048, eager=True).generate(asked, Sampling(max_new_tokens=int(tokens)))
    json.dump(sorted(made), open(answers, "w"))
"""


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
    """A running server of vLLM, started as `make vllm` does."""
    if not PYTHON.is_file():
        pytest.skip(NO_VLLM)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", smollm2, "--served-model-name", "smollm2"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--max-model-len", "2048"]
    server = subprocess.Popen(command, env=os.environ | SETTINGS, start_new_session=True)
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
        assert server.poll() is None, "the server ended by itself"
        with contextlib.suppress(OSError), urllib.request.urlopen(health, timeout=5):
            return
        time.sleep(1)
    raise AssertionError(f"the server did not answer within {SECONDS_TO_START} s")


@pytest.mark.vllm
def test_a_server_of_vllm_agrees_with_the_generator_in_this_process(address, asked, here):
    served = OpenAI("smollm2", address=address, key_variable="", window=2048, continues=True)
    there = sorted(served.generate(asked, SAMPLING))
    _agree(here, there)
    assert {each.stop for each in there} <= {"", *FENCE_STOP} and any(each.stop for each in there)


@pytest.mark.vllm
def test_vllm_in_its_own_process_agrees_with_the_generator_in_this_one(smollm2, asked, here, tmp_path):
    if not PYTHON.is_file():
        pytest.skip(NO_VLLM)
    script, prompts, answers = (tmp_path / name for name in ("answer.py", "prompts.json", "answers.json"))
    script.write_text(SCRIPT)
    prompts.write_text(json.dumps(asked))
    found = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [PYTHON, script, smollm2, prompts, answers, str(SAMPLING.max_new_tokens)]
    subprocess.run(command, env=os.environ | SETTINGS | found, check=True, timeout=SECONDS_TO_START)
    _agree(here, [Completion(*each) for each in json.loads(answers.read_text())])


@pytest.fixture(scope="module")
def asked(real_data) -> list[Prompt]:
    return [
        Prompt(f"Complete the function.\n\n{each['prompt']}", start="```python\n", stop=FENCE_STOP)
        for each in humaneval.problems(real_data / "humaneval")[:PROBLEMS]
    ]


@pytest.fixture(scope="module")
def here(smollm2, asked) -> list[Completion]:
    from coderet.generators.local import Local

    return sorted(Local(smollm2).generate(asked, SAMPLING))


def _agree(here: list[Completion], there: list[Completion]) -> None:
    """As many tokens read, and greedy completions equal, or alike for SAME_TOKENS words and signs."""
    assert [each.prompt_tokens for each in here] == [each.prompt_tokens for each in there]
    parts = [[re.findall(r"\w+|\S", each.text) for each in made] for made in (here, there)]
    alike = [_alike(*pair) for pair in zip(*parts, strict=True)]
    pairs = [*zip(here, there, strict=True)]
    equal = [one.text == other.text for one, other in pairs]
    print(f"equal: {sum(equal)} of {PROBLEMS}; alike for {alike}")
    assert all(same or length >= SAME_TOKENS for same, length in zip(equal, alike, strict=True))
    assert all(one[1:] == other[1:] for (one, other), same in zip(pairs, equal, strict=True) if same)  # ends, counts


def _alike(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
