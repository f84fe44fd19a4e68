"""Put the files of a benchmark into its folder, and say where each was found or is to be had.

reads   params: benchmarks.<benchmark>.source
writes  data/raw/<benchmark>

`official` files are looked for in data/raw/<benchmark>, in the folder CODERET_DATA, and in their official places; what
is in data/raw is kept.
"""

from coderet import benchmarks, paths, stage
from coderet.corpora import released, sources


def main(benchmark: str) -> None:
    with stage.open(benchmark=benchmark) as job:
        spec, folder = job.params.benchmarks[benchmark], paths.raw(benchmark)
        if spec.source != (released.OFFICIAL,):
            sources.fetch(spec.source, folder, unpack=False)
            return
        facts = benchmarks.benchmark(spec.kind, f"params.yaml: benchmarks.{benchmark}.kind")
        found = released.gather(facts.files, folder, released.mirror())
        for each in found:
            print(each)
        released.require(found, benchmark, folder)


if __name__ == "__main__":
    stage.run(main)
