"""Put every system of the grid side by side on every benchmark, with what papers print.

reads   eval/results  train/results  data/scores  data/published  params: compare, grid
writes  eval/report.md  eval/report.html  eval/summary.json
"""

import sys
from dataclasses import asdict

from coderet import benchmarks, paths, reports, stage
from coderet.corpora import store


def main() -> None:
    with stage.open() as job:
        grid, compare = job.params.grid, job.params.compare
        results = reports.read(grid.benchmarks, grid.retrievers, grid.fusions, grid.learned, rerankings=grid.rerankings)
        specs = {name: job.params.benchmarks[name] for name in grid.benchmarks}
        papers = {name: benchmarks.benchmark(spec.kind).published for name, spec in specs.items()}
        published = reports.published_rows(paths.published(job.params.code), papers)
        read_there = reports.published_needles(paths.published(job.params.code), papers)
        of_2019 = reports.published_rows(paths.published(job.params.code), {"python": reports.ARCHITECTURES})
        answered = {name: papers[name] for name in (*grid.answered, *grid.read)}
        answers = reports.read_answers(grid.asked, permutations=compare.permutations, seed=job.params.seed)
        answers_there = reports.published_answers(paths.published(job.params.code), answered)
        differs = {name: paper.differs for name, paper in papers.items() if paper and paper.differs}
        grouped = {name: spec.group for name, spec in specs.items()}
        differences = reports.differences(
            results, compare.baseline, permutations=compare.permutations, seed=job.params.seed
        )
        warnings = reports.all_warnings(results)
        for each in [*warnings, *(f"{path} is missing" for path in (*results.missing, *answers.missing))]:
            print(f"warning: {each}", file=sys.stderr)
        page = reports.report(
            results,
            published,
            differences,
            compare.baseline,
            warnings,
            grouped,
            differs,
            of_2019,
            answers,
            answers_there,
            read_there,
        )
        means = {system: asdict(each) for system, each in reports.group_means(results, grouped).items()}
        store.write_json(
            paths.SUMMARY,
            {
                "rows": [*reports.summary_rows(results, [*published, *read_there]), *reports.answer_rows(answers)],
                "groups": means,
            },
        )
        for path, text in (
            (paths.REPORT_MARKDOWN, reports.as_markdown(page)),
            (paths.REPORT_HTML, reports.as_html(page)),
        ):
            with store.new_file(path) as draft:
                draft.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    stage.run(main)
