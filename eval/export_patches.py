"""Write the patches that a generator's answers to SWE-bench make, in the form that the `swebench` package judges.

reads   data/benchmarks/<benchmark>/{corpora,problems}  data/completions/<benchmark>/<context>+<generator>
writes  eval/exports/swebench/<benchmark>/<context>+<generator>.jsonl, and patches.json of the same name beside it
"""

from coderet import benchmarks, paths, stage
from coderet.benchmarks import judging
from coderet.benchmarks.answers import swebench
from coderet.corpora import store
from coderet.params import answerer


def main(benchmark: str, context: str, generator: str) -> None:
    with stage.open(benchmark=benchmark, context=context, generator=generator) as job:
        name, folder = answerer(context, generator), paths.benchmark(benchmark)
        facts = benchmarks.benchmark(job.params.benchmarks[benchmark].kind)
        ballots = {}
        for posed in store.problem_sets(folder):
            problems = store.read_problems(folder, posed)
            asked = judging.asked(problems, paths.completions(benchmark, name))
            files = swebench.files(store.read_dataset(folder, problems.dataset, judged=False).corpus.table)
            read = benchmarks.answering(facts, problems).read
            for place, instance in enumerate(asked.ids):
                own = sorted(each for each in asked.completed if each.place == place)
                answers = [read(asked.problems[place], each.text, asked.layout) for each in own]
                ballots[instance] = [swebench.patch(files, answer) for answer in answers]
        chosen = {instance: swebench.majority(patches) for instance, patches in ballots.items()}
        with store.new_file(paths.exported("swebench", benchmark, f"{name}.jsonl")) as draft:
            draft.write_text(swebench.lines(swebench.predictions(name, chosen)), encoding="utf-8")
        tally = swebench.tally(ballots, chosen)
        store.write_json(paths.exported("swebench", benchmark, f"{name}.patches.json"), tally)
        print(f"{paths.exported('swebench', benchmark, name)}.jsonl: {tally['instances_with_patch']} patches")


if __name__ == "__main__":
    stage.run(main)
