"""Put the files of a benchmark into its folder, and say where each was found or is to be had.

reads   params: benchmarks.<benchmark>
writes  data/raw/<benchmark>

`official` files are looked for in data/raw/<benchmark>, in the folder CODERET_DATA, and in their official places; what
is in data/raw is kept.
"""

from coderet import benchmarks, paths, stage
from coderet.corpora import released, sources
from coderet.registry import fit_arguments


def main(benchmark: str) -> None:
    with stage.open(benchmark=benchmark) as job:
        spec, folder = job.params.benchmarks[benchmark], paths.raw(benchmark)
        where = f"params.yaml: benchmarks.{benchmark}"
        facts = benchmarks.benchmark(spec.kind, f"{where}.kind")
        if spec.source != (released.OFFICIAL,):
            sources.fetch(spec.source, folder, unpack=False)
            return
        settings = fit_arguments(facts.collect, spec.settings, where)
        found = released.gather(facts.files_of(settings), folder, released.mirror())
        for each in found:
            if each.state != "missing":  # `require` tells of those
                print(each)
        released.require(found, benchmark, folder)


if __name__ == "__main__":
    stage.run(main)
