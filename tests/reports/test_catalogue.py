"""docs/benchmarks.md is what the records say."""

from pathlib import Path

import pytest

from coderet.benchmarks import BENCHMARKS, benchmark
from coderet.records import Benchmark, Published, Released
from coderet.reports.catalogue import catalogue

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def test_the_page_in_git_is_the_one_that_the_records_give():
    page = catalogue({name: benchmark(name) for name in BENCHMARKS})
    assert PAGE.read_text(encoding="utf-8") == page, "run: make docs"


@pytest.mark.parametrize("name", sorted(set(BENCHMARKS) - {"beir", "pypi"}))
def test_every_benchmark_says_where_it_is_from_and_how_large_it_is(name):
    record = benchmark(name)
    assert record.name == name
    assert record.source and record.licence and record.queries and record.documents
    assert all(each.place or each.how for each in record.files), "a file nobody knows where to find"


def test_an_entry_tells_choices_defects_files_and_why_its_figures_differ():
    record = Benchmark(
        name="toy",
        collect=lambda folder: iter(()),
        metrics=("ndcg@10", "mrr"),
        licence="MIT",
        source="a toy",
        files=(
            Released("toy.jsonl", "0" * 64, "url:https://example.org/toy.jsonl#sha256=00"),
            Released("x/", None, how="ask"),
        ),
        choices={"title": "ignored"},
        queries="2",
        documents="3",
        defects=("half of it is wrong",),
        published=Published("coir", "mteb/toy", "the paper had four documents"),
    )
    page = catalogue({"toy": record})
    assert "| [toy](#toy) | 2 | 3 | ndcg@10 | queries | MIT |" in page
    for line in (
        "A toy.",
        "- Metrics: ndcg@10, mrr.",
        "- Title: ignored.",
        "- Known defect: half of it is wrong.",
        "- Published figures: `coir`, column mteb/toy. the paper had four documents.",
        "- File `toy.jsonl`: <https://example.org/toy.jsonl>.",
        "- File `x/`: ask.",
    ):
        assert line in page.splitlines()
