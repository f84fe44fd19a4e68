"""Make a retriever's static encoder out of a teacher's vectors and the mined pairs.

reads   data/pairs  models/retrievers/<teacher>  params: seed, grid.teacher, retrievers.<retriever>.{kind,fit}
writes  models/retrievers/<retriever>  train/results/<retriever>.json
"""

from coderet import encoders, paths, reports, retrievers, stage, training
from coderet.corpora import store
from coderet.metrics import efficiency


def main(retriever: str) -> None:
    with stage.open(retriever=retriever) as job, efficiency.peak_memory() as memory:
        spec, name = job.params.retrievers[retriever], job.params.grid.teacher
        teacher = encoders.load(paths.retriever(name) / "encoder")
        encoder, facts = training.distil(teacher, paths.PAIRS, paths.WORK / "vectors", job.params.seed, **spec.fit)
        with store.new_folder(paths.retriever(retriever)) as folder:
            retrievers.save(retrievers.create(spec.kind, encoder=encoder), spec.kind, folder)
            card = reports.card(retriever, job.params, folder / "encoder", facts)
            (folder / "encoder" / "README.md").write_text(card, encoding="utf-8")
        size = efficiency.folder_bytes(paths.retriever(retriever))
        store.write_json(
            paths.training_result(retriever),
            {
                "system": retriever,
                "teacher": name,
                **facts,
                "settings": {"fit": dict(spec.fit)},
                "model_bytes": size,
                "peak_memory_bytes": memory.bytes,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
