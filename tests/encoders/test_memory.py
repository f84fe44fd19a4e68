"""What a process frees it keeps: counted in page faults, of which the kernel takes one for each page that is new."""

import subprocess
import sys

import pytest

STEPS = """
import resource, sys
import torch
from coderet.encoders import memory
kept = sys.argv[1] == "kept" and memory.keep_freed()
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 256), torch.nn.GELU(), torch.nn.LayerNorm(256), torch.nn.Linear(256, 8))
texts = torch.randn(40_000, 8)  # 40 MB a layer
def steps(count):
    for _ in range(count):
        model(texts).square().mean().backward()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = steps(4)
print(kept, steps(4) - before)
"""


def faults(how: str) -> tuple[bool, int]:
    run = subprocess.run([sys.executable, "-c", STEPS, how], capture_output=True, text=True, check=True)
    kept, count = run.stdout.split()
    return kept == "True", int(count)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have other allocators")
def test_steps_in_memory_that_is_kept_cost_hardly_a_page_fault():
    kept, few = faults("kept")
    if not kept:
        pytest.skip("this C library cannot be told to keep memory")
    assert 10 * few < faults("given back")[1]
