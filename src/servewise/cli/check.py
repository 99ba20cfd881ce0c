"""``servewise check``."""

from __future__ import annotations

import sys
from typing import Any

import click

from servewise.cli.showing import Show, answering


@click.command("check")
@click.argument("file")
@click.option("--accelerator", metavar="A", help="What it runs on: then memory and step times are computed too.")
@click.option("--model", metavar="M", help="The model launched, where its name does not tell: name or config.json.")
@click.option("--engine", metavar="E", help="Of a config whose keys do not tell: vllm, sglang, trtllm, llamacpp.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note"]),
    help="Exit 1 where there is such a finding or a worse.",
)
@answering
def command(show: Show, *, file: str, fail_on: Any, **options: Any) -> int:
    """Which common mistakes does FILE make?

    FILE ("-": standard input) is an engine's command line or config, a script, compose file or Kubernetes manifest that
    holds one, a benchmark's result, a report with figures, an engine's log, or a log of prompts (JSONL).
    """
    from servewise.ask.check import check, fails

    given = None if file != "-" else sys.stdin.buffer.read().decode("utf-8-sig", errors="replace")
    answer = check(file, text=given, **options)
    show(answer)
    return 1 if fail_on and fails(answer, fail_on) else 0
