"""Two generators asked for needles with four contexts, written as the stages write it."""

import json

import numpy as np
import pyarrow as pa
import pytest
from plotly.graph_objects import Figure

from coderet import paths, reports
from coderet.corpora import store
from coderet.records import DataError, Published
from coderet.reports import needles, plots, published
from coderet.reports.answers import Answerer, Answers, summary_rows
from coderet.reports.results import Results

SETS = {"one:small": 10, "two:small": 10}
# Of the twenty problems the first so many are answered rightly, and stand in the context.
RIGHT = {"none": 0, "oracle": 18, "window-2k": 4, "window-4k": 2, "read": 12}
SETTINGS = {
    "none": {"run": "none", "window": 0},
    "oracle": {"run": "oracle", "window": 0},
    "window-2k": {"run": "oracle", "window": 2048},
    "window-4k": {"run": "oracle", "window": 4096},
    "read": {"run": "plain", "window": 0, "budget": 1024},
}


def figure(value):
    return {"value": value, "low": max(0.0, value - 0.1), "high": min(1.0, value + 0.1)}


def group(queries, value, shown):
    return {
        "queries": queries,
        "metrics": {"match@0.8": figure(value), "similarity": figure(value)},
        "candidates": 300.0,
        "shown": shown,
    }


def answerer(root, context):
    right = RIGHT[context]
    values = (np.arange(20) < right).astype(float)
    judged = {"mean": "datasets", "datasets": {}, "told": {}, "groups": {}}
    name = f"{context}+small"
    for place, (posed, count) in enumerate(SETS.items()):
        own = values[10 * place : 10 * place + count]
        metrics = {"match@0.8": figure(own.mean()), "similarity": figure(own.mean())}
        judged["datasets"][posed] = {"queries": count, "metrics": metrics}
        judged["told"][posed] = {"forms": {"fence": 9, "nothing": 1}, "verdicts": {"passed": 1}}
        ids = pa.chunked_array([pa.array([f"{posed}/{n}" for n in range(count)], pa.large_string())])
        store.write_scorecard(root / paths.scores("hay", name) / f"{posed}.arrow", ids, {"match@0.8": own})
    judged["all"] = {metric: figure(values.mean()) for metric in ("match@0.8", "match@0.0", "similarity")}
    judged["groups"] = {
        "language": {"python": group(20, values.mean(), 5.0)},
        "depth": {"0.1": group(5, 0.2, 5.0), "0.8": group(10, 0.3, 6.0)},
    }
    held, lacking = ({"match@0.8": figure(value)} for value in (right / 15, 0.0))
    judged["given"] = {"held": {"problems": 15, "metrics": held}, "lacking": {"problems": 5, "metrics": lacking}}
    spent = {"prompts": 10, "prompt_tokens": 5000}
    generated = {"datasets": dict.fromkeys(SETS, spent), "settings": {"context": SETTINGS[context]}}
    return Answerer("hay", context, "small", judged, generated, root)


@pytest.fixture
def answers(tmp_path):
    return Answers([answerer(tmp_path, context) for context in RIGHT], permutations=500)


def score(mean, median):
    names = ("mrr-expected", "recall@10-expected", "relative-rank", "budget-recall@1024", "mrr-folded")
    values = {name: {**figure(mean), "queries": 20, "datasets": 2, "random": 0.01} for name in names}
    values["relative-rank"] |= {"value": 1 - mean, "random": 0.5}
    datasets = {name: {"queries": 10, "metrics": {}} for name in ("one", "two")}
    ranks = {"median": median, "random": 150.5, "candidates": 300.0}
    return {"headline": "mrr-expected", "mean": "datasets", "datasets": datasets, "all": values, "ranks": ranks}


@pytest.fixture
def ranked():
    stages = {"plain": {"hay": {"score": score(0.5, 3.0)}}, "learned": {"hay": {"score": score(0.7, 1.5)}}}
    return Results(["hay", "other"], ["plain", "learned"], stages=stages)


