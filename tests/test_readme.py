"""The README's results are those of the committed summary."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUMMARY = ROOT / "eval" / "summary.json"
ROW = re.compile(r"^\| `([\w-]+)` \|(.+)\|$", re.MULTILINE)
COLUMNS = (("pypi", "ndcg@10"), ("pypi", "mrr-1000"), ("humaneval", "ndcg@10"))


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_figure_of_the_results_table_is_in_the_summary(readme):
    measured = {
        (row["system"], row["benchmark"], row["metric"]): row["value"]
        for row in json.loads(SUMMARY.read_text(encoding="utf-8"))["rows"]
        if row["source"] == "measured" and row["dataset"] == "all" and row["metric"] != "pass@1"
    }
    rows = ROW.findall(readme)
    assert {system for system, _ in rows} == {system for system, _, _ in measured}
    for system, cells in rows:
        figures = [cell.strip() for cell in cells.split("|")][1:4]
        assert figures == [f"{100 * measured[system, *column]:.1f}" for column in COLUMNS], system


def test_the_groups_are_those_of_the_full_preset(readme):
    groups = json.loads((ROOT / "presets/full/eval/summary.json").read_text(encoding="utf-8"))["groups"]
    head, _, *rows = readme[readme.index("| group |") :].split("\n\n")[0].splitlines()
    systems = head.strip("| ").split(" | ")[1:]
    told = [row.strip("| ").split(" | ")[1:] for row in rows[: len(groups["minilm"]["by_group"])]]
    by_group = [groups[system]["by_group"].values() for system in systems]
    assert told == [[f"{100 * value:.1f}" for value in row] for row in zip(*by_group, strict=True)]


def test_the_problems_solved_are_those_of_the_summary(readme):
    solved = {
        row["system"].removesuffix("+smollm2"): f"{100 * row['value']:.1f}"
        for row in json.loads(SUMMARY.read_text(encoding="utf-8"))["rows"]
        if row["metric"] == "pass@1" and row["dataset"] == "humaneval-40" and row["source"] == "measured"
    }
    table = readme.split("| context | problems solved, % |")[1].split("\n\n")[0]
    told = [line.strip("| ").rpartition(" | ") for line in table.strip().splitlines()[1:]]
    named = {re.findall(r"`([\w-]+)`|\((oracle)\)|^(none)", text)[0]: figure for text, _, figure in told}
    assert {"".join(name): figure for name, figure in named.items()} == solved


def test_every_file_that_the_readme_links_to_is_there(readme):
    for link in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (ROOT / link).exists(), link


def test_the_two_commands_are_targets_of_the_makefile(readme):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in set(re.findall(r"`?make ([a-z-]+)", readme)):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command
