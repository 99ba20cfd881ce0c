"""A pytest plugin: every property and state machine with ``--times`` as many examples as it asks for (``make fuzz``).

The suite draws few examples of much, new ones at each run. What one of them finds should be found here, not by the
next push: after a change of what properties rest on, and before a release.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--times 20``: examples are twenty times as many."""
    parser.addoption("--times", type=int, default=10, help="examples of each property, times what it asks for")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what draws nothing; draw more for the rest."""
    times, seen, kept = config.getoption("--times"), set[int](), []
    for item in items:
        test = _drawing(item)
        if test is None:
            continue
        kept.append(item)
        if id(test) not in seen:  # one function stands for all its parameters
            seen.add(id(test))
            _multiply(test, times)
    config.hook.pytest_deselected(items=[each for each in items if each not in kept])
    items[:] = kept


def _drawing(item: pytest.Item) -> Any:
    """What holds the item's settings: the function that ``given`` made, or a state machine's class; None: neither."""
    test = getattr(item, "obj", None)
    if hasattr(test, "hypothesis"):
        return getattr(test, "__func__", test)
    machine = getattr(item, "cls", None)
    return machine if isinstance(getattr(machine, "settings", None), settings) else None


def _multiply(test: Any, times: int) -> None:
    where = "_hypothesis_internal_use_settings" if hasattr(test, "hypothesis") else "settings"
    asked = getattr(test, where, None) or settings()
    more = settings(
        asked,
        max_examples=asked.max_examples * times,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    setattr(test, where, more)
