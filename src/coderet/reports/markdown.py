"""A page as Markdown: what can be read in a terminal, a diff or a code review. Plots are left out."""

from collections.abc import Iterable, Iterator

from coderet.reports.page import Cell, Page, Section, Table


def as_markdown(page: Page) -> str:
    return "\n".join(_page(page)) + "\n"


def _page(page: Page) -> Iterator[str]:
    yield from (f"# {page.title}", "", page.lead)
    for warning in page.warnings:
        yield from ("", f"> **Warning:** {warning}")
    for section in page.sections:
        if section.points or any(isinstance(part, Table) for part in section.parts):
            yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    yield from ("", f"## {section.title}", "", section.lead)
    if section.points:
        yield ""
        yield from (f"- {point}" for point in section.points)
    for part in section.parts:
        if isinstance(part, Table):
            yield from _table(part)


def _table(table: Table) -> Iterator[str]:
    if table.caption:
        yield from ("", f"**{table.caption}**")
    yield ""
    columns = [column for column in table.columns if not column.text]
    yield _row(f"{column.name} ({column.unit})" if column.unit else column.name for column in columns)
    yield _row("---:" if column.numeric else "---" for column in columns)
    for row in table.rows:
        yield _row(_cell(cell) for cell, column in zip(row, table.columns, strict=True) if not column.text)


def _cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.strong else cell.text
    return f"{text} ({cell.small})" if cell.small else text


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
