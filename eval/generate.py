"""Put the problems of a benchmark to a generator, each with its context, and keep what it answers.

reads   data/benchmarks/<benchmark>/{corpora,queries,problems}  data/runs/<benchmark>  models/generators/<generator>
        params: benchmarks.<benchmark>, contexts.<context>, generators.<generator>, answering.{sampling,left_out}
writes  data/completions/<benchmark>/<context>+<generator>
        eval/results/<benchmark>/<context>+<generator>/generate.json
"""

from dataclasses import asdict

from coderet import benchmarks, generators, paths, stage
from coderet.benchmarks import asking, contexts, prompts
from coderet.corpora import answered, store
from coderet.generators import base, completions
from coderet.metrics import efficiency
from coderet.params import answerer


def main(benchmark: str, context: str, generator: str) -> None:
    with (
        stage.open(benchmark=benchmark, context=context, generator=generator) as job,
        efficiency.peak_memory() as memory,
    ):
        params, name, folder = job.params, answerer(context, generator), paths.benchmark(benchmark)
        spec, model = params.contexts[context], params.generators[generator]
        where = f"params.yaml: contexts.{context}"
        taken = contexts.taken(
            spec.documents,
            spec.withheld,
            spec.chunking,
            spec.chunk,
            where,
            spec.window,
            spec.order,
            spec.comments,
            spec.distractors,
            spec.shows,
        )
        facts = benchmarks.benchmark(params.benchmarks[benchmark].kind)
        drawn = params.sampled(benchmark)
        loaded = generators.load(paths.generator(generator), model.kind, model.settings)
        limits = {"window": loaded.window - drawn.max_new_tokens, "budget": spec.budget}
        counter = prompts.Counter(loaded)
        settings = {
            "layout": loaded.layout,
            "generator": loaded.identity,
            "sampling": asdict(drawn),
            "context": asdict(spec),
        }
        asked: dict[str, list[asking.Question]] = {}
        for posed in store.problem_sets(folder):
            problems = store.read_problems(folder, posed).without(params.answering.left_out.get(posed, ()))
            dataset = store.read_dataset(folder, problems.dataset, judged=False)
            runs = {
                each: store.read_run(paths.runs(benchmark, each) / f"{dataset.name}.arrow", dataset.corpus)
                for each in (spec.run, *([contexts.ORACLE] if spec.distractors else []))
            }
            asked[posed] = asking.questions(
                benchmarks.answering(facts, problems).showing(spec.shows),
                dataset,
                runs[spec.run],
                problems,
                taken,
                loaded.layout,
                counter,
                **limits,
                relevant=runs.get(contexts.ORACLE),
            )
        every = [(posed, each) for posed, some in asked.items() for each in some]
        tallies = {posed: completions.Tally() for posed in asked}
        with job.clock() as clock:  # all sets at once: a generator writes many answers as fast as a few
            found = completions.complete(
                loaded,
                [base.Prompt(**asking.prompt(each)) for _, each in every],
                drawn,
                paths.WORK / "completions",
                progress=f"generate {benchmark}",
                tally=lambda place: tallies[every[place][0]],
                name=lambda place: every[place][1].problem_id,
            )
        made_tokens = sum(each.made_tokens for each in tallies.values())
        told = {}
        with store.new_folder(paths.completions(benchmark, name)) as made:
            for posed, some in asked.items():
                own = [each for each, (whose, _) in zip(found, every, strict=True) if whose == posed]
                rows = asking.answers(some, own)
                answered.write(answered.prompts_path(made, posed), asking.rows(some), answered.PROMPTS, settings)
                answered.write(answered.completions_path(made, posed), rows, answered.COMPLETIONS, settings)
                share = tallies[posed].made_tokens / made_tokens if made_tokens else 0.0
                told[posed] = {
                    **asking.tally(some),
                    **asdict(tallies[posed]),
                    "seconds": clock.seconds * share,  # of what all sets took together, by new tokens
                }
        store.write_json(
            paths.result(benchmark, name, "generate"),
            {
                "benchmark": benchmark,
                "system": name,
                "context": context,
                "generator": generator,
                "settings": settings,
                "datasets": told,
                "peak_memory_bytes": memory.bytes,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
