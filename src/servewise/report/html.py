"""Answers as one HTML file: charts inline, no network, no script; light and dark, paper and telephone."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from servewise.errors import InputError
from servewise.report.sections import Answers, sections_of

if TYPE_CHECKING:
    from jinja2 import Template


def render_html(answers: Answers, *, title: str, command: str | None = None) -> str:
    """The answers as a whole HTML document; ``command`` is shown as what made it."""
    from markupsafe import Markup

    from servewise.report.page import page_of

    page = page_of(sections_of(answers), title=title, command=command)
    return template("report.html.j2").render(page=page, style=Markup(file_text("style.css"))) + "\n"


def write_html(path: str | Path, answers: Answers, *, title: str, command: str | None = None) -> Path:
    """Write ``render_html`` to ``path``, whole or not at all. Raises InputError where the place cannot be written."""
    target = Path(path)
    content = render_html(answers, title=title, command=command).encode("utf-8", "replace")
    try:
        _write_whole(target, content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot be written ({reason})", where=str(path), hint="give another place") from error
    return target


def _write_whole(target: Path, content: bytes) -> None:
    from servewise.atomic import replace_whole

    target = target.resolve()
    if target.exists() and not target.is_file():  # moving a file over a device would take its place
        raise ValueError("a folder, device or pipe")
    replace_whole(target, content)


@lru_cache(maxsize=4)
def template(name: str) -> Template:
    """The template of that file; everything put in it is escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(file_text))
    return environment.get_template(name)


def file_text(name: str) -> str:
    """A file that lies beside the templates."""
    return (files("servewise.report") / "templates" / name).read_text(encoding="utf-8")
