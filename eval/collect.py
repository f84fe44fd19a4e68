"""Collect the datasets of a benchmark from its raw files, and count what they are made of.

reads   data/raw/<benchmark>  params: benchmarks.<benchmark>
writes  data/benchmarks/<benchmark>  eval/results/<benchmark>/collect.json
"""

from coderet import benchmarks, paths, stage
from coderet.corpora import store
from coderet.corpora.census import census
from coderet.metrics.difficulty import difficulty
from coderet.registry import fit_arguments


def main(benchmark: str) -> None:
    with stage.open(benchmark=benchmark) as job:
        spec, folder = job.params.benchmarks[benchmark], paths.benchmark(benchmark)
        where = f"params.yaml: benchmarks.{benchmark}"
        facts = benchmarks.benchmark(spec.kind, f"{where}.kind")
        settings = fit_arguments(facts.collect, spec.settings, where)
        report = {}
        drafts = facts.collect(paths.raw(benchmark), **settings)
        for name in store.write_benchmark(folder, drafts, benchmarks.packages(facts, spec.source)):
            dataset = store.read_dataset(folder, name)
            counts, groups = census(dataset)
            report[name] = counts | {"difficulty": difficulty(dataset, facts.gauged)}
            if groups is not None:
                store.write_duplicates(folder, name, groups)
        store.write_json(
            paths.result(benchmark, "collect"),
            {"benchmark": benchmark, "choices": benchmarks.choices(facts, settings), "datasets": report},
        )


if __name__ == "__main__":
    stage.run(main)
