"""Scoring speed beside pytrec_eval, and ranx where it is installed: 20,000 queries with 100 hits each, in one process.

Every tool gets the run in the form it works on, so the time to build that form is told apart. All values are compared
before any time is printed.
"""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytrec_eval
import yaml

from coderet import paths
from coderet.corpora import store
from coderet.metrics.ranking import Judgements, evaluate
from coderet.metrics.significance import interval, paired_p_value
from coderet.records import Draft, Run, documents_batch, qrels_table, queries_table

ROOT = Path(__file__).parents[1]

MEASURES = {
    "ndcg@10": "ndcg_cut_10",
    "mrr": "recip_rank",
    "map": "map",
    "recall@100": "recall_100",
    "hit@1": "success_1",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--depth", type=int, default=100)
    sizes = parser.parse_args()
    rows, scores, judgements = example(sizes.queries, sizes.depth)
    groups = np.arange(sizes.queries) // 2  # every text twice, the worst case of folding
    ours, seconds = timed(lambda: evaluate(np.arange(sizes.queries), rows, scores, judgements, list(MEASURES)))
    report("coderet: five metrics", seconds)
    folded = [f"{name}-folded" for name in MEASURES]
    _, seconds = timed(
        lambda: evaluate(np.arange(sizes.queries), rows, scores, judgements, [*MEASURES, *folded], groups)
    )
    report("coderet: five metrics, strict and folded", seconds)
    open_ties = [f"{name}-{order}" for name in MEASURES for order in ("expected", "best", "worst")]
    _, seconds = timed(lambda: evaluate(np.arange(sizes.queries), rows, scores, judgements, [*MEASURES, *open_ties]))
    report("coderet: five metrics and all orders of ties", seconds)
    _, seconds = timed(lambda: [interval([ours.values[name]]) for name in MEASURES])
    report("coderet: their intervals, 2,000 resamples", seconds)
    shuffled = np.random.default_rng(1).permutation(ours.values["mrr"])
    _, seconds = timed(lambda: paired_p_value([ours.values["mrr"]], [shuffled]))
    report("coderet: a paired test, 10,000 resamples", seconds)
    _, seconds = timed(lambda: subprocess.run([sys.executable, "-c", "import coderet.metrics.ranking"], check=True))
    report("coderet: a process that imports it", seconds)
    with tempfile.TemporaryDirectory() as folder:
        prepare_stage(Path(folder), rows, scores, judgements)
        command = [sys.executable, str(ROOT / "eval" / "score.py"), "ours", "bm25"]
        _, seconds = timed(lambda: subprocess.run(command, cwd=folder, check=True, stderr=subprocess.DEVNULL))
    report("coderet: the stage `score`, whole process", seconds)

    (run, qrels), seconds = timed(lambda: as_mappings(rows, scores, judgements))
    report("nested mappings for the others", seconds)
    theirs, seconds = timed(lambda: pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES.values())).evaluate(run))
    report("pytrec_eval: five metrics", seconds)
    for name, measure in MEASURES.items():
        wanted = [theirs[str(query)][measure] for query in ours.queries]
        np.testing.assert_allclose(ours.values[name], wanted, atol=1e-6, err_msg=name)
    if importlib.util.find_spec("ranx") is None:
        print("ranx: not installed")
        return
    import ranx

    (ranx_qrels, ranx_run), seconds = timed(lambda: (ranx.Qrels(qrels), ranx.Run(run)))
    report("ranx: its own form", seconds)
    names = ["ndcg@10", "mrr", "map", "recall@100", "hit_rate@1"]
    for attempt in ("first call, compiling", "second call"):
        _, seconds = timed(lambda: ranx.evaluate(ranx_qrels, ranx_run, names))
        report(f"ranx: five metrics, {attempt}", seconds)


def example(queries: int, depth: int) -> tuple[np.ndarray, np.ndarray, Judgements]:
    """A run over as many documents as queries, with ties, and one to three graded judgements a query."""
    random = np.random.default_rng(0)
    start = random.integers(0, queries, (queries, 1))
    rows = random.permuted((start + 7 * np.arange(depth)) % queries, axis=1)  # distinct within a line
    scores = -np.sort(-random.integers(0, 1000, (queries, depth)).astype(np.float32), axis=1)
    places = random.permuted(np.tile(np.arange(depth), (queries, 1)), axis=1)[:, :3]
    judged = rows[np.arange(queries)[:, None], places]
    kept = np.arange(3) < random.integers(1, 4, (queries, 1))
    lines, columns = np.nonzero(kept)
    return (
        rows,
        scores,
        Judgements(lines, judged[lines, columns], random.integers(1, 4, len(lines)).astype(float), queries),
    )


def prepare_stage(folder: Path, rows: np.ndarray, scores: np.ndarray, judgements: Judgements) -> None:
    """What the stage reads, on disk: a benchmark of that size judged by eight metrics, a run and params."""
    ids = [f"d{len(rows) - row:08}" for row in range(len(rows))]
    queries = [str(query) for query in range(len(rows))]
    judged = [queries[each] for each in judgements.queries], [ids[each] for each in judgements.rows], judgements.grades
    texts = documents_batch(ids, [""] * len(ids), ids)
    draft = Draft("test", [texts], queries_table(queries, queries), qrels_table(*judged))
    place = folder / paths.benchmark("ours")
    store.write_benchmark(place, [draft])
    corpus = store.read_corpus(place, "test")
    run = Run.of(corpus, pa.array(queries, pa.large_string()), rows, scores)
    store.write_run(folder / paths.runs("ours", "bm25") / "test.arrow", run, {})
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    params["benchmarks"]["ours"] = {"kind": "beir", "depth": rows.shape[1], "source": []}
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def as_mappings(rows: np.ndarray, scores: np.ndarray, judgements: Judgements) -> tuple[dict, dict]:
    """The same as query id -> document id -> number, ids descending as rows ascend."""
    ids = [f"d{len(rows) - row:08}" for row in range(len(rows))]
    run = {
        str(query): dict(zip((ids[row] for row in line), line_scores, strict=True))
        for query, (line, line_scores) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True))
    }
    qrels: dict[str, dict[str, int]] = {}
    for query, row, grade in zip(judgements.queries, judgements.rows, judgements.grades, strict=True):
        qrels.setdefault(str(query), {})[ids[row]] = int(grade)
    return run, qrels


def timed(act: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return act(), time.perf_counter() - start


def report(what: str, seconds: float) -> None:
    print(f"{what:<45} {seconds:8.3f} s")


if __name__ == "__main__":
    main()
