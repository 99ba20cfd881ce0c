"""``servewise report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from servewise.answer import Answer
from servewise.cli.asked import asked
from servewise.cli.showing import HTML, beside_option, checked_targets, drawn, show, write_whole
from servewise.errors import InputError

BENCH = "bench.json"  # the answer that bench keeps beside its runs


@click.command("report")
@click.argument("sources", nargs=-1, required=True, metavar="RUN_OR_PLAN...")
@click.option("--output", "-o", metavar="FILE", help="The report: .html, .md for Markdown, or .json.")
@beside_option
@click.option("--title", default="servewise report", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="All of it as one JSON document on stdout.")
def command(sources: tuple[str, ...], output: str | None, beside: bool, title: str, as_json: bool) -> None:
    """Draw answers and runs in one self-contained file; several runs also side by side, two of them compared.

    A source is an answer (the JSON document of any command), a run directory or a folder of them, or a result file of
    another client: vLLM bench serve, GuideLLM, AIPerf, llama-benchy.
    """
    program = asked()
    targets = () if program or (as_json and not output) else _targets(output, sources, beside=beside)
    answers = _sections({source: _read(source) for source in sources})
    if program is not None:
        program.take(_whole(answers))
        return
    for target in targets:
        whole = target.suffix.lower() == ".json"
        write_whole(target, _whole(answers).dumps() + "\n" if whole else drawn(answers, target, title=title))
    if as_json:
        show(_whole(answers), as_json=True)
    if targets:
        click.echo(f"wrote {', '.join(map(str, targets))}", err=True)


def _targets(output: str | None, sources: Sequence[str], *, beside: bool) -> tuple[Path, ...]:
    """Where the report goes; InputError for a name of no kind, and for one of the sources, which it would replace."""
    if output is None:
        raise InputError("a report needs a file", where="output", hint="give --output FILE, or --json")
    targets = checked_targets(output, beside=beside)
    if targets[0].suffix.lower() not in (*HTML, ".md", ".json"):
        raise InputError("a report is HTML, Markdown or JSON", where=output, hint="name it .html, .md or .json")
    taken = {Path(source).resolve() for source in sources}
    for target in targets:
        if target.resolve() in taken:
            raise InputError("is one of the sources", where=str(target), hint="another name for the report")
    return targets


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
