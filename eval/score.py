"""Score a run against the judgements.

reads   data/benchmarks/<benchmark>/{corpora,queries,qrels}  data/runs/<benchmark>/<run>  params: scoring
writes  data/scores/<benchmark>/<run>  eval/results/<benchmark>/<run>/score.json
"""

from coderet import benchmarks, paths, stage
from coderet.corpora import store
from coderet.metrics import scorecards


def main(benchmark: str, run: str) -> None:
    with stage.open(benchmark=benchmark, run=run) as job:
        folder, runs = paths.benchmark(benchmark), paths.runs(benchmark, run)
        spec = job.params.benchmarks[benchmark]
        facts = benchmarks.benchmark(spec.kind)
        cards = {}
        with store.new_folder(paths.scores(benchmark, run)) as scores:
            for name in store.datasets(folder):
                dataset = store.read_dataset(folder, name)
                hits = store.read_run(runs / f"{name}.arrow", dataset.corpus)
                groups = store.read_duplicates(folder, name)
                cards[name] = scorecards.score(dataset, hits, dataset.metrics or facts.metrics, groups)
                store.write_scorecard(scores / f"{name}.arrow", cards[name].query_ids, cards[name].values)
        scoring = job.params.scoring
        summary = scorecards.summary(
            cards, facts.mean, scoring.resamples, scoring.confidence, job.params.seed, facts.resampled
        )
        store.write_json(
            paths.result(benchmark, run, "score"),
            {
                "benchmark": benchmark,
                "system": run,
                "headline": facts.headline,
                "mean": facts.mean,
                "resampled": facts.resampled,
                "choices": benchmarks.choices(facts, spec.settings),
                "confidence": scoring.confidence,
                "settings": store.run_settings(runs / f"{store.datasets(folder)[0]}.arrow"),
                "inputs": store.identity(folder / "qrels", folder / "queries", runs),
                **summary,
            },
        )


if __name__ == "__main__":
    stage.run(main)
