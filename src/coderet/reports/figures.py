"""How numbers are told: quality in hundredths as papers print it, costs with the digits that matter, sizes in words."""

from collections.abc import Mapping

from coderet.reports import results
from coderet.reports.results import RECALL, SEARCH_SPEEDS


def quality(value: float) -> str:
    return f"{100 * value:.1f}"


def interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f}"


def p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def number(value: float) -> str:
    """Three digits that matter, thousands set apart, whole numbers whole."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1e}"


def size(count: float) -> str:
    """Bytes in powers of 1,000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def cost(name: str, value: float) -> str:
    unit = results.unit(name)
    return size(value) if unit == "bytes" else quality(value) if unit == "fraction" else number(value)


def caveat(name: str, costs: Mapping[str, float]) -> str:
    """What a speed among costs is worth: the recall of the approximate index it is of; empty for all other figures."""
    recalls = [each for each in costs if each.startswith(RECALL)] if name in SEARCH_SPEEDS else []
    told = ", ".join(f"@{each.removeprefix(RECALL)} {quality(costs[each])}" for each in recalls)
    return f"recall {told}" if told else ""


def words(name: str) -> str:
    """`query_milliseconds_p50` as a reader says it, with its unit."""
    if name.startswith(RECALL):
        return f"recall against flat, first {name.removeprefix(RECALL)}"
    return _LABELS.get(name, name.replace("_", " "))


_LABELS = {
    "documents_per_second": "documents/s",
    "milliseconds_per_document": "ms/document",
    "pairs_per_second": "pairs/s",
    "queries_per_second": "queries/s",
    "query_milliseconds_p50": "ms/query, p50",
    "query_milliseconds_p95": "ms/query, p95",
    "batch_milliseconds_p50": "ms/batch, p50",
    "batch_milliseconds_p95": "ms/batch, p95",
    "index_bytes": "index on disk",
    "model_bytes": "model on disk",
    "peak_memory_bytes": "peak memory",
    "index_peak_memory_bytes": "peak memory, indexing",
    "search_peak_memory_bytes": "peak memory, searching",
    "best_validation_mrr": "best validation MRR",
}
