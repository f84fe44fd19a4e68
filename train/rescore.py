"""Score mined negatives anew with the encoder of another retriever, a teacher, and cut what it takes for right.

reads   data/pairs/train.parquet  data/negatives/<retriever>.parquet  models/retrievers/<teacher>
        params: teachers.<teacher>
writes  data/negatives/<retriever>+<teacher>.parquet  train/results/negatives/<retriever>+<teacher>.json
"""

from coderet import params, paths, retrievers, stage, training
from coderet.corpora import store
from coderet.metrics import efficiency


def main(retriever: str, teacher: str) -> None:
    with stage.open(retriever=retriever, teacher=teacher) as job, efficiency.peak_memory() as memory:
        settings, name = job.params.teachers.get(teacher, {}), params.rescoring(retriever, teacher)
        spec = job.params.retrievers[teacher]
        with job.clock() as clock:
            facts = training.rescore_negatives(
                paths.negatives(retriever),
                paths.PAIRS / "train.parquet",
                retrievers.load(paths.retriever(teacher), {"kind": spec.kind}),
                paths.negatives(name),
                paths.WORK / "negatives" / name,
                settings,
                f"params.yaml: teachers.{teacher}",
            )
        store.write_json(
            paths.negatives_result(name),
            {
                "retriever": retriever,
                "teacher": teacher,
                "settings": settings,
                **facts,
                "seconds": clock.seconds,
                "peak_memory_bytes": memory.bytes,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
