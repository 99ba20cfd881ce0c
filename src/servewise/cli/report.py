"""``servewise report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from servewise.answer import Answer
from servewise.cli.asked import asked
from servewise.cli.showing import checked_target, show, write_whole
from servewise.errors import InputError

BENCH = "bench.json"  # the answer that bench keeps beside its runs


@click.command("report")
@click.argument("sources", nargs=-1, required=True, metavar="RUN_OR_PLAN...")
@click.option("--output", "-o", metavar="FILE", help="The report: .html, or .md for Markdown.")
@click.option("--title", default="servewise report", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="All of it as one JSON document on stdout.")
def command(sources: tuple[str, ...], output: str | None, title: str, as_json: bool) -> None:
    """Draw answers and runs in one self-contained file; several runs also side by side, two of them compared.

    A source is an answer (the JSON document of any command), a run directory or a folder of them, or a result file of
    another client: vLLM bench serve, GuideLLM, AIPerf, llama-benchy.
    """
    program = asked()
    target = None if program or (as_json and not output) else _target(output)
    answers = _sections({source: _read(source) for source in sources})
    if program is not None:
        program.take(_whole(answers))
        return
    if target is not None:
        write_whole(target, _drawn(target, answers, title))
    if as_json:
        show(_whole(answers), as_json=True, target=None)
    if target is not None:
        click.echo(f"wrote {target}", err=True)


def _target(output: str | None) -> Path:
    if output is None:
        raise InputError("where should the report go?", where="output", hint="give --output FILE, or --json")
    target = checked_target(output)
    if target.suffix.lower() not in (".html", ".htm", ".md"):
        raise InputError("a report is HTML or Markdown", where=output, hint="name it .html or .md")
    return target


def _drawn(target: Path, answers: Sequence[Answer] | Mapping[str, Answer], title: str) -> str:
    if target.suffix.lower() == ".md":
        from servewise.report.markdown import render_markdown

        return render_markdown(answers)
    from servewise.report.html import render_html

    return render_html(answers, title=title)


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


def _whole(answers: Sequence[Answer] | Mapping[str, Answer]) -> Answer:
    """One document: the answer itself where there is one, else all of them as its sections."""
    from servewise.ask.differing import side_by_side as all_conditions
    from servewise.report.sections import sections_of

    sections = sections_of(answers)
    if len(sections) == 1:
        return sections[0].answer
    conditions = all_conditions({each.title: each.answer.conditions for each in sections})
    return Answer("report", conditions, {"sections": {each.title: each.answer.to_json() for each in sections}})


def _names(sources: Sequence[str]) -> list[str]:
    """The sources' last names, or the sources themselves where those are the same."""
    short = [Path(source).stem or source for source in sources]
    return short if len(set(short)) == len(short) else list(sources)
