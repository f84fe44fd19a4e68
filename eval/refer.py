"""Write the runs of no retriever: without hits, the judgements, and documents by lot, none of them relevant.

reads   data/benchmarks/<benchmark>/{corpora,queries,qrels}
        params: seed
writes  data/runs/<benchmark>/{none,oracle,random}
"""

from functools import partial

from coderet import paths, stage
from coderet.benchmarks import contexts
from coderet.corpora import store


def main(benchmark: str) -> None:
    with stage.open(benchmark=benchmark) as job:
        folder = paths.benchmark(benchmark)
        of = {
            contexts.NONE: contexts.without_hits,
            contexts.ORACLE: contexts.of_judgements,
            contexts.RANDOM: partial(contexts.by_lot, seed=job.params.seed),
        }
        for run, made in of.items():
            with store.new_folder(paths.runs(benchmark, run)) as runs:
                for name in store.datasets(folder):
                    store.write_run(runs / f"{name}.arrow", made(store.read_dataset(folder, name)), {"kind": run})


if __name__ == "__main__":
    stage.run(main)
