"""How numbers are told: quality in hundredths as papers print it, costs with the digits that matter, sizes in words."""

from coderet.reports.results import UNITS


def quality(value: float) -> str:
    return f"{100 * value:.1f}"


def interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f}"


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
    return size(value) if UNITS[name] == "bytes" else number(value)


def words(name: str) -> str:
    """`query_milliseconds_p50` as a reader says it, with its unit."""
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
