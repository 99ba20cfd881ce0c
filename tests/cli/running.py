"""The commands run in-process and as real processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from servewise.cli.main import servewise

WORKLOAD = """
requests = 60
[arrivals]
kind = "poisson"
rate_per_s = 1.0
[prompt_tokens]
kind = "lognormal"
median = 200
sigma = 0.5
[output_tokens]
kind = "fixed"
tokens = 40
"""


def invoke(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(servewise, list(arguments))


def process(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as its own process."""
    command = [sys.executable, "-m", "servewise", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False)


def workload(folder: Path) -> str:
    """A small workload file in ``folder``."""
    path = folder / "w.toml"
    path.write_text(WORKLOAD)
    return str(path)
