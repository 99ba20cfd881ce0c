"""``servewise report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from servewise.cli.asked import asked
from servewise.cli.showing import HTML, beside_option, checked_targets, drawn, refuse_sources, show, write_whole
from servewise.errors import InputError


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
    from servewise.report.gathering import gathered, whole

    program = asked()
    targets = () if program or (as_json and not output) else _targets(output, sources, beside=beside)
    answers = gathered(sources, tell=lambda line: click.echo(f"servewise: {line}", err=True))
    if program is not None:
        program.take(whole(answers))
        return
    for target in targets:
        is_json = target.suffix.lower() == ".json"
        write_whole(target, whole(answers).dumps() + "\n" if is_json else drawn(answers, target, title=title))
    if as_json:
        show(whole(answers), as_json=True)
    if targets:
        click.echo(f"wrote {', '.join(map(str, targets))}", err=True)


def _targets(output: str | None, sources: Sequence[str], *, beside: bool) -> tuple[Path, ...]:
    """Where the report goes; InputError for a name of no kind, and for one of the sources, which it would replace."""
    if output is None:
        raise InputError("a report needs a file", where="output", hint="give --output FILE, or --json")
    targets = checked_targets(output, beside=beside)
    if targets[0].suffix.lower() not in (*HTML, ".md", ".json"):
        raise InputError("a report is HTML, Markdown or JSON", where=output, hint="name it .html, .md or .json")
    refuse_sources(targets, sources)
    return targets
