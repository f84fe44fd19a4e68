"""Score mined negatives anew with the encoder of another retriever, a teacher, and cut what it takes for right.

reads   data/pairs/train.parquet  data/negatives/<retriever>.parquet  models/retrievers/<rescorer>
        params: rescorers.<rescorer>
writes  data/negatives/<retriever>+<rescorer>.parquet  train/results/negatives/<retriever>+<rescorer>.json
"""

from coderet import params, paths, retrievers, stage, training
from coderet.corpora import store
from coderet.metrics import efficiency


def main(retriever: str, rescorer: str) -> None:
    with stage.open(retriever=retriever, rescorer=rescorer) as job, efficiency.peak_memory() as memory:
        settings, name = job.params.rescorers.get(rescorer, {}), params.rescoring(retriever, rescorer)
        spec = job.params.retrievers[rescorer]
        with job.clock() as clock:
            facts = training.rescore_negatives(
                paths.negatives(retriever),
                paths.PAIRS / "train.parquet",
                retrievers.load(paths.retriever(rescorer), {"kind": spec.kind}),
                paths.negatives(name),
                paths.WORK / "negatives" / name,
                settings,
                f"params.yaml: rescorers.{rescorer}",
            )
        store.write_json(
            paths.negatives_result(name),
            {
                "retriever": retriever,
                "teacher": rescorer,
                "settings": settings,
                **facts,
                "seconds": clock.seconds,
                "peak_memory_bytes": memory.bytes,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
