"""docs/check.md lists every finding by code, as the code has it."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.check_page import PAGE, SUBJECTS, page

from servewise.check.mistakes import MISTAKES

SOURCE = Path(__file__).parents[2] / "src" / "servewise" / "check"


def test_the_page_is_what_the_catalogue_says() -> None:
    """Write it anew with ``python -m benchmarks.check_page``."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_mistake_has_a_subject_and_its_section() -> None:
    """No code is left out of the page."""
    assert {each.subject for each in MISTAKES.values()} == set(SUBJECTS)
    assert set(re.findall(r"^### ([\w-]+)$", page(), re.MULTILINE)) == set(MISTAKES)


def test_every_mistake_of_the_catalogue_is_looked_for() -> None:
    """Each code stands in a rule, and no rule has a code that the catalogue lacks."""
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    used = set(re.findall(r'found\(\s*"([\w-]+)"', text))
    assert used == set(MISTAKES)
