"""``servewise demo``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from servewise.cli.options import processes_option
from servewise.cli.progress import progress_bar
from servewise.cli.showing import Show, answering, checked_target, drawn, write_whole

REPORT = "servewise-report.html"


@click.command("demo")
@click.option("--report", default=REPORT, show_default=True, metavar="FILE", help="Where the report goes.")
@processes_option
@answering
def command(show: Show, *, report: str, processes: int) -> None:
    """The main job on built-in input: Llama 2 13B on an 80 GB A100 under a real conversation trace."""
    from servewise.ask.demo import demo

    target = checked_target(report)
    with progress_bar("demo") as progress:
        answer = demo(processes=processes, progress=_without_name(progress))
    write_whole(target, drawn(answer, target, title="servewise demo"))
    show(answer)
    click.echo(f"wrote {Path(report).absolute()}", err=True)


def _without_name(progress: Callable[[int, int], None]) -> Callable[[str, int, int], None]:
    return lambda _, done, total: progress(done, total)
