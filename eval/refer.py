"""Write the runs of no retriever: without hits, what a generator knows by itself, and of the judgements, the oracle's.

reads   data/benchmarks/<benchmark>/{corpora,queries,qrels}
writes  data/runs/<benchmark>/none  data/runs/<benchmark>/oracle
"""

from coderet import paths, stage
from coderet.benchmarks import contexts
from coderet.corpora import store


def main(benchmark: str) -> None:
    with stage.open(benchmark=benchmark):
        folder = paths.benchmark(benchmark)
        of = {contexts.NONE: contexts.without_hits, contexts.ORACLE: contexts.of_judgements}
        for run, made in of.items():
            with store.new_folder(paths.runs(benchmark, run)) as runs:
                for name in store.datasets(folder):
                    store.write_run(runs / f"{name}.arrow", made(store.read_dataset(folder, name)), {"kind": run})


if __name__ == "__main__":
    stage.run(main)
