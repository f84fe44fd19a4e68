"""What a result costs: speed, memory and size, in records whose field names carry the unit.

Encoding or indexing is told per document, answering per single query and per batch, each apart from the other; the
first calls, which load and compile, are left out. What was not measured is absent from the record, never 0.

Left out: energy, prices, and memory of an accelerator.
"""

import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import numpy as np

UNITS = {
    "documents": "documents",
    "documents_per_second": "documents/s",
    "milliseconds_per_document": "ms/document",
    "queries": "queries",
    "queries_per_second": "queries/s",
    "query_milliseconds_p50": "ms/query",
    "query_milliseconds_p95": "ms/query",
    "batch_size": "queries/batch",
    "batch_milliseconds_p50": "ms/batch",
    "batch_milliseconds_p95": "ms/batch",
    "pairs": "pairs",
    "pairs_per_second": "pairs/s",
    "peak_memory_bytes": "bytes",
    "index_bytes": "bytes",
    "model_bytes": "bytes",
    "parameters": "parameters",
    "threads": "threads",
    "cores": "cores",
    "memory_bytes": "bytes",
}
"""Unit of each number in `Cost.measured()`."""

_SECONDS_BETWEEN_SAMPLES = 0.25  # listing the children looks at every process of the machine

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Hardware:
    """The machine that a cost was measured on."""

    processor: str
    cores: int  # that this process may use
    memory_bytes: int
    accelerator: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of one system on one benchmark, or a part of it; None is what nobody measured."""

    documents: int | None = None
    documents_per_second: float | None = None
    milliseconds_per_document: float | None = None
    queries: int | None = None
    queries_per_second: float | None = None  # in batches
    query_milliseconds_p50: float | None = None  # one query alone
    query_milliseconds_p95: float | None = None
    batch_size: int | None = None
    batch_milliseconds_p50: float | None = None
    batch_milliseconds_p95: float | None = None
    pairs: int | None = None  # of a query and a document that a reranker really scored
    pairs_per_second: float | None = None
    peak_memory_bytes: int | None = None  # of the process and its children, memory-mapped files in use included
    index_bytes: int | None = None  # on disk
    model_bytes: int | None = None  # on disk
    parameters: int | None = None
    threads: int | None = None
    hardware: Hardware | None = None

    def measured(self) -> dict[str, int | float | str]:
        """All that is known, flat, for a results file: the hardware's fields beside the others."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "hardware"}
        machine = (
            {field.name: getattr(self.hardware, field.name) for field in fields(Hardware)} if self.hardware else {}
        )
        return {name: value for name, value in (own | machine).items() if value is not None}

    def __or__(self, other: "Cost") -> "Cost":
        """Both parts in one; ValueError where they say different things about one field."""
        both = {}
        for field in fields(self):
            mine, its = getattr(self, field.name), getattr(other, field.name)
            if mine is not None and its is not None and mine != its:
                raise ValueError(f"{field.name} was measured twice, as {mine} and as {its}; keep one")
            both[field.name] = its if mine is None else mine
        return Cost(**both)


def of_documents(documents: int, seconds: float) -> Cost:
    """Cost of encoding or indexing documents in so many seconds; no documents have no speed. ValueError for no time."""
    if documents < 1:
        return Cost(documents=0)
    if seconds <= 0:
        raise ValueError(f"{documents} documents in {seconds} s have no speed; time at least one document")
    return Cost(
        documents=documents,
        documents_per_second=documents / seconds,
        milliseconds_per_document=1000 * seconds / documents,
    )


