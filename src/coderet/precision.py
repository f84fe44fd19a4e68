"""What numbers a model computes in, by the processor that it runs on."""

import torch

from coderet.records import DataError

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
_IN_BF16 = ("avx512_bf16", "amx_bf16")  # on other processors it is several times slower than fp32


def computing_type(precision: str, device: str) -> torch.dtype:
    """What a precision means on a device; DataError for one that is not known."""
    if precision == "auto":
        able = device == "cuda" or any(torch.cpu.get_capabilities().get(name) for name in _IN_BF16)
        return PRECISIONS["bf16" if able else "fp32"]
    if precision not in PRECISIONS:
        raise DataError(f"precision is {precision!r}; known: auto, {', '.join(PRECISIONS)}.")
    return PRECISIONS[precision]