def table(section, beginning):
    return next(part for part in section.parts if getattr(part, "rows", ()) and part.caption.startswith(beginning))


def texts(rows):
    return [[cell.text for cell in row] for row in rows]


def test_retrievers_stand_above_a_random_order_with_their_median_rank(ranked):
    told = table(needles.section(ranked, Answers()), "hay, retrievers")
    assert "20 needles of 2 repositories, each among 300 functions" in told.caption
    names = ["Retriever", "median rank", "mrr", "recall@10", "relative-rank", "budget-recall@1024"]
    assert [column.name for column in told.columns] == names
    assert texts(told.rows) == [
        ["plain", "3", "50.0", "50.0", "50.0", "50.0"],
        ["learned", "1.5", "70.0", "70.0", "30.0", "70.0"],
        ["random order", "150.5", "1.0", "1.0", "50.0", "1.0"],
    ]
    assert [cell.strong for cell in told.rows[1]] == [False, True, True, True, True, True]  # a low rank is the best


def test_readers_are_told_with_how_often_the_needle_was_before_them(answers):
    told = table(needles.section(Results([], []), answers), "hay, read")
    rows = {row[1].text: row for row in told.rows}
    assert [row[2].text for row in told.rows] == [
        "nothing",
        "the needle alone",
        "2048 tokens around the needle",
        "4096 tokens around the needle",
        "first of plain in 1024 tokens",
    ]
    assert [rows["read"][at].text for at in (3, 4, 5, 6, 7, 8, 9)] == ["20", "500", "5", "75.0", "60.0", "80.0", "0.0"]
    assert rows["read"][6].small == "15 of 20"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"run": "plain", "distractors": 5, "budget": 1024, "order": "file"},
            "the needle and others of plain in 1024 tokens, file",
        ),
        ({"run": "random", "budget": 1024, "order": "file"}, "functions by lot in 1024 tokens, file"),
        ({"run": "plain", "shows": "names"}, "first of plain, their names alone"),
        ({"run": "oracle", "window": 2048, "comments": "removed"}, "2048 tokens around the needle, comments removed"),
    ],
)
def test_controls_are_told_in_words_and_are_no_retrieval(settings, words):
    each = Answerer("hay", "c", "small", {}, {"settings": {"context": settings}})
    assert needles.taken(each) == words and not needles.retrieved(each)


def test_retrieve_then_read_is_held_against_every_window_of_the_same_generator(answers):
    section = needles.section(Results([], []), answers)
    told = texts(table(section, "hay, retrieve, then read").rows)
    assert [row[:4] for row in told] == [
        ["small", "read", "window-2k", "+40.0"],
        ["small", "read", "window-4k", "+50.0"],
    ]
    assert section.points[1] == ("hay, read+small against window-4k+small: +50.0 match@0.8, more than chance explains.")
    assert float(told[0][4]) < 0.05


def test_depth_by_size_is_a_map_with_a_column_a_window(answers):
    plot = plots.depth_by_size(answers.answerers)
    assert [choice.options for choice in plot.choices] == [["small · hay"], ("match@0.8", "similarity")]
    trace = plot.figures["small · hay|match@0.8"]["data"][0]
    assert trace["x"] == ["2,048", "4,096"] and trace["y"] == ["0.1–0.2", "0.8–0.9"]
    assert trace["z"] == [[20.0, 20.0], [30.0, 30.0]] and trace["text"][1] == ["10", "10"]
    assert trace["customdata"][0][0] == [5.0, 300.0]
    Figure(plot.figures["small · hay|match@0.8"])  # raises for what Plotly does not know
    assert plots.depth_by_size([each for each in answers.answerers if not each.settings["window"]]) is None


def test_the_map_is_a_page_of_its_own_for_the_log_book(answers):
    page = reports.as_html(reports.depth_page(answers))
    assert "Needles by depth and size" in page and "data-plot='depth'" in page and "heatmap" in page
    assert reports.depth_page(Answers()) is None


