"""FAISS on a graphics processor: where an index is told to search there, and FAISS was built for it.

Only the choice of candidates moves there; scores are made on the processor as ever. Building stays on the processor
too: it is repeated byte for byte there.

Left out: several graphics processors, and kinds that FAISS has no graphics code for (graphs, codes without lists).
"""

from typing import Any, Literal

import faiss
import numpy as np

from coderet.records import DataError

Device = Literal["cpu", "gpu"]
MOST = 2048  # hits a query, by FAISS's graphics code
_ROWS = 262_144  # copied at a time


def flat(vectors: np.ndarray) -> Any:
    """All vectors (N, dim) in the memory of the graphics processor. DataError where there is none."""
    index = _placed(lambda resources: faiss.GpuIndexFlatIP(resources, vectors.shape[1]))  # type: ignore[attr-defined]
    for start in range(0, len(vectors), _ROWS):
        index.add(np.ascontiguousarray(vectors[start : start + _ROWS]))
    return index


def copy(index: Any) -> Any:
    """A copy of index in the memory of the graphics processor. DataError where there is none or it cannot take it."""
    return _placed(lambda resources: faiss.index_cpu_to_gpu(resources, 0, index))  # type: ignore[attr-defined]


def width(depth: int, wanted: int) -> int:
    """How many candidates to ask for: wanted, but no more than MOST. DataError if a search is deeper than that."""
    if depth > MOST:
        raise DataError(
            f"FAISS finds at most {MOST} hits a query on a graphics processor, {depth} are asked for; use cpu"
        )
    return min(wanted, MOST)


def _placed(make: Any) -> Any:
    if not hasattr(faiss, "StandardGpuResources"):
        raise DataError(
            "device is gpu, but this FAISS was built without graphics processors; install faiss-gpu in place of "
            "faiss-cpu (requirements-gpu.txt), or set device: cpu"
        )
    if not faiss.get_num_gpus():
        raise DataError("device is gpu, but FAISS sees no graphics processor here; set device: cpu")
    resources = faiss.StandardGpuResources()
    try:
        index = make(resources)
    except RuntimeError as error:
        raise DataError(f"FAISS cannot put this index on a graphics processor ({error}); set device: cpu") from None
    # FAISS's own name for what must live as long as the index.
    index.referenced_objects = [*getattr(index, "referenced_objects", []), resources]
    return index
