"""``servewise study``."""

from __future__ import annotations

import click

from servewise.cli.options import executor_options
from servewise.cli.progress import progress_bar
from servewise.cli.showing import Show, answering
from servewise.executing.executor import Executor


@click.command("study")
@click.option("--check", is_flag=True, help="Exit with 1 when a figure disagrees.")
@executor_options
@answering
def command(show: Show, *, check: bool, executor: Executor) -> int:
    """The study's tables again, side by side with its figures, with a verdict a row."""
    from servewise.ask.study import study

    with progress_bar("the study's tables") as progress:
        answer = study(executor=executor, progress=progress)
    show(answer)
    return 1 if check and not answer.result["all_agree"] else 0
