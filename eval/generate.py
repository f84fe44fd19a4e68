"""Put the problems of a benchmark to a generator, each with its context, and keep what it answers.

reads   data/benchmarks/<benchmark>/{corpora,queries,problems}  data/runs/<benchmark>  models/generators/<generator>
        params: contexts.<context>, generators.<generator>, answering.{sampling,left_out}
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
            spec.documents, spec.withheld, spec.chunking, spec.chunk, where, spec.window, spec.order, spec.comments
        )
        facts = benchmarks.benchmark(params.benchmarks[benchmark].kind)
        drawn = params.answering.sampling
        loaded = generators.load(paths.generator(generator), model.kind, model.settings)
        limits = {"window": loaded.window - drawn.max_new_tokens, "budget": spec.budget}
        counter = prompts.Counter(loaded)
        settings = {
            "layout": loaded.layout,
            "generator": loaded.identity,
            "sampling": asdict(drawn),
            "context": asdict(spec),
        }
        told = {}
        with store.new_folder(paths.completions(benchmark, name)) as made:
            for posed in store.problem_sets(folder):
                problems = store.read_problems(folder, posed).without(params.answering.left_out.get(posed, ()))
                dataset = store.read_dataset(folder, problems.dataset, judged=False)
                run = store.read_run(paths.runs(benchmark, spec.run) / f"{dataset.name}.arrow", dataset.corpus)
                answering = benchmarks.answering(facts, problems)
                asked = asking.questions(answering, dataset, run, problems, taken, loaded.layout, counter, **limits)
                tally = completions.Tally()
                with job.clock() as clock:
                    found = completions.complete(
                        loaded,
                        [base.Prompt(**asking.prompt(each)) for each in asked],
                        drawn,
                        paths.WORK / "completions",
                        progress=f"generate {posed}",
                        tally=tally,
                        name=problems.ids.__getitem__,
                    )
                rows = asking.answers(asked, found)
                answered.write(answered.prompts_path(made, posed), asking.rows(asked), answered.PROMPTS, settings)
                answered.write(answered.completions_path(made, posed), rows, answered.COMPLETIONS, settings)
                told[posed] = {**asking.tally(asked), **asdict(tally), "seconds": clock.seconds}
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
