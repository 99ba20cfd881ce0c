"""HTML of the page and of its parts; what is shown comes ready from the report's room."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from servewise.answer import Answer
from servewise.app.answers import Answers
from servewise.app.exports import csv_parts
from servewise.app.field import Field
from servewise.app.state import State
from servewise.app.suggestions import suggestions
from servewise.app.uploads import REFERENCE, name_of
from servewise.app.views import VIEWS
from servewise.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Mistake:
    """A line to show beside ``field``, or above the answer where it is about none."""

    field: str
    line: str


def whole_page(state: State, answers: Answers, answer_html: str, mistake: Mistake | None = None) -> str:
    """The page of a view: tabs, the form with its values, the answer or the place for it."""
    return _render(
        "page.html.j2",
        state=state,
        view=state.view,
        tabs=[(view, state.link(view)) for view in VIEWS.values()],
        groups=_groups(state.view.fields),
        lists={name: suggestions()[name] for name in sorted({field.suggest for field in state.view.fields} - {""})},
        answer=_markup(answer_html),
        mistake=mistake,
        unknown=state.unknown,
        name_of=name_of,
        runs=answers.uploads.runs,
        version=__version__,
    )


def answer_part(state: State, answers: Answers, answer: Answer) -> str:
    """The answer's part of the page: headline, caveats, charts, tables, conditions, and what to take along."""
    line = state.view.line(state.values, answers.file)
    return _render(
        "answer.html.j2",
        page=answers.page(state.view, state.values, answer),
        view=state.view,
        query=f"?{state.query}" if state.query else "",
        parts=csv_parts(answer),
        command=line.typed(answers.uploads.name),
        files=[(name_of(value), value) for value in line.values if REFERENCE.fullmatch(value)],
    )


def waiting_part(state: State, *, can_run: bool = True) -> str:
    """In the answer's place, before a slow view has run; ``can_run`` False: something must be given first."""
    return _render("waiting.html.j2", view=state.view, can_run=can_run)


def _groups(fields: Iterable[Field]) -> list[tuple[str, list[Field], list[Field]]]:
    """The fields by group, in order of first appearance: those in sight, and those folded away."""
    found: dict[str, tuple[list[Field], list[Field]]] = {}
    for field in fields:
        found.setdefault(field.group, ([], []))[field.more].append(field)
    return [(name, *parts) for name, parts in found.items()]


def _markup(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(lambda name: text_of("templates", name)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _render(name: str, **context: Any) -> str:
    return _environment().get_template(name).render(**context)


def text_of(*place: str) -> str:
    """A file of this room."""
    return files("servewise.app").joinpath(*place).read_text(encoding="utf-8")


@cache
def style() -> str:
    """The page's style sheet: the report's, then its own."""
    report = files("servewise.report").joinpath("templates", "style.css").read_text(encoding="utf-8")
    return f"{report}\n{text_of('static', 'app.css')}"
