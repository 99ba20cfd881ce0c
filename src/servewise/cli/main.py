"""``servewise``: the commands, found when they are called, so that ``--help`` answers at once."""

from __future__ import annotations

import click

from servewise.cli.group import CommandsOnCall
from servewise.version import __version__

COMMANDS = {
    "size": "Does it fit, and how many tokens and sequences does it leave room for?",
    "steptime": "How long does a step take, of what is it made, where is the ridge?",
    "simulate": "How long do requests wait and run under a policy, at which rates?",
    "fleet": "Several replicas behind a router: failures, autoscaling, prefill and decode apart?",
    "speculate": "Does speculative decoding pay, and with how many draft tokens?",
    "prefix": "How much of the prompts is repeated, what breaks the reuse, what does it cost?",
    "plan": "Which deployment keeps the SLO at the least cost, and why the others lose?",
    "check": "Which common mistakes does a config, a report or a prompt log make?",
    "catalogue": "What ships by name: models, accelerators and workloads.",
    "study": "The study's tables again, side by side with its figures.",
    "models": "The models on this machine; fetch one, write one for another server.",
    "serve": "The reference engine on a local model, behind an OpenAI-compatible API.",
    "bench": "What does a server do under load? Measured over its OpenAI-compatible API.",
    "probe": "Facts about a real checkpoint: cache, policies, speculation, quantisation, operations.",
    "calibrate": "What runs tell of a server: coefficients with intervals, as a file for --estimator.",
    "compare": "Is run B better than run A, by how much, how sure is that?",
    "experiment": "A small model on real servers, started, measured and stopped, side by side.",
    "loop": "Measure a server, calibrate, plan, and measure the plan's own point.",
    "report": "Answers drawn: one self-contained HTML file.",
    "app": "The same questions as a page in the browser, on this machine alone.",
    "completion": "The script with which bash, zsh or fish completes names.",
    "demo": "The main job on built-in input; writes servewise-report.html.",
}


@click.group(
    cls=CommandsOnCall,
    commands_by_module={name: (f"servewise.cli.{name}", text) for name, text in COMMANDS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done; 1 a gate that was asked for does not hold; 2 wrong input; 3 a run failed; "
    "130 interrupted.",
)
@click.version_option(__version__, prog_name="servewise")
def servewise() -> None:
    """How to serve a large language model: does it fit, how fast, how many, at what cost.

    Figures are predictions with their conditions, intervals and caveats. Numbers take units: 80GB, 2TB/s, 312T, 50ms.
    """


def main() -> None:
    """The console script."""
    servewise.main(prog_name="servewise")
