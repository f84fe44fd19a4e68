"""Index every corpus of a benchmark with one retriever.

reads   data/benchmarks/<benchmark>/corpora  models/retrievers/<retriever>  params: retrievers.<retriever>.index
writes  data/indexes/<benchmark>/<retriever>  eval/results/<benchmark>/<retriever>/index.json
"""

from coderet import paths, retrievers, stage
from coderet.corpora import store
from coderet.metrics import efficiency


def main(benchmark: str, retriever: str) -> None:
    with stage.open(benchmark=benchmark, retriever=retriever) as job, efficiency.peak_memory() as memory:
        spec, folder, model = job.params.retrievers[retriever], paths.benchmark(benchmark), paths.retriever(retriever)
        fitted = retrievers.load(model, {"kind": spec.kind, "index": spec.index})
        corpora = {}
        with store.new_folder(paths.index(benchmark, retriever)) as indexes:
            for name in store.corpora(folder):
                corpus = store.read_corpus(folder, name)
                with job.clock() as clock:
                    facts = fitted.index(corpus, indexes / name)
                cost = efficiency.of_documents(int(facts.get("encoded", len(corpus))), clock.seconds).measured()
                size = {"documents": len(corpus), "index_bytes": efficiency.folder_bytes(indexes / name)}
                corpora[name] = cost | facts | fitted.truncation(corpus) | size
        store.write_json(
            paths.result(benchmark, retriever, "index"),
            {
                "benchmark": benchmark,
                "system": retriever,
                "settings": spec.index,
                "corpora": corpora,
                "headline": next(iter(corpora)),
                "parameters": fitted.parameters,
                "model_bytes": efficiency.folder_bytes(model),
                "peak_memory_bytes": memory.bytes,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
