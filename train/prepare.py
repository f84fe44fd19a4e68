"""Make a retriever that has nothing to learn.

reads   params: retrievers.<retriever>.{kind,fit}
writes  models/retrievers/<retriever>
"""

import tempfile
from pathlib import Path

from coderet import encoders, paths, retrievers, stage
from coderet.corpora import store


def main(retriever: str) -> None:
    with stage.open(retriever=retriever) as job, store.new_folder(paths.retriever(retriever)) as folder:
        spec, where = job.params.retrievers[retriever], f"params.yaml: retrievers.{retriever}"
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            parts = {name: encoders.prepare(each, Path(work)) for name, each in spec.fit.items()}
            retrievers.save(retrievers.create(spec.kind, where, **parts), spec.kind, folder)


if __name__ == "__main__":
    stage.run(main)
