"""Copy into MLflow what is not yet there: a run a system, the papers' figures, the report, the trained encoders.

reads   eval/results  train/results  eval/report.{md,html}  eval/summary.json  data  models/retrievers
writes  the store at MLFLOW_TRACKING_URI, else mlflow.db and mlruns/ here

Where no server answers this says so and ends well: the files are the truth, and the next call catches up.
"""

import sys
from pathlib import Path

from coderet import paths, reports, stage, tracking
from coderet.corpora import store


def main() -> None:
    with stage.open() as job:
        params, grid = job.params, job.params.grid
        name_of_grid = "default" if params.code == "." else Path.cwd().name
        results = reports.read(grid.benchmarks, grid.retrievers, grid.fusions, grid.learned, rerankings=grid.rerankings)
        datasets = [
            (paths.benchmark(benchmark), name)
            for benchmark in grid.benchmarks
            for name in store.datasets(paths.benchmark(benchmark))
        ]
        systems = [
            tracking.entries.of_system(
                system,
                tracking.entries.spec_of(params, system),
                results.stages.get(system, {}),
                costs={benchmark: reports.costs(results, system, benchmark) for benchmark in grid.benchmarks},
                training=results.training.get(system),
                hardware=reports.hardware(results, system, grid.benchmarks[0]),
                artifacts=tracking.entries.files_of(system, grid.benchmarks),
                datasets=datasets,
                grid=name_of_grid,
            )
            for system in grid.runs
        ]
        answers = reports.read_answers(grid.asked)
        for name, (context, generator) in grid.answers.items():
            mine = {each.benchmark: each for each in answers.answerers if each.name == name}
            if mine:
                systems.append(
                    tracking.entries.of_answerer(
                        name,
                        tracking.entries.answerer_spec(params, context, generator),
                        {benchmark: each.judged for benchmark, each in mine.items()},
                        {benchmark: each.generated for benchmark, each in mine.items()},
                        artifacts=tracking.entries.files_of(name, mine),
                        grid=name_of_grid,
                    )
                )
        report = [paths.REPORT_MARKDOWN, paths.REPORT_HTML, paths.SUMMARY]
        by_depth = reports.depth_page(answers)
        if by_depth:
            with store.new_file(paths.DEPTH_PAGE) as draft:
                draft.write_text(reports.as_html(by_depth), encoding="utf-8")
            report.append(paths.DEPTH_PAGE)
        others = [
            *tracking.entries.of_published(store.read_json(paths.SUMMARY)["rows"], name_of_grid),
            tracking.entries.of_report(report, name_of_grid),
        ]
        try:
            outcome = tracking.log([*systems, *others], commit=tracking.git_commit())
            for system in grid.learned:
                encoder = paths.retriever(system) / "encoder"
                if encoder.is_dir():
                    run_id, card = outcome.runs["system", system], reports.scored_card(params, system)
                    tracking.register(f"coderet-{system}", encoder, run_id, card=card)
        except (tracking.Off, tracking.Unreachable) as reason:
            print(f"not logged: {reason}", file=sys.stderr)
            return
        print(f"logged {len(outcome.added)} runs, {len(outcome.unchanged)} were there", file=sys.stderr)


if __name__ == "__main__":
    stage.run(main)
