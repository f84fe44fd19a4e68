"""What a process frees it keeps: counted in page faults, of which the kernel takes one for each page that is new."""

import subprocess
import sys

import pytest

ROUNDS = """
import resource, sys
import torch
from coderet.encoders import memory
kept = sys.argv[1] == "kept" and memory.keep_freed()
make = lambda: torch.ones(16 * 2**20)  # 64 MiB, 16,384 pages
make()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    make()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> tuple[bool, int]:
    told = subprocess.run(
        [sys.executable, "-c", ROUNDS, how], capture_output=True, text=True, check=True
    ).stdout.split()
    return told[0] == "True", int(told[1])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have other allocators")
def test_a_tensor_in_memory_that_is_kept_costs_no_page_faults():
    kept, few = faults("kept")
    if not kept:
        pytest.skip("this C library cannot be told to keep memory")
    assert few < 1000
    assert faults("given back")[1] > 4 * 2**14 / 512  # whatever the size of a page may be, up to 2 MiB
