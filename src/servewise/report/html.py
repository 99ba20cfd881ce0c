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
    return _template().render(page=page, style=Markup(_text("style.css"))) + "\n"


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


@lru_cache(maxsize=1)
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False, lstrip_blocks=False)
    return environment.from_string(_text("report.html.j2"))


def _text(name: str) -> str:
    return (files("servewise.report") / "templates" / name).read_text(encoding="utf-8")
