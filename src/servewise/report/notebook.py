"""An answer in a notebook: a fragment that carries its own style, charts inline, nothing loaded and no script."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.html import file_text, template
from servewise.report.markdown import render_markdown
from servewise.report.sections import sections_of, title_of


def fragment(answer: Answer) -> str:
    """``answer`` as HTML within a page: all rules of its style begin with ``.servewise``, no element has a name."""
    from markupsafe import Markup

    from servewise.report.page import page_of

    page = page_of(sections_of(answer), title=title_of(answer))
    return template("notebook.html.j2").render(page=page, style=Markup(file_text("notebook.css")))


def markdown(answer: Answer) -> str:
    """``answer`` as Markdown."""
    return render_markdown(answer)
