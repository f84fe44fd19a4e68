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
        apart: dict[str, dict[str, scorecards.Scorecard]] = {}
        with store.new_folder(paths.scores(benchmark, name)) as scores:
            for posed in store.problem_sets(folder):
                problems = store.read_problems(folder, posed)
                asked = judging.asked(problems, completions)
                answering = benchmarks.answering(facts, problems).showing(asked.shows)
                with job.clock() as clock:
                    judged = judging.judge(answering, asked.problems, asked.completed, asked.layout, run)
                seconds += clock.seconds
                rows = judging.rows(answering, asked, judged)
                answered.write(answered.samples_path(scores, posed), rows, answered.SAMPLES)
                by_problem = judging.by_problem(asked, judged)
                values = answers.values(by_problem, spec.passes, answering.metrics)
                cards[posed] = scorecards.of_problems(asked.ids, values, answers.counts(by_problem))
                store.write_scorecard(scores / f"{posed}.arrow", cards[posed].query_ids, cards[posed].values)
                told[posed] = judging.tally(judged)
                facts_of[posed] = judging.facts(answering, asked)
                for kind, ids in judging.told_apart(rows).items():
                    apart.setdefault(kind, {})[posed] = scorecards.part(cards[posed], set(ids))
        scoring = job.params.scoring
        rule = {"resamples": scoring.resamples, "level": scoring.confidence, "seed": job.params.seed}
        rule_of_all = {"mean": facts.mean, "resampled": facts.resampled, **rule}
        given = {}
        for kind, parts in apart.items():
            number = sum(len(each.query_ids) for each in parts.values())
            metrics = scorecards.summary(parts, "queries", **rule)["all"] if number else {}
            given[kind] = {"problems": number, "metrics": metrics}
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
                **scorecards.summary(cards, **rule_of_all),
                "groups": grouping.groups(cards, facts_of, **rule_of_all),
                "told": told,
                "given": given,  # where the context held the whole answer, and where it did not
                "wall": sandbox.strongest(),
                "seconds": seconds,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
