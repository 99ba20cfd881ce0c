"""The end of a server's log, fit to be shown."""

from __future__ import annotations

from pathlib import Path

TAIL_BYTES = 16_384


def last_lines(path: Path, count: int = 5, width: int = 240) -> list[str]:
    """The last ``count`` lines that hold anything, without control characters, each cut to ``width``."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    lines = ("".join(each if each.isprintable() else " " for each in line).strip() for line in text.splitlines())
    return [line[:width] for line in lines if line][-count:]
