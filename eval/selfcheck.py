"""Run a benchmark's own answers through its judge, and answers that do nothing beside them.

posed names one of its sets of problems, if not all are wanted; every takes each so manieth problem of a set, for those
that are slow to judge. A set whose environment was not built is said to be unchecked, and the others are checked.

reads   data/benchmarks/<benchmark>/problems  params: answering.processes
writes  eval/results/<benchmark>/selfcheck.json, where the other sets of the same problems stay as they were
"""

from functools import partial
from typing import Any

from coderet import benchmarks, paths, stage
from coderet.benchmarks import sandbox, selfchecking
from coderet.corpora import store


def main(benchmark: str, posed: str = "", every: str = "1") -> None:
    with stage.open(benchmark=benchmark, posed=posed, every=every) as job:
        folder, facts = paths.benchmark(benchmark), benchmarks.benchmark(job.params.benchmarks[benchmark].kind)
        run = partial(sandbox.run, processes=job.params.answering.processes)
        inputs = store.identity(folder / "problems")
        told: dict[str, dict[str, Any]] = {}
        if paths.result(benchmark, "selfcheck").exists():
            before = store.read_json(paths.result(benchmark, "selfcheck"))
            told = before["datasets"] if before.get("inputs") == inputs else {}
        for name in selfchecking.chosen(store.problem_sets(folder), posed):
            problems = store.read_problems(folder, name)
            answering = benchmarks.answering(facts, problems)
            some = dict(list(zip(problems.ids, problems.contents, strict=True))[:: selfchecking.step(every)])
            with job.clock() as clock:
                try:
                    told[name] = selfchecking.check(answering, some, run)
                except sandbox.SandboxError as error:
                    told[name] = {"problems": len(some), "unchecked": str(error)}
            told[name] |= {"every": int(every), "seconds": clock.seconds}
            print(selfchecking.line(name, told[name]), flush=True)
            report: dict[str, Any] = {"benchmark": benchmark, "inputs": inputs, "wall": sandbox.strongest()}
            store.write_json(paths.result(benchmark, "selfcheck"), {**report, "datasets": told, **job.machine})


if __name__ == "__main__":
    stage.run(main)
