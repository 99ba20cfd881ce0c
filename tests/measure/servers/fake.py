"""A launcher of the fake server."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from servewise.measure.servers.launch import Launch

SCRIPT = Path(__file__).with_name("fake_server.py")


@dataclass(frozen=True)
class Fake:
    """The fake server of a habit."""

    habit: str = "good"
    patience_s: float = 30.0
    grace_s: float = 0.3
    first_requests: int = 1

    @property
    def name(self) -> str:
        return "fake"

    def launch(self, port: int) -> Launch:
        return Launch(
            command=(sys.executable, "-I", str(SCRIPT), str(port), self.habit),
            model="m",
            version="1",
            patience_s=self.patience_s,
            grace_s=self.grace_s,
            first_requests=self.first_requests,
        )


def said(log: Path, word: str) -> int:
    """The number after ``word`` in the log."""
    words = log.read_text().split()
    return int(words[words.index(word) + 1])
