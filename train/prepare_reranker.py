"""Make a reranker of a model that was trained elsewhere.

reads   params: rerankers.<reranker>.{kind,fit}
writes  models/rerankers/<reranker>
"""

import tempfile
from pathlib import Path

from coderet import paths, stage
from coderet.corpora import store
from coderet.retrievers import reranking


def main(reranker: str) -> None:
    with stage.open(reranker=reranker) as job, store.new_folder(paths.reranker(reranker)) as folder:
        spec, where = job.params.rerankers[reranker], f"params.yaml: rerankers.{reranker}"
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            reranking.save(reranking.prepare(spec.kind, spec.fit, Path(work), where), spec.kind, folder)


if __name__ == "__main__":
    stage.run(main)
