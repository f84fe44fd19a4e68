"""Make a generator: fetch its model, or write down which one a server is to be asked for.

reads   params: generators.<generator>.{kind,fit}
writes  models/generators/<generator>
"""

import tempfile
from pathlib import Path

from coderet import generators, paths, stage
from coderet.corpora import store


def main(generator: str) -> None:
    with stage.open(generator=generator) as job, store.new_folder(paths.generator(generator)) as folder:
        spec, where = job.params.generators[generator], f"params.yaml: generators.{generator}"
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            generators.prepare(spec.kind, spec.fit, Path(work), folder, where)


if __name__ == "__main__":
    stage.run(main)
