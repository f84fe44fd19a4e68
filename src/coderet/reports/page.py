"""The report as data: sections of text, tables and plots, which markdown.py and html.py only put into words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cell:
    """What a cell shows, what it is sorted by, what it explains when pointed at; strong for the best of a column."""

    text: str
    value: float | str | None = None
    small: str = ""
    hint: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Column:
    """numeric columns are set to the right; unit stands small below the name.

    text: cells hold lines that are shown as they stand; Markdown, whose cells have no lines, leaves such a column out.
    """

    name: str
    unit: str = ""
    numeric: bool = False
    hint: str = ""
    text: bool = False


@dataclass(frozen=True)
class Table:
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    folded: bool = False  # shown only on a click


@dataclass(frozen=True)
class Choice:
    """A question to the reader, and the answers."""

    label: str
    options: Sequence[str]


@dataclass(frozen=True)
class Plot:
    """figures: Plotly's data and layout by the chosen options, joined by `|`."""

    name: str
    caption: str
    choices: Sequence[Choice]
    figures: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Section:
    name: str
    title: str
    lead: str
    parts: Sequence[Table | Plot] = field(default_factory=tuple)
    points: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    title: str
    lead: str
    warnings: Sequence[str]
    sections: Sequence[Section]
