"""Search every query of a benchmark with one retriever; the run of a mixture is put together from those before.

reads   data/benchmarks/<benchmark>/{corpora,queries}  data/indexes/<benchmark>/<retriever>
        models/retrievers/<retriever>  params: retrievers.<retriever>
writes  data/runs/<benchmark>/<retriever>  eval/results/<benchmark>/<retriever>/search.json
"""

from coderet import paths, retrievers, stage
from coderet.corpora import store
from coderet.metrics import efficiency
from coderet.records import Dataset, Searcher
from coderet.retrievers import mixing, recall
from coderet.retrievers.answering import answer, lone_queries


def main(benchmark: str, retriever: str) -> None:
    with stage.open(benchmark=benchmark, retriever=retriever) as job:
        spec, timing, folder = job.params.retrievers[retriever], job.params.efficiency, paths.benchmark(benchmark)

        def opened(name: str) -> tuple[Dataset, int]:
            dataset = store.read_dataset(folder, name, judged=False)
            return dataset, dataset.depth or job.params.benchmarks[benchmark].depth

        def searcher_of(dataset: Dataset) -> Searcher:
            return fitted.open(dataset.corpus, paths.index(benchmark, retriever) / dataset.corpus.name)

        with store.new_folder(paths.runs(benchmark, retriever)) as runs:
            with efficiency.peak_memory() as memory:
                fitted = retrievers.load(paths.retriever(retriever), spec.spec)
                settings = {**spec.spec, **fitted.description}
                datasets, names = {}, store.datasets(folder)
                for name in names:
                    dataset, depth = opened(name)
                    if dataset.mixed_of:
                        run = mixing.mixed(dataset, store.read_parts(folder, runs, dataset), depth)
                        store.write_run(runs / f"{name}.arrow", run, mixing.settings(settings, dataset))
                        datasets[name] = {"depth": run.depth}
                        continue
                    searcher = searcher_of(dataset)
                    alone = lone_queries(searcher, dataset, depth, timing.single_queries, timing.warm_up)
                    run, batches = answer(searcher, dataset, depth, timing.batch_queries)
                    store.write_run(runs / f"{name}.arrow", run, settings)
                    cost = efficiency.of_queries(alone, batches, len(run), timing.batch_queries)
                    datasets[name] = cost.measured() | {"depth": depth, "seconds": float(batches.sum())}
            for name in names:  # apart, for the exact search is no part of the memory
                dataset, depth = opened(name)
                if not dataset.mixed_of:
                    datasets[name] |= recall.against_flat(dataset, searcher_of(dataset), depth)
        store.write_json(
            paths.result(benchmark, retriever, "search"),
            {
                "benchmark": benchmark,
                "system": retriever,
                "settings": settings,
                "datasets": datasets,
                "headline": names[0],
                **getattr(fitted, "spending", {}),
                "peak_memory_bytes": memory.bytes,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
