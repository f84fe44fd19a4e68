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
        if row["source"] == "measured" and row["dataset"] == "all" and (row["benchmark"], row["metric"]) in COLUMNS
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


def test_the_architectures_of_2019_are_those_of_their_preset():
    page = (ROOT / "docs/encoders.md").read_text(encoding="utf-8")
    rows = json.loads((ROOT / "presets/codesearchnet/eval/summary.json").read_text(encoding="utf-8"))["rows"]
    figures = {
        row["system"]: row["value"] for row in rows if row["metric"] == "mrr-1000-paper" and row["dataset"] == "all"
    }
    names = {"nbow": "nbow", "attention": "attention", "recurrent": "rnn", "convolution": "cnn"}
    told = re.findall(r"^\| (\w+) \| ([\d.]+) \| \d+ \| [\d.]+ \|$", page, re.MULTILINE)
    assert told == [(kind, f"{100 * figures[f'{name}-2019']:.1f}") for kind, name in names.items()]


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


def test_the_shares_of_all_problems_are_those_of_the_full_preset(readme):
    told = dict(re.findall(r"([\w-]+) ([\d.]+\d)", readme.split("Of all 164 (`PRESET=full`): ")[1].split("\n")[0]))
    assert set(told) == {"none", "bm25-code", "minilm-code", "oracle"}
    for context, share in told.items():
        path = ROOT / f"presets/full/eval/results/humaneval/{context}+smollm2/judge.json"
        assert share == f"{100 * json.loads(path.read_text(encoding='utf-8'))['all']['pass@1']['value']:.1f}"


FOUND = "| needles found by | first, % | among ten, % | in 1,024 tokens, % | median rank |"
READ = "| needles read from | in context, % | copied, % | copied where in context, % |"


def needles(summary: list[dict], benchmark: str = "needles-pypi-small") -> dict[tuple[str, str, str], dict]:
    """The measured rows about needles by system, dataset and metric."""
    rows = [row for row in summary if row["benchmark"] == benchmark and row["source"] == "measured"]
    return {(row["system"], row["dataset"], row["metric"]): row for row in rows}


def told(readme: str, heading: str) -> dict[str, list[str]]:
    """The figures of a table of the README, by what stands in backticks in the first cell of a row."""
    assert heading in readme, f"README.md has no table with the heading {heading}"
    rows = readme.split(heading)[1].split("\n\n")[0].strip().splitlines()[1:]
    cells = [[cell.strip() for cell in row.strip("| ").split("|")] for row in rows]
    return {re.findall(r"`([\w-]+)`", first)[0]: figures for first, *figures in cells}


def measured_found(rows: dict[tuple[str, str, str], dict]) -> dict[str, list[str]]:
    def of(system: str) -> list[str]:
        shares = ("recall@1-expected", "recall@10-expected", "budget-recall@1024")
        figures = [f"{100 * rows[system, 'all', metric]['value']:.1f}" for metric in shares]
        return [*figures, f"{rows[system, 'all', 'median-rank']['value']:g}"]

    return {system: of(system) for system, _, metric in rows if metric == "median-rank"}


def measured_read(rows: dict[tuple[str, str, str], dict], generator: str = "smollm2") -> dict[str, list[str]]:
    def of(system: str) -> list[str]:
        whole, held = (rows.get((system, part, "match@0.8")) for part in ("all", "held"))
        share = held["queries"] / whole["queries"] if held else 0.0
        return [f"{100 * share:.1f}", f"{100 * whole['value']:.1f}", f"{100 * held['value']:.1f}" if held else "–"]

    asked = [name for name, part, metric in rows if (part, metric) == ("all", "match@0.8")]
    return {name.partition("+")[0]: of(name) for name in asked if name.endswith(f"+{generator}")}


def test_the_needles_found_and_read_are_those_of_the_summary(readme):
    rows = needles(json.loads(SUMMARY.read_text(encoding="utf-8"))["rows"])
    if not rows:
        pytest.skip("eval/summary.json has no needles: the grid was run without needles-pypi-small")
    found, read = measured_found(rows), measured_read(rows)
    assert told(readme, FOUND) == found
    if read:
        assert told(readme, READ) == read


def test_needles_are_told_with_one_decimal_and_a_rank():
    def row(system: str, dataset: str, metric: str, value: float, queries: int = 8) -> dict:
        own = {"system": system, "dataset": dataset, "metric": metric, "value": value, "queries": queries}
        return {**own, "benchmark": "needles-pypi-small", "source": "measured"}

    shares = {"recall@1-expected": 0.355, "recall@10-expected": 0.5, "budget-recall@1024": 0.25, "median-rank": 4.5}
    summary = [row("bm25", "all", metric, value) for metric, value in shares.items()]
    summary += [row("read+smollm2", "all", "match@0.8", 0.25), row("none+smollm2", "all", "match@0.8", 0.0)]
    summary += [row("read+smollm2", "held", "match@0.8", 0.5, 4)]
    table = f"{FOUND}\n|---|---:|---:|---:|---:|\n| the retriever `bm25` | 35.5 | 50.0 | 25.0 | 4.5 |\n\n"
    table += f"{READ}\n|---|---:|---:|---:|\n| what `read` found | 50.0 | 25.0 | 50.0 |\n| `none` | 0.0 | 0.0 | – |\n\n"
    assert told(table, FOUND) == measured_found(needles(summary)) == {"bm25": ["35.5", "50.0", "25.0", "4.5"]}
    assert told(table, READ) == measured_read(needles(summary))
    with pytest.raises(AssertionError, match="has no table with the heading"):
        told("no table", FOUND)


def test_every_file_that_the_readme_links_to_is_there(readme):
    for link in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (ROOT / link).exists(), link


def test_the_two_commands_are_targets_of_the_makefile(readme):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in set(re.findall(r"`?make ([a-z-]+)", readme)):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command
