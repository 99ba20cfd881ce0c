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
_STYLES = {"good": "green", "bad": "red"}


def terminal_console(file: TextIO | None = None) -> Console:
    """A console for answers on ``file`` (stdout): at most 120 columns, 80 in a pipe, no markup."""
    from rich.console import Console

    found = Console(file=file or sys.stdout, highlight=False, markup=False, emoji=False)
    width = min(found.width, _WIDEST) if found.is_terminal else _PIPED
    return Console(file=file or sys.stdout, highlight=False, markup=False, emoji=False, width=width)


def print_answer(answer: Answer, console: Console | None = None) -> None:
    """Print ``answer``: its conditions, its headline, its tables, its caveats with their cures."""
    out = console or terminal_console()
    sections = sections_of(answer)
    for section in sections:
        _print_section(section, out, titled=len(sections) > 1)
    _print_caveats(sections, out)


def _print_section(section: Section, out: Console, *, titled: bool) -> None:
    if titled:
        _say(out, section.title, "bold underline")
    _say(out, caption(section.answer.conditions), "dim")
    first = headline(section.answer)
    if first:
        _say(out, " ".join(filter(None, (first.text, first.detail))), "bold" if first.good else "bold red")
        for number in first.numbers:
            _say(out, f"  {number.value}  {number.label}", "")
    out.print()
    for table in tables_of(section.answer.command, section.answer.result):
        for part in fitted(table.narrow(), out.width):
            _print_table(part, out)


def _print_table(table: Table, out: Console) -> None:
    if table.title:
        _say(out, table.title, "bold")
    out.print(_rich(table))
    if table.note:
        _say(out, table.note.strip(), "dim")
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
    return drawn


def _print_caveats(sections: tuple[Section, ...], out: Console) -> None:
    for message, cure in caveat_lines(caveats_of(sections)):
        _say(out, f"! {message}", "yellow")
        if cure:
            _say(out, f"  {cure}", "")


def _say(out: Console, words: str, style: str) -> None:
    from rich.text import Text

    out.print(Text(words, style=style))
