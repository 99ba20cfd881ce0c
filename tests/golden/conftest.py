"""``pytest tests/golden --update-golden`` writes the expected files anew; look at their diff before committing it."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

EXPECTED = Path(__file__).parent / "expected"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The flag that writes instead of comparing."""
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: ``text`` must be what the file ``name`` under ``expected`` holds."""
    update = request.config.getoption("--update-golden", default=False)

    def check(name: str, text: str) -> None:
        path = EXPECTED / name
        if update:
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{name} is not there: run pytest tests/golden --update-golden"
        expected = path.read_text(encoding="utf-8")
        changes = difflib.unified_diff(expected.splitlines(), text.splitlines(), name, "now", lineterm="")
        assert text == expected, "\n".join(changes)

    return check