def of_queries(single_seconds: np.ndarray, batch_seconds: np.ndarray, queries: int, batch_size: int) -> Cost:
    """Cost of answering: single_seconds has one number a lone query, batch_seconds one a batch.

    queries is how many all the batches held together, batch_size how many a full one holds; no queries have no speed.
    ValueError if one of the two was not timed.
    """
    if not queries:
        return Cost(queries=0)
    if not len(single_seconds) or not len(batch_seconds):
        raise ValueError(
            f"{len(single_seconds)} single queries and {len(batch_seconds)} batches were timed; wanted one of each"
        )
    single, batch = (1000 * np.percentile(seconds, [50, 95]) for seconds in (single_seconds, batch_seconds))
    return Cost(
        queries=queries,
        queries_per_second=float(queries / np.sum(batch_seconds)),
        query_milliseconds_p50=float(single[0]),
        query_milliseconds_p95=float(single[1]),
        batch_size=batch_size,
        batch_milliseconds_p50=float(batch[0]),
        batch_milliseconds_p95=float(batch[1]),
    )


def of_pairs(single_seconds: np.ndarray, pairs: int, seconds: float) -> Cost:
    """Cost of reranking: single_seconds has one number a lone query, pairs were scored in so many seconds.

    Pairs whose scores were kept from before are not counted; none scored have no speed, nor have no lone queries.
    """
    milliseconds = (
        [float(each) for each in 1000 * np.percentile(single_seconds, [50, 95])] if len(single_seconds) else []
    )
    return Cost(
        pairs=pairs,
        pairs_per_second=pairs / seconds if pairs else None,
        query_milliseconds_p50=milliseconds[0] if milliseconds else None,
        query_milliseconds_p95=milliseconds[1] if milliseconds else None,
    )


def latencies(
    call: Callable[[Item], object],
    items: Sequence[Item],
    warm_up: int,
    clock: Callable[[], float] = time.perf_counter,
) -> np.ndarray:
    """Seconds of call(item), one number an item after the first warm_up ones, which are called but not timed.

    The timed items are not called before, so that no cache of answers flatters them. ValueError if none is left.
    An accelerator's queue is not waited for: call must return only when the answer is there.
    """
    if len(items) <= warm_up:
        raise ValueError(f"{len(items)} items leave none to time after {warm_up} for warming up; give more")
    for item in items[:warm_up]:
        call(item)
    seconds = np.empty(len(items) - warm_up)
    for place, item in enumerate(items[warm_up:]):
        start = clock()
        call(item)
        seconds[place] = clock() - start
    return seconds


class PeakMemory:
    """Largest resident memory seen, in bytes; `bytes` grows while the block of `peak_memory` runs."""

    def __init__(self) -> None:
        self.bytes = 0


@contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Watch the memory of this process and its children: `with peak_memory() as peak: ...`, then `peak.bytes`.

    The process's own peak is exact on Linux, which keeps one that can be reset; children, and everything elsewhere, are
    looked at four times a second, so a shorter peak may be missed. Pages shared by processes count for each of them.
    """
    peak = PeakMemory()
    kept = _reset_own_peak()
    done = threading.Event()

    def look() -> None:
        peak.bytes = max(peak.bytes, _resident_bytes(), _own_peak_bytes() if kept else 0)

    def watch() -> None:
        while not done.wait(_SECONDS_BETWEEN_SAMPLES):
            look()

    look()
    watcher = threading.Thread(target=watch, name="peak-memory", daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
        look()


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder, or of one file; FileNotFoundError if there is none of that name."""
    if not folder.is_dir():
        return folder.stat().st_size
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def hardware() -> Hardware:
    """This machine. The accelerator is named only if torch is loaded already: asking for it takes seconds."""
    import psutil

    return Hardware(_processor(), _cores(), psutil.virtual_memory().total, _accelerator())


def threads() -> int:
    """Threads that numerical work uses: torch's number if it is loaded, else OMP_NUM_THREADS, else the cores."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdecimal() else _cores()


def _resident_bytes() -> int:
    import psutil

    process = psutil.Process()
    resident = 0
    for member in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # it ended between being listed and being asked
            resident += member.memory_info().rss
    return resident


def _reset_own_peak() -> bool:
    """Let the system forget the peak of earlier work; False where it cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _own_peak_bytes() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _accelerator() -> str | None:
    torch = sys.modules.get("torch")
    return torch.cuda.get_device_name() if torch is not None and torch.cuda.is_available() else None
