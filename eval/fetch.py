"""Fetch the pinned files of a source.

reads   params: sources.<source>
writes  data/raw/sources/<source>
"""

from coderet import paths, stage
from coderet.corpora import sources


def main(source: str) -> None:
    with stage.open(source=source) as job:
        sources.fetch(job.params.sources[source], paths.source(source), unpack=False)


if __name__ == "__main__":
    stage.run(main)
