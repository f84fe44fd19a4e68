"""Rerank the first hits of a run, any retriever's or fusion's, by a model that reads query and document together.

reads   data/benchmarks/<benchmark>/{corpora,queries}  data/runs/<benchmark>/<run>
        models/rerankers/<reranker>  params: rerankers.<reranker>, efficiency
writes  data/runs/<benchmark>/<run>+<reranker>  eval/results/<benchmark>/<run>+<reranker>/rerank.json
"""

from coderet import params, paths, stage
from coderet.corpora import store
from coderet.metrics import efficiency
from coderet.retrievers import reranking


def main(benchmark: str, run: str, reranker: str) -> None:
    with stage.open(benchmark=benchmark, run=run, reranker=reranker) as job, efficiency.peak_memory() as memory:
        spec, timing, folder = job.params.rerankers[reranker], job.params.efficiency, paths.benchmark(benchmark)
        name, model = params.reranking(run, reranker), paths.reranker(reranker)
        loaded = reranking.load(model, spec.kind, spec.settings)
        what, settings = {"top": spec.top, "text_fields": spec.text_fields}, spec.spec(run)
        datasets, names = {}, store.datasets(folder)
        with store.new_folder(paths.runs(benchmark, name)) as runs:
            for each in names:
                dataset = store.read_dataset(folder, each, judged=False)
                hits = store.read_run(paths.runs(benchmark, run) / f"{each}.arrow", dataset.corpus)
                alone = reranking.lone_queries(
                    loaded, dataset.queries, hits, **what, number=timing.single_queries, warm_up=timing.warm_up
                )
                tally = reranking.Tally()
                reranked = reranking.rerank(
                    loaded,
                    dataset.queries,
                    hits,
                    **what,
                    below=spec.below,
                    cache=paths.WORK / "reranked",
                    progress=f"rerank {each}",
                    tally=tally,
                )
                store.write_run(runs / f"{each}.arrow", reranked, settings)
                cost = efficiency.of_pairs(alone, tally.pairs, tally.seconds).measured()
                datasets[each] = cost | {"hits": tally.hits, "seconds": tally.seconds}
        store.write_json(
            paths.result(benchmark, name, "rerank"),
            {
                "benchmark": benchmark,
                "system": name,
                "settings": settings,
                "datasets": datasets,
                "headline": names[0],
                "parameters": loaded.parameters,
                "model_bytes": efficiency.folder_bytes(model),
                "peak_memory_bytes": memory.bytes,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
