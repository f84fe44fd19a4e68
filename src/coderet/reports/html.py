"""A page as one HTML file that opens from disk: style, script, figures and Plotly are inside, nothing is fetched.

Without scripts the tables are still there. Colours follow the reader's choice of light or dark.
"""

import html
import json
from collections.abc import Iterator
from importlib import resources

from coderet.reports.page import Cell, Column, Page, Plot, Section, Table


def as_html(page: Page) -> str:
    from plotly.offline import get_plotlyjs  # megabytes, and wanted only here

    return "".join(_page(page, get_plotlyjs()))


def _page(page: Page, plotly: str) -> Iterator[str]:
    plots = [part for section in page.sections for part in section.parts if isinstance(part, Plot)]
    yield f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{_text(page.title)}</title>"
    yield "<meta name=viewport content='width=device-width, initial-scale=1'>"
    yield f"<style>{_asset('report.css')}</style></head><body><header><h1>{_text(page.title)}</h1>"
    yield f"<p>{_text(page.lead)}</p></header><nav>"
    yield from (f"<a href='#{section.name}'>{_text(section.title)}</a>" for section in page.sections)
    yield "</nav><main>"
    for warning in page.warnings:
        yield f"<p class=warning role=note><strong>Warning</strong> {_text(warning)}</p>"
    for section in page.sections:
        yield from _section(section)
    yield "</main>"
    if plots:
        figures = json.dumps({plot.name: plot.figures for plot in plots})
        figures = figures.replace("</", "<\\/")  # which would end the script early
        yield f"<script>{plotly}</script><script>const FIGURES = {figures};</script>"
    yield f"<script>{_asset('report.js')}</script></body></html>\n"


def _section(section: Section) -> Iterator[str]:
    yield f"<section id='{section.name}'><h2>{_text(section.title)}</h2><p class=lead>{_text(section.lead)}</p>"
    if section.points:
        yield "<ul>" + "".join(f"<li>{_text(point)}</li>" for point in section.points) + "</ul>"
    for part in section.parts:
        yield from _table(part) if isinstance(part, Table) else _plot(part)
    yield "</section>"


def _plot(plot: Plot) -> Iterator[str]:
    yield f"<figure class=plot data-plot='{plot.name}'><div class=choices>"
    for choice in plot.choices:
        options = "".join(f"<option>{_text(option)}</option>" for option in choice.options)
        yield f"<label>{_text(choice.label)} <select>{options}</select></label>"
    yield f"</div><div class=canvas></div><figcaption>{_text(plot.caption)}</figcaption></figure>"


def _table(table: Table) -> Iterator[str]:
    if table.folded:
        yield f"<details><summary>{_text(table.caption)}</summary>"
    elif table.caption:
        yield f"<h3>{_text(table.caption)}</h3>"
    yield "<div class=scroll><table><thead><tr>"
    yield from (_head(column) for column in table.columns)
    yield "</tr></thead><tbody>"
    for row in table.rows:
        cells = (_cell(cell, column) for cell, column in zip(row, table.columns, strict=True))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    if table.folded:
        yield "</details>"


def _head(column: Column) -> str:
    unit = f"<small>{_text(column.unit)}</small>" if column.unit else ""
    number = " class=number" if column.numeric else ""
    return f"<th scope=col{number}><button>{_text(column.name)}{unit}</button></th>"


def _cell(cell: Cell, column: Column) -> str:
    number = " class=number" if column.numeric else " class=text" if column.text else ""
    value = "" if cell.value is None else f" data-value='{_text(str(cell.value))}'"
    hint = f" title='{_text(cell.hint)}'" if cell.hint else ""
    text = f"<strong>{_text(cell.text)}</strong>" if cell.strong else _text(cell.text)
    small = f"<small>{_text(cell.small)}</small>" if cell.small else ""
    return f"<td{number}{value}{hint}>{text}{small}</td>"


def _text(text: str) -> str:
    return html.escape(text, quote=True)


def _asset(name: str) -> str:
    return resources.files("coderet.reports").joinpath(name).read_text(encoding="utf-8")
