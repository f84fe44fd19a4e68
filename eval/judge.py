"""Judge a generator's answers: read them out of their completions and run them against the tests of their problems.

reads   data/benchmarks/<benchmark>/problems  data/completions/<benchmark>/<context>+<generator>
        params: answering.{passes,processes}, scoring
writes  data/scores/<benchmark>/<context>+<generator>  eval/results/<benchmark>/<context>+<generator>/judge.json
"""

from functools import partial

from coderet import benchmarks, paths, stage
from coderet.benchmarks import judging, sandbox
from coderet.corpora import answered, store
from coderet.metrics import answers, grouping, scorecards
from coderet.params import answerer


def main(benchmark: str, context: str, generator: str) -> None:
    with stage.open(benchmark=benchmark, context=context, generator=generator) as job:
        name, folder, spec = answerer(context, generator), paths.benchmark(benchmark), job.params.answering
        facts = benchmarks.benchmark(job.params.benchmarks[benchmark].kind)
        run = partial(sandbox.run, processes=spec.processes)
        completions, cards, told, facts_of, seconds = paths.completions(benchmark, name), {}, {}, {}, 0.0
        with store.new_folder(paths.scores(benchmark, name)) as scores:
            for posed in store.problem_sets(folder):
                problems = store.read_problems(folder, posed)
                answering = benchmarks.answering(facts, problems)
                asked = judging.asked(problems, completions)
                with job.clock() as clock:
                    judged = judging.judge(answering, asked.problems, asked.completed, asked.layout, run)
                seconds += clock.seconds
                answered.write(
                    answered.samples_path(scores, posed), judging.rows(answering, asked, judged), answered.SAMPLES
                )
                by_problem = judging.by_problem(asked, judged)
                values = answers.values(by_problem, spec.passes, answering.metrics)
                cards[posed] = scorecards.of_problems(asked.ids, values, answers.counts(by_problem))
                store.write_scorecard(scores / f"{posed}.arrow", cards[posed].query_ids, cards[posed].values)
                told[posed] = judging.tally(judged)
                facts_of[posed] = judging.facts(answering, asked)
        scoring = job.params.scoring
        drawn = (facts.mean, scoring.resamples, scoring.confidence, job.params.seed, facts.resampled)
        store.write_json(
            paths.result(benchmark, name, "judge"),
            {
                "benchmark": benchmark,
                "system": name,
                "context": context,
                "generator": generator,
                "mean": facts.mean,
                "resampled": facts.resampled,
                "choices": benchmarks.choices(facts, job.params.benchmarks[benchmark].settings),
                "confidence": scoring.confidence,
                "inputs": store.identity(folder / "problems", completions),
                **scorecards.summary(cards, *drawn),
                "groups": grouping.groups(cards, facts_of, *drawn),
                "told": told,
                "wall": sandbox.strongest(),
                "seconds": seconds,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
