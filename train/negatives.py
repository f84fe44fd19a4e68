"""Mine hard negatives for the training pairs with a retriever.

reads   data/pairs/train.parquet  models/retrievers/<retriever>  params: seed, {negatives,retrievers}.<retriever>
writes  data/negatives/<retriever>.parquet  train/results/negatives/<retriever>.json
"""

from coderet import paths, retrievers, stage, training
from coderet.corpora import store
from coderet.metrics import efficiency


def main(retriever: str) -> None:
    with stage.open(retriever=retriever) as job, efficiency.peak_memory() as memory:
        settings, folder = job.params.negatives.get(retriever, {}), paths.retriever(retriever)
        spec = job.params.retrievers[retriever].spec
        with job.clock() as clock:
            facts = training.mine_negatives(
                paths.PAIRS / "train.parquet",
                retrievers.load(folder, spec),
                f"{store.identity(folder)} {spec}",
                paths.negatives(retriever),
                paths.WORK / "negatives",
                job.params.seed,
                settings,
                f"params.yaml: negatives.{retriever}",
            )
        store.write_json(
            paths.negatives_result(retriever),
            {
                "retriever": retriever,
                "settings": settings,
                **facts,
                "seconds": clock.seconds,
                "peak_memory_bytes": memory.bytes,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
