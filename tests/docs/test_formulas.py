"""Every formula page keeps what a reader needs to check it: symbols, source, what is left out, a worked problem."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.site.examples import DOCS

PAGES = sorted((DOCS / "formulas").glob("*.md"))
NEEDS = {
    "symbols with units": ("glossary.md",),
    "a source": ("Source", "source"),
    "what it leaves out": ("Left out", "left out", "leaves out"),
    "a worked problem": ("**Problem.**",),
    "its answer, run": ("```pycon",),
}


@pytest.mark.parametrize("need", NEEDS)
@pytest.mark.parametrize("page", [pytest.param(each, id=each.stem) for each in PAGES])
def test_a_formula_page_has_what_it_takes_to_check_it(page: Path, need: str) -> None:
    """The page says it in words of its own, one of those that readers look for."""
    text = page.read_text()

    assert any(word in text for word in NEEDS[need]), f"{page.name} lacks {need}"


def test_the_index_names_every_page() -> None:
    """No formula page is found by chance only."""
    index = (DOCS / "formulas.md").read_text()

    assert [page.name for page in PAGES if f"formulas/{page.name}" not in index] == []
