"""The report: results side by side, from files alone.

`read` takes in what the stages wrote and `published_rows` what papers print; `summary_rows` makes the flat table of
both, `report` the page that `as_markdown` and `as_html` put into words.
"""

from coderet.reports.answers import Answers, read_answers
from coderet.reports.answers import summary_rows as answer_rows
from coderet.reports.architectures import COLUMN as ARCHITECTURES
from coderet.reports.card import card, scored_card
from coderet.reports.choices import contrasts, headlines, read_score
from coderet.reports.comparison import all_warnings, differences
from coderet.reports.groups import group_means
from coderet.reports.html import as_html
from coderet.reports.markdown import as_markdown
from coderet.reports.mteb_export import revision_of, seconds_of, task_result
from coderet.reports.needles import depth_page
from coderet.reports.published import published_answers, published_needles, published_rows
from coderet.reports.results import Results, costs, hardware, read
from coderet.reports.sections import report
from coderet.reports.summary import summary_rows

__all__ = [
    "ARCHITECTURES",
    "Answers",
    "Results",
    "all_warnings",
    "answer_rows",
    "as_html",
    "as_markdown",
    "card",
    "contrasts",
    "costs",
    "depth_page",
    "differences",
    "group_means",
    "hardware",
    "headlines",
    "published_answers",
    "published_needles",
    "published_rows",
    "read",
    "read_answers",
    "read_score",
    "report",
    "revision_of",
    "scored_card",
    "seconds_of",
    "summary_rows",
    "task_result",
]
