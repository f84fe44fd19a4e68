"""Train the encoder of a retriever on the mined pairs, its curve logged live.

reads   data/pairs  models/tokenizers  params: seed, retrievers.<retriever>.{kind,fit}
writes  models/retrievers/<retriever>  train/results/<retriever>.json
"""

from coderet import paths, reports, retrievers, stage, tracking, training
from coderet.corpora import store
from coderet.metrics import efficiency


def main(retriever: str) -> None:
    with stage.open(retriever=retriever) as job, efficiency.peak_memory() as memory:
        spec = job.params.retrievers[retriever]
        tracker = tracking.start(retriever, spec.fit)
        logger = tracking.logger(tracker)
        encoder, facts = training.fit(
            paths.PAIRS, paths.TOKENIZERS, spec.fit, paths.WORK / "fit", job.params.seed, logger
        )
        with store.new_folder(paths.retriever(retriever)) as folder:
            retrievers.save(retrievers.create(spec.kind, encoder=encoder), spec.kind, folder)
            card = reports.card(retriever, job.params, folder / "encoder", facts)
            (folder / "encoder" / "README.md").write_text(card, encoding="utf-8")
        size = efficiency.folder_bytes(paths.retriever(retriever))
        store.write_json(
            paths.training_result(retriever),
            {"system": retriever, **facts, "model_bytes": size, "peak_memory_bytes": memory.bytes, **job.machine},
        )


if __name__ == "__main__":
    stage.run(main)
