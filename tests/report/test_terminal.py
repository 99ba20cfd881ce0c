"""On a terminal: conditions first, caveats with their cures last, nothing wider than it, colour only where wanted."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.report.documents import NAMES, answer

from servewise.caveats import Caveat
from servewise.report import print_answer, terminal_console
from servewise.report.table import Column, Table
from servewise.report.terminal.fitting import fitted


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Always."""
        return True


def printed(name: str, out: io.StringIO) -> str:
    """What ``name`` prints to ``out``."""
    print_answer(answer(name), terminal_console(out))
    return out.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_conditions_first_and_cures_last(name: str) -> None:
    """The first words are the conditions, the last the cure of the last caveat, where there is one."""
    lines = printed(name, io.StringIO()).splitlines()
    found = answer(name)
    first = (found.conditions.model or found.conditions.load).split(",")[0]

    assert " ".join(" ".join(lines).split()).startswith(first)
    if found.caveats:
        last_words = " ".join(line.strip() for line in lines[-3:])
        assert found.caveats[-1].cure.split()[-1].rstrip(".") in last_words


def test_no_colour_in_a_pipe() -> None:
    """A pipe gets no escape sequence."""
    assert "\x1b" not in printed("plan", io.StringIO())


def test_colour_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets colour."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    assert "\x1b[" in printed("plan", Terminal())


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR no colour is set, on a terminal too."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")

    assert "\x1b[3" not in printed("plan", Terminal())


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wider_than_the_terminal(name: str, width: int) -> None:
    """Every line keeps within the width, whatever it is."""
    out = io.StringIO()
    print_answer(answer(name), Console(file=out, width=width, highlight=False))

    assert max(len(line.rstrip()) for line in out.getvalue().splitlines()) <= width


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_figure_is_lost_in_a_narrow_terminal(width: int) -> None:
    """A table too wide is set in parts: each figure of the 80-column table is there in full."""
    out = io.StringIO()
    print_answer(answer("simulate"), Console(file=out, width=width, highlight=False))

    for figure in ("8.14 s", "48.9 ms", "0.495", "810"):
        assert figure in out.getvalue()


def test_markup_in_an_answer_is_text() -> None:
    """Square brackets are printed, not obeyed."""
    found = replace(answer("size"), caveats=(Caveat("x", "[red]careful[/red]", "[link=http://x]here[/link]"),))
    out = io.StringIO()
    print_answer(found, terminal_console(out))

    assert "[red]careful[/red]" in out.getvalue()


def test_a_table_is_cut_between_figures() -> None:
    """Parts repeat the name of the row and keep the columns' order."""
    columns = (Column("Name", str, prose=True), *(Column(f"C{index}", str) for index in range(6)))
    table = Table("T", columns, (("row", *(["123456789"] * 6)),))

    parts = fitted(table, 40)

    assert [part.title for part in parts] == ["T", "", ""][: len(parts)]
    assert all(part.columns[0].heading == "Name" for part in parts)
    assert [column.heading for part in parts for column in part.columns[1:]] == [f"C{index}" for index in range(6)]


def test_a_plan_names_those_that_it_does_not_rank() -> None:
    """At most ten of them, each with who beats it, and how many more there are."""
    row = {"deployment": "1 x T4", "why": "$9 against $1", "dominated_by": {"place": 1, "title": "1 x H100"}}
    plan = answer("plan")
    result = {**plan.result, "not_ranked": [{**row, "deployment": f"{count} x T4"} for count in range(1, 15)]}
    out = io.StringIO()
    print_answer(replace(plan, result=result), terminal_console(out))
    text = out.getvalue()

    assert "10 x T4" in text
    assert "11 x T4" not in text
    assert text.count("#1 ") == 10
    assert "And 4 more" in text
