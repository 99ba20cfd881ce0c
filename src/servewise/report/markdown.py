"""Answers as Markdown: for a pull request, an issue, a wiki page."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.report.captions import caption, caveat_lines
from servewise.report.headline import headline
from servewise.report.reading import clean
from servewise.report.sections import Answers, Section, caveats_of, sections_of
from servewise.report.table import Table
from servewise.report.tables import tables_of

_ESCAPED = str.maketrans({each: f"\\{each}" for each in "\\`*_{}[]#|~$"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def render_markdown(answers: Answers, *, title: str | None = None, command: str | None = None) -> str:
    """The answers as GitHub-flavoured Markdown; nothing in them is taken as markup.

    ``command`` is shown as what made it.
    """
    sections = sections_of(answers)
    blocks = [f"# {escape(title)}"] if title else []
    for section in sections:
        blocks.extend(_section(section))
    caveats = caveat_lines(caveats_of(sections))
    if caveats:
        lines = [
            f"- {escape(message)} *{escape(cure)}*" if cure else f"- {escape(message)}" for message, cure in caveats
        ]
        blocks += ["## Caveats", "\n".join(lines)]
    if command:
        blocks += ["## Command", f"    {clean(command)}"]
    return "\n\n".join(blocks) + "\n"


def escape(found: str) -> str:
    """``found`` as Markdown that shows it as it is.

    >>> escape("a|b <i>")
    'a\\\\|b &lt;i&gt;'
    """
    return clean(found).translate(_ESCAPED)


def _section(section: Section) -> Iterator[str]:
    yield f"## {escape(section.title)}"
    yield f"Conditions: {escape(caption(section.answer.conditions))}"
    first = headline(section.answer)
    if first:
        yield f"**{escape(first.text)}**" + (f" {escape(first.detail)}" if first.detail else "")
        if first.numbers:
            yield "\n".join(f"- {escape(number.label)}: **{escape(number.value)}**" for number in first.numbers)
    for table in tables_of(section.answer.command, section.answer.result):
        yield f"### {escape(table.title)}"
        yield _table(table)
        if table.below():
            yield escape(table.below())


def _table(table: Table) -> str:
    head = [column.heading or " " for column in table.columns]
    rule = [":---" if column.prose else "---:" for column in table.columns]
    lines = [[escape(each) for each in head], rule, *([escape(cell) for cell in row] for row in table.cells)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
