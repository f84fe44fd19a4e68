"""Run a benchmark's own answers through its judge, and answers that do nothing beside them.

reads   data/benchmarks/<benchmark>/problems  params: answering.processes
writes  eval/results/<benchmark>/selfcheck.json
"""

from functools import partial

from coderet import benchmarks, paths, stage
from coderet.benchmarks import sandbox, selfchecking
from coderet.corpora import store


def main(benchmark: str) -> None:
    with stage.open(benchmark=benchmark) as job:
        folder, facts = paths.benchmark(benchmark), benchmarks.benchmark(job.params.benchmarks[benchmark].kind)
        run = partial(sandbox.run, processes=job.params.answering.processes)
        told = {}
        for posed in store.problem_sets(folder):
            problems = store.read_problems(folder, posed)
            by_id = dict(zip(problems.ids, problems.contents, strict=True))
            with job.clock() as clock:
                report = selfchecking.check(benchmarks.answering(facts, problems), by_id, run)
            told[posed] = {**report, "seconds": clock.seconds}
            print(
                f"{posed}: {report['passed']} of {report['problems']}, unknown: {report['unknown_failures'] or 'none'}"
            )
        store.write_json(
            paths.result(benchmark, "selfcheck"),
            {"benchmark": benchmark, "wall": sandbox.strongest(), "datasets": told, **job.machine},
        )


if __name__ == "__main__":
    stage.run(main)
