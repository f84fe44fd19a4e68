"""Any folder in BEIR form as a benchmark: a user's own corpus, queries and judgements by one entry in params.yaml.

Queries that the split's qrels do not name are not run, as in BEIR's own loader. Unlike BEIR's default, a document is
not dropped because its id equals the query's: `exclude_self: true` asks for that, where queries are documents.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc

from coderet.corpora import exchange
from coderet.records import Benchmark, Draft


def collect(folder: Path, *, split: str = "test", exclude_self: bool = False) -> Iterator[Draft]:
    """One dataset, named after its split."""
    beir = exchange.beir_folder(folder)
    qrels = exchange.beir_qrels(beir, split)
    queries = exchange.beir_queries(beir, pc.unique(qrels["query_id"]), exclude_self)
    yield Draft(split, exchange.beir_documents(beir), queries, qrels)


BENCHMARK = Benchmark(
    name="beir",
    collect=collect,
    metrics=("ndcg@10", "ndcg-exp@10", "mrr@10", "map", "precision@10", "recall@10", "recall@100", "hit@1"),
    source="the user's own files",
    licence="the user's",
)
