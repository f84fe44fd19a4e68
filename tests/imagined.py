"""A small grid of made-up results, written with the library's own writers: one answer a query, plain values."""

import numpy as np
import pyarrow as pa
import yaml

from coderet import paths, reports
from coderet.corpora import store
from coderet.records import DOCUMENTS, QRELS, QUERIES, Draft

BENCHMARKS = ("functions", "solutions")
RETRIEVERS = ("plain", "learned")
MACHINE = {"processor": "Imaginary 9000", "cores": 2, "memory_bytes": 8 * 2**30}
SETTINGS = {
    "plain": {"kind": "lucene", "index": {"analyzer": "whitespace", "text_fields": ["text"]}, "k1": 1.2},
    "learned": {"kind": "dense", "index": {"similarity": "cosine", "text_fields": ["text"]}},
    "both": {"kind": "rrf", "members": ["plain", "learned"], "k": 60},
}

# Of 20 queries so many have their answer at rank one (a score of 1), the others none (0).
RIGHT = {
    ("functions", "plain"): 5,
    ("functions", "learned"): 18,
    ("functions", "both"): 15,
    ("solutions", "plain"): 20,
    ("solutions", "learned"): 19,
    ("solutions", "both"): 20,
}


def figures(right, queries=20):
    share = right / queries
    return {"value": share, "low": max(0.0, share - 0.1), "high": min(1.0, share + 0.1)}


def write_results(root):
    """All the files of the grid below root."""
    for benchmark in BENCHMARKS:
        counts = {"documents": 30, "queries": 21, "queries_without_gold": 1, "duplicate_groups": 2}
        store.write_json(
            root / paths.result(benchmark, "collect"), {"benchmark": benchmark, "datasets": {"pool": counts}}
        )
        for system in (*RETRIEVERS, "both"):
            write_score(root, benchmark, system)
    for benchmark in BENCHMARKS:
        for place, system in enumerate(RETRIEVERS):
            store.write_json(
                root / paths.result(benchmark, system, "index"),
                {
                    "settings": SETTINGS[system]["index"],
                    "corpora": {
                        "pool": {
                            "documents": 30,
                            "documents_per_second": 60 / (place + 1),
                            "milliseconds_per_document": 1000 * (place + 1) / 60,
                            "index_bytes": 1500,
                            **({"documents_cut": 2, "tokens_lost": 43} if system == "learned" else {}),
                        }
                    },
                    "headline": "pool",
                    "model_bytes": 4000,
                    "peak_memory_bytes": 10**8,
                    "threads": 2,
                    "hardware": MACHINE,
                },
            )
            store.write_json(
                root / paths.result(benchmark, system, "search"),
                {
                    "settings": SETTINGS[system],
                    "datasets": {
                        "pool": {
                            "queries": 20,
                            "queries_per_second": 200 / (place + 1),
                            "query_milliseconds_p50": 4.0 + place,
                        }
                    },
                    "headline": "pool",
                    "peak_memory_bytes": 2 * 10**8,
                    "threads": 2,
                    "hardware": MACHINE,
                },
            )
    curve = [
        {"step": step, "epoch": step // 10, "seconds": step / 5, "loss": 3 / step, "validation_mrr": step / 100}
        for step in (10, 20, 30)
    ]
    store.write_json(
        root / paths.training_result("learned"), {"system": "learned", "seconds": 6.0, "pairs": 500, "curve": curve}
    )
    store.write_json(root / paths.MINING_REPORT, {"pairs": {"train": 500, "valid": 50}, "leaks": {"exact": 3}})


def write_score(root, benchmark, system, settings=None):
    right = RIGHT[benchmark, system]
    score = {
        "benchmark": benchmark,
        "system": system,
        "headline": "ndcg@10",
        "mean": "queries",
        "confidence": 0.9,
        "settings": settings or SETTINGS[system],
        "inputs": f"{benchmark}-{system}",
        "datasets": {"pool": {"metrics": {"ndcg@10": figures(right), "mrr": figures(right)}, "queries": 20}},
        "all": {name: {**figures(right), "queries": 20, "datasets": 1} for name in ("ndcg@10", "mrr")},
    }
    store.write_json(root / paths.result(benchmark, system, "score"), score)
    ids = pa.chunked_array([pa.array([f"q{i}" for i in range(20)], pa.large_string())])
    values = (np.arange(20) < right).astype(np.float64)
    store.write_scorecard(
        root / paths.scores(benchmark, system) / "pool.arrow", ids, {"ndcg@10": values, "mrr": values}
    )


def write_benchmarks(root):
    """A corpus of one document and one query for each benchmark."""
    documents = pa.RecordBatch.from_pydict({"id": ["d"], "title": [""], "text": ["def f(): pass"]}, DOCUMENTS)
    queries = pa.table({"id": ["q"], "text": ["f"], "excluded": [[]], "withheld": [[]]}, QUERIES)
    qrels = pa.table({"query_id": ["q"], "document_id": ["d"], "grade": np.ones(1, np.float32)}, QRELS)
    for benchmark in BENCHMARKS:
        store.write_benchmark(root / paths.benchmark(benchmark), [Draft("pool", [documents], queries, qrels)])


def write_params(root, project):
    """The project's params with this grid in place of its own."""
    raw = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    raw["code"] = str(project)
    raw["benchmarks"] = {name: {"kind": "beir", "source": [], "depth": 10} for name in BENCHMARKS}
    raw["retrievers"] = {
        "plain": {**SETTINGS["plain"], "fit": {}},
        "learned": {**SETTINGS["learned"], "fit": {"encoder": {"kind": "nbow"}}},
    }
    raw["fusions"] = {"both": SETTINGS["both"]}
    raw["compare"]["baseline"] = "plain"
    raw["grid"] |= {
        "benchmarks": list(BENCHMARKS),
        "answered": [],
        "read": [],
        "trained": ["learned"],
        "untrained": ["plain"],
        "retrievers": list(RETRIEVERS),
        "fusions": ["both"],
        "distilled": [],
        "teacher": "",
        "tuned": [],
        "reranked": [],
        "rerankers": [],
        "runs": [*RETRIEVERS, "both"],
    }
    (root / "params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")


def read(root):
    return reports.read(BENCHMARKS, RETRIEVERS, ["both"], ["learned"], root=root)
