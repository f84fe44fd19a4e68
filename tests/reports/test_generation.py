"""One generator's answers to eight problems, with no context and with two."""

import answered_files
import pytest
import yaml
from answered_files import table, write

from coderet import reports
from coderet.records import DataError, Published
from coderet.reports import answers, generation

# Which of the problems p0 ... p7 are solved.
SOLVED = {"none": {0}, "oracle": set(range(8)), "bm25": {1, 2}}
RUNS = {"none": "none", "oracle": "oracle"}


@pytest.fixture
def read(root):
    for context, solved in SOLVED.items():
        write(root, context, solved, run=RUNS.get(context, "plain"))
    return answered_files.read(root, *SOLVED)


@pytest.fixture
def markdown(read, results):
    page = reports.report(results, [], {}, "plain", answers=read)
    return reports.as_markdown(page)


def test_each_context_is_told_with_its_interval_and_against_none(markdown):
    head, _, none, oracle, bm25 = table(markdown, "Answers by context")
    assert head == ["Generator", "Context", "Taken", "pass@1", "won", "lost", "McNemar p"]
    assert none == ["small", "none", "", "12.5 (6.2–18.8)", "–", "–", "–"]
    assert oracle == ["small", "oracle", "5 of oracle", "**100.0 ▲** (50.0–100.0)", "7", "0", "0.016"]
    assert bm25 == ["small", "bm25", "5 of plain", "25.0 ≈ (12.5–37.5)", "2", "1", "1.000"]


def test_what_a_context_changes_is_said_problem_by_problem(read):
    change = read.changes("solutions-8", "solutions")["bm25+small"]
    assert (change.gains, change.losses, change.value) == (("p1", "p2"), ("p0",), 0.125)


def test_a_run_s_retrieval_stands_beside_what_it_lets_be_solved(markdown):
    (_, _, row) = table(markdown, "Retrieval against execution")
    assert row == ["solutions-8", "small", "bm25", "100.0 (ndcg@10)", "25.0 (pass@1)"]


def test_contexts_that_hold_the_answer_are_counted(markdown):
    rows = table(markdown, "What helped and what misled")
    assert ["solutions-8", "small", "oracle", "8 of 8", "100.0", "–"] in rows
    assert ["solutions-8", "small", "bm25", "0 of 8", "–", "25.0"] in rows


def test_texts_stand_side_by_side_where_lines_can_be_shown(read, results, markdown):
    page = reports.as_html(reports.report(results, [], {}, "plain", answers=read))
    assert "<td class=text>def g1(): 0</td>" in page and "# passed\ndef f1():\n    pass" in page
    assert "def g1(): 0" not in markdown  # its cells have no lines


def test_verdicts_tokens_and_seconds_are_told(markdown):
    assert ["solutions-8", "small", "bm25", "2", "6"] in table(markdown, "Verdicts")
    cost = table(markdown, "What answers cost")
    assert ["solutions-8", "small", "none", "25.0", "2", "1", "800", "400", "4", "100", "2"] in cost


def test_without_answers_there_are_no_sections_and_what_is_missing_is_named(results, root):
    assert generation.sections(answers.Answers(), results) == []
    read = reports.read_answers([("solutions", "none", "large")], root=root)
    page = reports.as_markdown(reports.report(results, [], {}, "plain", answers=read))
    assert "eval/results/solutions/none+large/judge.json" in page.split("## Missing")[1]


def test_answers_to_other_problems_are_not_compared(root):
    write(root, "none", {0}, run="none")
    write(root, "oracle", {0}, ids=tuple(f"q{n}" for n in range(8)))
    read = answered_files.read(root, "none", "oracle")
    with pytest.raises(DataError, match="answered different problems"):
        read.changes("solutions-8", "solutions")


def test_the_summary_tells_answers_under_the_name_of_their_set(read):
    (none, *_) = reports.answer_rows(read)
    assert (none["system"], none["benchmark"], none["dataset"]) == ("none+small", "solutions", "solutions-8")
    assert (none["metric"], none["value"], none["unit"]) == ("pass@1", 0.125, "fraction")


def test_the_papers_tables_5_and_6_are_read_by_generator_and_context(tmp_path):
    tables = {
        "t5": {"rows": {"small_7b": {"humaneval_wo": 31.7, "humaneval_gold": 94.5, "lcb_wo": 1.5}}},
        "t6": {
            "rows": {"small_7b": {"none": {"humaneval": 31.7, "lcb": 1.5}, "gold": {"humaneval": 94.5, "lcb": None}}}
        },
    }
    (tmp_path / "coderag_bench.yaml").write_text(yaml.safe_dump({"tables": tables}, sort_keys=False))
    wanted = {"humaneval": Published("coderag_bench", "humaneval"), "pypi": None}
    rows = reports.published_answers(tmp_path, wanted)
    assert [(row["system"], row["context"], row["value"], row["source"][-7:]) for row in rows] == [
        ("small-7b", "none", 0.317, "table 5"),
        ("small-7b", "oracle", 0.945, "table 5"),
        ("small-7b", "none", 0.317, "table 6"),
        ("small-7b", "oracle", 0.945, "table 6"),
    ]
    (row, *_) = reports.published_answers(tmp_path, {"lcb": Published("coderag_bench", "livecodebench")})
    assert row["value"] == 0.015
