"""Make a retriever that has nothing to learn.

reads   params: retrievers.<retriever>.{kind,fit}
writes  models/retrievers/<retriever>
"""

from coderet import paths, retrievers, stage
from coderet.corpora import store


def main(retriever: str) -> None:
    with stage.open(retriever=retriever) as job, store.new_folder(paths.retriever(retriever)) as folder:
        spec = job.params.retrievers[retriever]
        retrievers.save(retrievers.create(spec.kind, **spec.fit), spec.kind, folder)


if __name__ == "__main__":
    stage.run(main)
