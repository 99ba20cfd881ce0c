"""The page that says what each outcome means."""

from __future__ import annotations

import re
from pathlib import Path

from servewise.measure.outcome import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "measure-a-server.md"


def test_every_outcome_is_explained() -> None:
    """Its table has exactly the outcomes that a request can have."""
    table = PAGE.read_text().partition("| outcome |")[2].partition("\n\n")[0]
    names = [name for line in table.splitlines()[2:] for name in re.findall(r"`([a-z-]+)`", line.split("|")[1])]

    assert sorted(names) == sorted(Outcome)
