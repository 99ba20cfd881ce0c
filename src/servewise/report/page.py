"""What the HTML page holds, ready to be set: no template logic decides what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from servewise.conditions import Conditions
from servewise.report.captions import caption, caveat_lines, condition_pairs, differing
from servewise.report.charts.figure import Figure
from servewise.report.figures import figures_of
from servewise.report.headline import Headline, headline
from servewise.report.reading import clean
from servewise.report.sections import Section, caveats_of
from servewise.report.table import Table
from servewise.report.tables import tables_of

HALF_WIDTH = 68  # characters: tables no wider stand two abreast
FIRST_CAVEATS = 4  # or all of the leading answer's
OPEN_ROWS = 15  # longer tables start folded
DENSE_WIDTH = 112  # wider ones are set smaller; printed across the paper where their figures alone are as wide
MOST_ROWS = 2_000


@dataclass(frozen=True, slots=True)
class TableView:
    """A table under its anchor; each cell with whether it is prose."""

    anchor: str
    title: str
    columns: tuple[Any, ...]
    rows: tuple[tuple[str, tuple[tuple[bool, str], ...]], ...]
    note: str
    headed: bool
    open: bool
    half: bool
    dense: bool
    across: bool


@dataclass(frozen=True, slots=True)
class FigureView:
    """A chart, the conditions in which it is not its section's, and the anchor of its table. ``svg`` is markup."""

    title: str
    svg: Any
    differs: str
    note: str
    table: str


@dataclass(frozen=True, slots=True)
class SectionView:
    """One answer: its headline, the tables that come first, figures, then tables of half and of full width."""

    anchor: str
    title: str
    caption: str
    headline: Headline | None
    first: tuple[TableView, ...]
    figures: tuple[FigureView, ...]
    half: tuple[TableView, ...]
    full: tuple[TableView, ...]


@dataclass(frozen=True, slots=True)
class ConditionsView:
    """Conditions that the named sections share."""

    titles: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page, top to bottom."""

    title: str
    subtitle: str
    lead: Headline | None
    caveats: tuple[tuple[str, str], ...]
    more_caveats: tuple[tuple[str, str], ...]
    sections: tuple[SectionView, ...]
    conditions: tuple[ConditionsView, ...]
    command: str
    version: str


def page_of(sections: Sequence[Section], *, title: str, command: str | None = None) -> Page:
    """The page of ``sections``: the plan's answer leads, or the first that has a headline."""
    leading = _leading(sections)
    ordered = [section for section in sections if section is leading]
    ordered += [section for section in sections if section is not leading]
    caveats = caveat_lines(caveats_of(ordered))
    own = len(caveat_lines(leading.answer.caveats)) if leading else 0
    first = max(own, min(len(caveats), FIRST_CAVEATS))
    return Page(
        title=clean(title),
        subtitle=caption(leading.answer.conditions) if leading else "",
        lead=headline(leading.answer) if leading else None,
        caveats=tuple(caveats[:first]),
        more_caveats=tuple(caveats[first:]),
        sections=tuple(_section(index, section, section is leading) for index, section in enumerate(ordered, start=1)),
        conditions=_conditions(ordered),
        command=clean(command or ""),
        version=_version(),
    )


def _leading(sections: Sequence[Section]) -> Section | None:
    plans = [section for section in sections if section.answer.command == "plan"]
    headed = [section for section in sections if headline(section.answer)]
    return next(iter([*plans, *headed, *sections]), None)


def _section(index: int, section: Section, leading: bool) -> SectionView:
    answer = section.answer
    figures = figures_of(answer)
    tables = list(tables_of(answer.command, answer.result))
    titles = [table.title for table in tables]
    views = tuple(_table(f"table-{index}-{place}", table) for place, table in enumerate(tables, start=1))
    first = 1 if answer.command == "plan" else 0  # the ranking is the answer, the charts explain it
    return SectionView(
        anchor=f"part-{index}",
        title=section.title,
        caption=caption(answer.conditions),
        headline=None if leading else headline(answer),
        first=views[:first],
        figures=tuple(
            _figure(figure, answer.conditions, f"table-{index}-{titles.index(figure.table.title) + 1}")
            for figure in figures
        ),
        half=tuple(view for view in views[first:] if view.half),
        full=tuple(view for view in views[first:] if not view.half),
    )


def _figure(figure: Figure, conditions: Conditions, anchor: str) -> FigureView:
    from markupsafe import Markup

    return FigureView(
        figure.title, Markup(figure.labelled), differing(figure.conditions, conditions), figure.note, anchor
    )


def _table(anchor: str, table: Table) -> TableView:
    shown = table.cells[:MOST_ROWS]
    left = len(table.cells) - len(shown)
    prose = [column.prose for column in table.columns]
    note = f"{table.below()} {left:,} more rows are in the JSON document." if left else table.below()
    return TableView(
        anchor=anchor,
        title=table.title,
        columns=table.columns,
        rows=tuple((table.mark(place), tuple(zip(prose, row, strict=True))) for place, row in enumerate(shown)),
        note=note.strip(),
        headed=any(column.heading for column in table.columns),
        open=len(table.cells) <= OPEN_ROWS,
        half=_width(table) <= HALF_WIDTH,
        dense=_width(table) > DENSE_WIDTH,
        across=_width(_figures_of(table)) > DENSE_WIDTH,
    )


def _figures_of(table: Table) -> Table:
    """The table without its prose, which can wrap."""
    return table.taken([index for index, column in enumerate(table.columns) if not column.prose])


def _width(table: Table) -> int:
    """The table's width in characters, prose counted to 30."""
    columns = enumerate(table.columns)
    return sum(
        2 + max(_longest_word(column.heading), _longest(table, index, column.prose)) for index, column in columns
    )


def _longest(table: Table, index: int, prose: bool) -> int:
    longest = max((len(row[index]) for row in table.cells), default=0)
    return round(0.85 * min(longest, 30)) if prose else longest


def _longest_word(heading: str) -> int:
    return max((len(word) for word in heading.split()), default=0)


def _conditions(sections: Sequence[Section]) -> tuple[ConditionsView, ...]:
    grouped: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for section in sections:
        grouped.setdefault(tuple(condition_pairs(section.answer.conditions)), []).append(section.title)
    return tuple(ConditionsView(", ".join(titles), pairs) for pairs, titles in grouped.items())


def _version() -> str:
    from servewise.version import __version__

    return __version__
