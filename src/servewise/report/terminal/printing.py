"""Printing with rich: colour only where the terminal takes it, NO_COLOR and pipes respected."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from servewise.answer import Answer
from servewise.report.captions import caption, caveat_lines
from servewise.report.headline import headline
from servewise.report.sections import Section, caveats_of, sections_of
from servewise.report.table import Table
from servewise.report.tables import tables_of
from servewise.report.terminal.fitting import GAP, fitted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

_WIDEST = 120
_PIPED = 80
_FIRST_TABLE = ("plan",)  # commands whose first table is the answer itself
_STYLES = {"good": "green", "bad": "red"}


def terminal_console(file: TextIO | None = None) -> Console:
    """A console for answers on ``file`` (stdout): at most 120 columns, 80 in a pipe, no markup."""
    from rich.console import Console

    found = Console(file=file or sys.stdout, highlight=False, markup=False, emoji=False)
    width = min(found.width, _WIDEST) if found.is_terminal else _PIPED
    return Console(file=file or sys.stdout, highlight=False, markup=False, emoji=False, width=width)


def print_answer(answer: Answer, console: Console | None = None) -> None:
    """Print ``answer``: conditions, headline, tables, caveats with their cures; of several answers a summary."""
    out = console or terminal_console()
    sections = sections_of(answer)
    if len(sections) > 1:
        for section in sections:
            _print_summary(section, out)
    else:
        for section in sections:
            _print_whole(section, out)
    _print_caveats(sections, out)


def _print_whole(section: Section, out: Console) -> None:
    """Everything of one answer."""
    _print_headline(section, out)
    for table in tables_of(section.answer.command, section.answer.result):
        _print_fitted(table, out)


def _print_summary(section: Section, out: Console) -> None:
    """One of several answers: its headline; its first table where that is the answer, or where there is no headline."""
    _say(out, section.title, "bold underline")
    _print_headline(section, out)
    tables = tables_of(section.answer.command, section.answer.result)
    if tables and (section.answer.command in _FIRST_TABLE or not headline(section.answer)):
        _print_fitted(tables[0], out)


def _print_headline(section: Section, out: Console) -> None:
    _say(out, caption(section.answer.conditions), "dim")
    first = headline(section.answer)
    if first:
        _say(out, " ".join(filter(None, (first.text, first.detail))), "bold" if first.good else "bold red")
        widest = max((len(number.value) for number in first.numbers), default=0)
        for number in first.numbers:
            _say(out, f"  {number.value:>{widest}}  {number.label}", "")
    out.print()


def _print_fitted(table: Table, out: Console) -> None:
    for part in fitted(table, out.width):
        _print_table(part, out)


def _print_table(table: Table, out: Console) -> None:
    if table.title:
        _say(out, table.title, "bold")
    out.print(_rich(table))
    if table.below():
        _say(out, table.below(), "dim")
    out.print()


def _rich(table: Table) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    headed = any(column.heading for column in table.columns)
    drawn = RichTable(
        box=box.SIMPLE_HEAD if headed else None,
        show_header=headed,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP, 0, 0) if not headed else (0, 1, 0, 0),
        header_style="dim",
    )
    for column in table.columns:
        drawn.add_column(
            Text(column.heading),
            justify="left" if column.prose else "right",
            overflow="fold",
            no_wrap=not column.prose,
            vertical="top",
        )
    for index, row in enumerate(table.cells):
        drawn.add_row(*(Text(cell) for cell in row), style=_STYLES.get(table.mark(index), ""))
        if table.ends_group(index):
            drawn.add_section()
    return drawn


def _print_caveats(sections: tuple[Section, ...], out: Console) -> None:
    for message, cure in caveat_lines(caveats_of(sections)):
        _say(out, f"! {message}", "yellow")
        if cure:
            _say(out, f"  {cure}", "")


def _say(out: Console, words: str, style: str) -> None:
    from rich.text import Text

    out.print(Text(words, style=style))
