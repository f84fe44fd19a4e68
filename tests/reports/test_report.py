import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import imagined
import pytest

from coderet import paths, reports
from coderet.records import Published

PUBLISHED = Path(__file__).parents[2] / "data" / "published"


def page_of(results, root, published=()):
    differences = reports.differences(results, "plain", root=root)
    return reports.report(results, published, differences, "plain", reports.all_warnings(results))


def rows_of(markdown, title):
    """The table rows of a section, as lists of cells."""
    section = markdown.split(f"## {title}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]


def test_the_headline_table_has_means_intervals_marks_and_the_best_in_bold(results, root):
    head, _, plain, learned, both = rows_of(reports.as_markdown(page_of(results, root)), "Results")
    assert head[:3] == ["System", "functions (ndcg@10)", "solutions (ndcg@10)"]
    assert plain[:3] == ["plain (baseline)", "25.0 (15.0–35.0)", "**100.0** (90.0–100.0)"]
    assert learned[:3] == ["learned", "**90.0 ▲** (80.0–100.0)", "95.0 ≈ (85.0–100.0)"]
    assert both[-2:] == ["–", "–"]


def test_what_leads_is_said_in_words(results, root):
    markdown = reports.as_markdown(page_of(results, root))
    assert "- functions, ndcg@10: learned leads with 90.0, +65.0 against plain, more than chance explains." in markdown
    assert "- solutions, ndcg@10: plain and both lead with 100.0." in markdown


def test_a_missing_figure_is_called_missing_and_its_file_listed(root):
    for stage in ("score", "index"):
        (root / paths.result("functions", "learned", stage)).unlink()
    results = imagined.read(root)
    markdown = reports.as_markdown(page_of(results, root))
    learned = rows_of(markdown, "Results")[3]
    assert learned[1] == "missing"
    assert "- eval/results/functions/learned/score.json" in markdown.split("## Missing")[1]
    speed = rows_of(markdown, "Efficiency")
    assert ["learned", "missing", "missing", "100", "5"] in speed


def test_each_figure_says_what_it_was_made_with(results, root):
    rows = rows_of(reports.as_markdown(page_of(results, root)), "Settings")
    assert rows[0] == ["System", "Benchmarks", "kind", "analyzer", "text fields", "similarity", "k1", "members", "k"]
    assert rows[2] == ["plain", "functions and solutions", "lucene", "whitespace", "text", "", "1.2", "", ""]
    assert rows[3] == ["learned", "functions and solutions", "dense", "", "text", "cosine", "", "", ""]
    assert rows[4][-2:] == ["plain, learned", "60"]


def test_the_data_report_counts_duplicates_queries_without_gold_and_what_was_cut(results, root):
    rows = rows_of(reports.as_markdown(page_of(results, root)), "Data")
    counts = dict(zip(rows[0], rows[2], strict=True))
    assert (counts["duplicate groups"], counts["queries without gold"]) == ("2", "1")
    assert ["leaks › exact", "3"] in rows


def test_documents_that_an_encoder_cuts_are_told(results, root):
    markdown = reports.as_markdown(page_of(results, root))
    assert "| learned | functions | 30 | 2 | 43 |" in markdown
    assert "| plain | functions | 30 |" not in markdown


def test_the_confidence_is_that_of_the_scores(results, root):
    assert "with 90 % confidence" in reports.as_markdown(page_of(results, root))


def test_a_papers_figure_stands_beside_ours_with_the_difference(results, root):
    row = {"benchmark": "solutions", "dataset": "all", "metric": "ndcg@10", "source": "published:Paper table 1"}
    published = [{**row, "system": "learned", "value": 0.9}, {**row, "system": "stranger", "value": 0.5}]
    rows = rows_of(reports.as_markdown(page_of(results, root, published)), "Published figures")
    assert rows[2] == ["learned", "solutions", "ndcg@10", "Paper table 1", "90.0", "95.0 (85.0–100.0)", "+5.0"]
    assert rows[3][-3:] == ["50.0", "–", ""]


def test_costs_name_their_units_and_the_machine(results, root):
    markdown = reports.as_markdown(page_of(results, root))
    rows = rows_of(markdown, "Efficiency")
    assert rows[0] == ["System", "documents/s", "ms/document", "queries/s", "ms/query, p50"]
    assert rows[2] == ["plain", "60", "16.7", "200", "4"]
    assert "- Measured on Imaginary 9000, 2 cores, 8 GiB, no accelerator." in markdown


def test_the_speed_of_an_approximate_index_never_stands_without_its_recall(root):
    path = root / paths.result("functions", "learned", "search")
    search = json.loads(path.read_text())
    search["datasets"]["pool"] |= {"recall_against_flat@10": 0.987, "recall_against_flat@100": 0.9512}
    path.write_text(json.dumps(search))
    page = page_of(imagined.read(root), root)
    markdown = reports.as_markdown(page)
    caveat = "(recall @10 98.7, @100 95.1)"
    _, _, plain, learned = rows_of(markdown, "Efficiency")[:4]
    assert learned == ["learned", "30", "33.3", f"100 {caveat}", f"5 {caveat}"]
    assert plain == ["plain", "60", "16.7", "200", "4"]
    assert rows_of(markdown, "Results")[3][-2:] == [f"100 {caveat}", f"5 {caveat}"]
    figures = json.loads(re.search(r"const FIGURES = (\{.*?\});</script>", reports.as_html(page))[1])
    points = figures["cost"]["functions · ndcg@10|queries answered per second (more is better)"]["data"]
    assert [point["text"] for point in points] == [["learned<br>recall @10 98.7, @100 95.1"], ["plain"]]
    on_disk = figures["cost"]["functions · ndcg@10|bytes of the index on disk (less is better)"]["data"]
    assert {point["text"][0] for point in on_disk} == {"learned", "plain"}
    assert all("recall" in each["hovertemplate"] for each in on_disk if each["name"] == "learned")


def test_the_same_results_give_the_same_report(results, root):
    assert reports.as_html(page_of(results, root)) == reports.as_html(page_of(results, root))


def test_an_empty_grid_gives_a_report_that_says_so(tmp_path):
    results = reports.read(["functions"], ["plain"], root=tmp_path)
    page = reports.report(results, [], {}, "plain")
    assert rows_of(reports.as_markdown(page), "Results")[2][1:] == ["missing", "missing"]
    assert len(results.missing) == 5


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_the_page_fetches_nothing(results, root):
    tags = Tags()
    tags.feed(reports.as_html(page_of(results, root)))
    assert not [tag for tag, _ in tags.found if tag in ("link", "iframe", "img", "object", "embed")]
    assert not [attributes for _, attributes in tags.found if "src" in attributes]
    assert {attributes["href"][0] for tag, attributes in tags.found if tag == "a"} == {"#"}


def test_text_from_results_cannot_become_markup(root):
    imagined.write_score(root, "functions", "plain", {"kind": "</script><b>", "text_fields": ["<i>"]})
    results = imagined.read(root)
    html = reports.as_html(page_of(results, root))
    assert "&lt;/script&gt;&lt;b&gt;" in html
    assert "</script><b>" not in html and "<i>" not in html


def test_figures_survive_as_json(results, root):
    html = reports.as_html(page_of(results, root))
    figures = json.loads(re.search(r"const FIGURES = (\{.*?\});</script>", html)[1])
    assert set(figures) == {"cost", "bars", "training"}
    (trace,) = figures["bars"]["functions · ndcg@10"]["data"]
    assert dict(zip(trace["y"], trace["x"], strict=True)) == {"plain": 25.0, "both": 75.0, "learned": 90.0}
    assert trace["error_x"]["array"] == pytest.approx([10.0, 10.0, 10.0])
    curve = figures["training"]["validation MRR|steps"]["data"][0]
    assert (curve["x"], curve["y"]) == ([10, 20, 30], [0.1, 0.2, 0.3])
    points = figures["cost"]["functions · ndcg@10|queries answered per second (more is better)"]["data"]
    assert [(point["name"], point["x"], point["y"]) for point in points] == [
        ("learned", [100.0], [90.0]),
        ("plain", [200.0], [25.0]),
    ]


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here to open the report with")
def test_a_browser_shows_plots_and_tables_that_are_not_empty(results, root, tmp_path):
    published = reports.published_rows(PUBLISHED, {"humaneval": Published("coderag_bench", "humaneval")})
    report = tmp_path / "a report.html"
    report.write_text(reports.as_html(page_of(results, root, published)), encoding="utf-8")
    quiet = ["--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update"]
    quiet += ["--disable-sync", "--no-first-run", "--no-sandbox", f"--user-data-dir={tmp_path / 'profile'}"]
    seen = subprocess.run(
        [BROWSER, "--headless", *quiet, "--virtual-time-budget=10000", "--dump-dom", report.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    seen = re.sub(r"<script>.*?</script>", "", seen, flags=re.DOTALL)  # what is shown, not what draws it
    drawn = seen.split('<figure class="plot"')[1:]
    assert len(drawn) == 3
    cost, bars, training = drawn
    assert cost.count('class="textpoint"') == 2
    assert bars.count('class="point"') >= 3
    assert "js-line" in training
    tables = re.findall(r"<tbody>(.*?)</tbody>", seen, re.DOTALL)
    assert len(tables) >= 8
    assert all(re.search(r"<td[^>]*>[^<]", table) for table in tables)


def test_what_a_random_order_scores_stands_under_the_systems(root):
    path = root / paths.result("functions", "plain", "score")
    score = json.loads(path.read_text(encoding="utf-8"))
    score["all"]["ndcg@10"]["random"] = 0.031
    path.write_text(json.dumps(score), encoding="utf-8")
    markdown = reports.as_markdown(page_of(imagined.read(root), root))
    assert rows_of(markdown, "Results")[-1][:3] == ["random order", "3.1", ""]
    assert ["random order", "3.1", ""] in rows_of(markdown, "Every metric")


def test_a_ceiling_below_one_is_told(root):
    path = root / paths.result("functions", "collect")
    found = json.loads(path.read_text(encoding="utf-8"))
    found["datasets"]["pool"] |= {
        "ceiling_ndcg@10": 0.653,
        "ceiling_ndcg@10-expected": 0.827,
        "ceiling_hit@1": 0.5,
        "ceiling_hit@1-expected": 0.6,
    }
    path.write_text(json.dumps(found), encoding="utf-8")
    rows = rows_of(reports.as_markdown(page_of(imagined.read(root), root)), "Data")
    assert ["functions", "pool", "65.3", "82.7", "50.0", "60.0"] in rows
