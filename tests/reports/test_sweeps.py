"""What one setting of a context does, read off contexts that differ in it alone."""

from functools import partial

import answered_files
import pytest
from answered_files import table, write

from coderet import reports
from coderet.reports import sweeps


def chunked(size, **others):
    return {"chunking": {"kind": "tokens", "size": size, "first_only": True}, **others}


CONTEXTS = {
    "none": (set(), {"run": "none"}),
    "one": ({1}, {"documents": 1}),
    "ten": ({1, 2, 3, 4, 5, 6, 7}, {"documents": 10}),
    "five": ({1, 2, 3}, {}),
    "short": ({1}, chunked(200)),
    "long": ({1, 2}, chunked(800)),
    "long-best": ({1}, chunked(800, chunk="best")),
    "reversed": ({1}, {"documents": 2, "order": "reversed"}),
    "near": ({1}, {"window": 1024, "run": "oracle"}),
    "far": (set(), {"window": 4096, "run": "oracle"}),
}


@pytest.fixture
def read(root):
    for context, (solved, settings) in CONTEXTS.items():
        write(root, context, solved, **settings)
    return partial(answered_files.read, root)


def told(answers):
    return {(each.setting, each.name): [*each.members] for each in sweeps.families(answers)}


def test_a_family_differs_in_one_setting_only(read):
    assert told(read(*CONTEXTS)) == {
        ("documents", "plain"): [1, 5, 10],
        ("chunking.size", "5 of plain, first chunk"): [200, 800],
        ("window", "tokens around the answer"): [1024, 4096],
    }


def test_contexts_that_differ_in_more_tell_of_no_setting(read):
    assert told(read("none", "one", "long", "reversed")) == {}


def test_what_is_not_cut_and_what_has_no_context_stand_beside_chunks(read):
    (_, chunks, _) = sweeps.families(read(*CONTEXTS))
    assert (chunks.plain.context, chunks.whole.context) == ("none", "five")
    (chunks,) = sweeps.families(read("short", "long"))
    assert (chunks.plain, chunks.whole) == (None, None)


def test_the_table_has_a_column_a_value_and_marks_against_none(read, results):
    page = reports.report(results, [], {}, "plain", answers=read(*CONTEXTS))
    rows = table(reports.as_markdown(page), "How much context")
    assert rows[0] == ["Generator", "Context", "none", "1", "5", "10"]
    assert rows[2] == ["small", "plain", "0.0 (0.0–0.0)", *rows[2][3:]]
    assert [cell.split(" ")[0] for cell in rows[2][3:]] == ["12.5", "37.5", "87.5"]
    assert rows[2][5] == "87.5 ≈ (43.8–100.0)"  # Holm's correction is over all of the grid's contexts
    assert rows[3] == ["Generator", "Context", "none", "200", "800", "not cut"]
    assert [cell.split(" ")[0] for cell in rows[5][2:]] == ["0.0", "12.5", "25.0", "37.5"]


def test_a_context_that_solves_more_is_marked(read, results):
    page = reports.report(results, [], {}, "plain", answers=read("none", "one", "ten"))
    assert table(reports.as_markdown(page), "How much context")[2][4] == "87.5 ▲ (43.8–100.0)"


def test_the_plot_draws_each_family_beside_its_levels(read, results):
    answers = read(*CONTEXTS)
    (part, *_) = sweeps.section(answers, {"solutions-8": {}}, results).parts
    assert part.choices[1].options == ["documents shown", "size of a chunk", "tokens of the window"]
    line, none, whole = part.figures["solutions-8|size of a chunk"]["data"]
    assert (line["x"], line["y"]) == ([200, 800], [12.5, 25.0])
    assert line["error_y"]["array"] == [6.25, 12.5]  # the files' intervals reach to half as much again
    assert (none["name"], none["y"]) == ("without context, small", [0.0, 0.0])
    assert (whole["name"], whole["y"]) == ("5 of plain, whole, small", [37.5, 37.5])
    page = reports.as_html(reports.report(results, [], {}, "plain", answers=answers))
    assert "data-plot='context-settings'" in page and '"solutions-8|documents shown"' in page


def test_a_grid_without_such_contexts_has_no_section(read, results):
    assert sweeps.section(read("none", "five"), {"solutions-8": {}}, results) is None
