"""Write a run in the form that the CodeSearchNet Challenge takes predictions in.

reads   data/benchmarks/<benchmark>  data/runs/<benchmark>/<run>
writes  eval/exports/challenge/<run>/<benchmark>.csv
"""

from coderet import paths, stage
from coderet.corpora import challenge, store


def main(benchmark: str, run: str) -> None:
    with stage.open(benchmark=benchmark, run=run):
        folder, answers = paths.benchmark(benchmark), {}
        for name in store.datasets(folder):
            dataset = store.read_dataset(folder, name, judged=False)
            hits = store.read_run(paths.runs(benchmark, run) / f"{name}.arrow", dataset.corpus)
            answers[name] = challenge.Answer(dataset, hits)
        path = paths.exported("challenge", run, f"{benchmark}.csv")
        challenge.write_predictions(path, answers)
        print(path)


if __name__ == "__main__":
    stage.run(main)
