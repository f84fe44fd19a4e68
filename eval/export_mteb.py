"""Write the result of a run in mteb's own form.

reads   eval/results/<benchmark>/<run>  params: benchmarks.<benchmark>
writes  eval/exports/mteb/<run>/<mteb's name of the task>.json
"""

from coderet import benchmarks, paths, reports, stage
from coderet.corpora import released, store


def main(benchmark: str, run: str) -> None:
    with stage.open(benchmark=benchmark, run=run) as job:
        spec = job.params.benchmarks[benchmark]
        facts = benchmarks.benchmark(spec.kind, f"params.yaml: benchmarks.{benchmark}.kind")
        results = reports.read([benchmark], [run], mined=False)
        result = reports.task_result(
            store.read_json(paths.result(benchmark, run, "score")),
            revision=reports.revision_of(spec.source, facts.files, released.OFFICIAL),
            seconds=reports.seconds_of(results.of(run, benchmark, "index"), results.of(run, benchmark, "search")),
        )
        path = paths.exported("mteb", run, f"{result.task_name}.json")
        with store.new_file(path) as draft:
            result.to_disk(draft)
        print(path)


if __name__ == "__main__":
    stage.run(main)
