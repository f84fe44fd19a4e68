"""Fetch the pinned files of a source or of a benchmark.

reads   params: sources.<name> or benchmarks.<name>.source
writes  data/raw/<name>
"""

from coderet import paths, stage
from coderet.corpora import sources


def main(name: str) -> None:
    with stage.open(name=name) as job:
        sources.fetch(job.params.pins(name), paths.raw(name), unpack=False)


if __name__ == "__main__":
    stage.run(main)
