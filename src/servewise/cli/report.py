"""``servewise report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from servewise.answer import Answer
from servewise.cli.showing import checked_target, write_whole
from servewise.errors import InputError

BENCH = "bench.json"  # the answer that bench keeps beside its runs


@click.command("report")
@click.argument("sources", nargs=-1, required=True, metavar="RUN_OR_PLAN...")
@click.option("--output", "-o", required=True, metavar="FILE", help="The report: .html, or .md for Markdown.")
@click.option("--title", default="servewise report", show_default=True)
def command(sources: tuple[str, ...], output: str, title: str) -> None:
    """Draw answers and runs in one self-contained file; several runs also side by side, two of them compared.

    A source is an answer (the JSON document of any command), a run directory or a folder of them, or a result file of
    another client: vLLM bench serve, GuideLLM, AIPerf, llama-benchy.
    """
    target = checked_target(output)
    if target.suffix.lower() not in (".html", ".htm", ".md"):
        raise InputError("a report is HTML or Markdown", where=output, hint="name it .html or .md")
    answers = _sections({source: _read(source) for source in sources})
    if target.suffix.lower() == ".md":
        from servewise.report.markdown import render_markdown

        write_whole(target, render_markdown(answers))
    else:
        from servewise.report.html import render_html

        write_whole(target, render_html(answers, title=title))
    click.echo(f"wrote {target}", err=True)


def _read(source: str) -> Answer:
    from servewise.ask.measured import measured_answer, with_detail
    from servewise.ask.run import run_answer
    from servewise.ask.runs import conditions_in
    from servewise.report.document import load_answer

    path = Path(source)
    if (path / BENCH).is_file():
        answer = load_answer(path / BENCH)
        try:
            return with_detail(answer, conditions_in(path))
        except InputError as error:
            click.echo(f"servewise: drawn without its runs: {error}", err=True)
            return answer
    if path.is_dir():
        return run_answer(path)
    try:
        return load_answer(path)
    except InputError as error:
        try:
            return measured_answer(path)
        except InputError:
            raise error from None


def _sections(answers: Mapping[str, Answer]) -> Sequence[Answer] | Mapping[str, Answer]:
    """The answers; before them, where several are of runs, all runs side by side and two of them compared."""
    from servewise.ask.compare import compare
    from servewise.ask.measured import side_by_side

    runs = {source: answer for source, answer in answers.items() if answer.command in ("bench", "simulate")}
    if len(runs) < 2:
        return list(answers.values())
    named = dict(zip(_names(list(runs)), runs.values(), strict=True))
    first: dict[str, Answer] = {"side by side": side_by_side(named)}
    if len(runs) == 2:
        try:
            first = {"compare": compare(*runs)} | first
        except InputError as error:
            click.echo(f"servewise: not compared: {error}", err=True)
    others = {source: answer for source, answer in answers.items() if source not in runs}
    return first | named | others


def _names(sources: Sequence[str]) -> list[str]:
    """The sources' last names, or the sources themselves where those are the same."""
    short = [Path(source).stem or source for source in sources]
    return short if len(set(short)) == len(short) else list(sources)
