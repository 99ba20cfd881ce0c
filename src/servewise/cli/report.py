"""``servewise report``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from servewise.answer import Answer
from servewise.cli.showing import checked_target, write_whole


@click.command("report")
@click.argument("sources", nargs=-1, required=True, metavar="RUN_OR_PLAN...")
@click.option("--output", "-o", required=True, metavar="FILE", help="The report: .html, or .md for Markdown.")
@click.option("--title", default="servewise report", show_default=True)
def command(sources: tuple[str, ...], output: str, title: str) -> None:
    """Draw answers (JSON documents of any command) and run directories in one self-contained file."""
    target = checked_target(output)
    answers = list(_read(sources))
    if target.suffix.lower() == ".md":
        from servewise.report.markdown import render_markdown

        write_whole(target, render_markdown(answers))
    else:
        from servewise.report.html import render_html

        write_whole(target, render_html(answers, title=title))
    click.echo(f"wrote {target}", err=True)


def _read(sources: Iterable[str]) -> Iterable[Answer]:
    from servewise.ask.run import run_answer
    from servewise.report.document import load_answer

    for source in sources:
        yield run_answer(source) if Path(source).is_dir() else load_answer(source)