def test_cells_of_depth_and_repositories_are_tables_too(answers):
    section = needles.section(Results([], []), answers)
    rows = texts(table(section, "hay by depth").rows)
    assert [row[1:6] for row in rows[:2]] == [
        ["window-2k", "0.1", "5", "300", "5"],
        ["window-2k", "0.8", "10", "300", "6"],
    ]
    assert {row[1] for row in rows} == {"window-2k", "window-4k", "read"}  # what stands alone has no depth
    assert ["small", "oracle", "two:small", "10", "80.0", "80.0"] in texts(table(section, "hay by repository").rows)
    assert not [part for part in section.parts if getattr(part, "caption", "") == "hay by language"]  # there is one


def test_how_hard_they_are_is_told_of_every_repository_and_of_all_alike():
    counts = {
        name: {"difficulty": {"bm25": {"mrr-expected": mrr}, "random": {"mrr-expected": 0.01}}}
        for name, mrr in (("one", 0.2), ("two", 0.6))
    }
    results = Results(["hay"], [], {"hay": {"datasets": counts}})
    told = table(needles.section(results, Answers()), "hay, how hard")
    assert texts(told.rows) == [["all, alike", "40.0", "1.0"], ["one", "20.0", "1.0"], ["two", "60.0", "1.0"]]


def test_there_is_no_section_without_needles():
    assert needles.section(Results(["other"], ["plain"]), Answers()) is None
    plain = Answerer("other", "none", "small", {"datasets": {}}, {})
    assert needles.section(Results([], []), Answers([plain])) is None and needles.reading(Answers([plain])) == []


def test_the_page_has_the_section_in_words_and_in_html(ranked, answers):
    page = reports.report(ranked, [], {}, "plain", answers=answers)
    assert [each.name for each in page.sections].count("needles") == 1
    assert not [each for each in page.sections if each.name == "answers"]  # programs that were run: none
    markdown = reports.as_markdown(page)
    assert "## Needles" in markdown and "| read | first of plain in 1024 tokens |" in markdown
    assert "data-plot='depth'" in reports.as_html(page)


def test_the_summary_has_needles_over_all_repositories_and_given_the_context(answers, ranked):
    rows = {(row["system"], row["dataset"], row["metric"]): row for row in summary_rows(answers)}
    assert rows["read+small", "all", "match@0.8"]["value"] == 0.6
    assert rows["read+small", "held", "match@0.8"]["queries"] == 15
    assert rows["read+small", "language: python", "similarity"]["benchmark"] == "hay"
    medians = [row for row in reports.summary_rows(ranked) if row["metric"] == "median-rank"]
    assert [(row["system"], row["value"], row["unit"]) for row in medians] == [
        ("plain", 3.0, "documents"),
        ("learned", 1.5, "documents"),
    ]
    json.dumps(list(rows.values()))


def test_published_models_stand_beside_repoqa(pytestconfig, answers):
    folder = pytestconfig.rootpath / "data" / "published"
    there = published.published_needles(folder, {"hay": Published("repoqa", "16384"), "other": None})
    best = [row for row in there if row["dataset"] == "all" and row["value"] == 0.906]
    assert {row["system"] for row in best} == {"claude-3-opus-20240229", "gemini-1.5-pro-latest", "gpt-4o-2024-05-13"}
    assert {row["metric"] for row in there} == {"match@0.8"} and len(there) == 33 * 6
    assert published.published_rows(folder, {"hay": Published("repoqa", "16384")}) == []
    told = table(needles.section(Results([], []), answers, there), "hay as published")
    assert [column.name for column in told.columns][1:3] == ["all", "python"]
    with pytest.raises(DataError, match="repoqa has no figures for '8192'; known: 16384"):
        published.published_needles(folder, {"hay": Published("repoqa", "8192")})
