"""Prefix caching, where it is switched off."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.check.engines.settings import Settings
from servewise.check.finding import Finding, found


def prefix(settings: Settings) -> Iterator[Finding]:
    """The mistakes of prefix caching in one launch."""
    off = settings.prefix_off
    if off is not None:
        yield found("prefix-caching-off", off.at)
