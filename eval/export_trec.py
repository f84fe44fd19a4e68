"""Write a run in trec_eval's form, and what it answers as folders in BEIR's.

reads   data/benchmarks/<benchmark>  data/runs/<benchmark>/<run>
writes  eval/exports/trec/<run>/<benchmark>/<dataset>.run  eval/exports/beir/<benchmark>/<dataset>
"""

from coderet import paths, stage
from coderet.corpora import exchange, store


def main(benchmark: str, run: str) -> None:
    with stage.open(benchmark=benchmark, run=run):
        folder = paths.benchmark(benchmark)
        for name in store.datasets(folder):
            dataset = store.read_dataset(folder, name)
            hits = store.read_run(paths.runs(benchmark, run) / f"{name}.arrow", dataset.corpus)
            path, data = paths.exported("trec", run, benchmark, f"{name}.run"), paths.exported("beir", benchmark, name)
            with store.new_file(path) as draft:
                exchange.write_trec_run(hits, draft, run)
            with store.new_folder(data) as draft:
                exchange.write_beir(dataset, draft)
            print(path, data)


if __name__ == "__main__":
    stage.run(main)
