"""Colours that people with colour-blindness tell apart, dark enough for text on white (contrast above 4.5).

In the SVG each is ``var(--name, #hex)``: a page may restyle it for a dark screen, an SVG alone keeps the hex.
"""

from __future__ import annotations

INK = "#1b2028"
MUTED = "#5a6472"
GRID = "#d9dee5"
PAPER = "#fefefe"
SERIES = ("#0b62a8", "#b8480b", "#00735a", "#8a3f86", "#806000", "#47566b", "#a3324b")
GOOD, BAD = "#00735a", "#a3324b"
LINES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)), "-", (0, (6, 2)), (0, (2, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PAPER: "paper",
    **{colour: f"c{index}" for index, colour in enumerate(SERIES, start=1)},
}


def colour(index: int) -> str:
    """The colour of series ``index``; they repeat after the last."""
    return SERIES[index % len(SERIES)]


def line(index: int) -> object:
    """The dash pattern of series ``index``."""
    return LINES[index % len(LINES)]


def marker(index: int) -> str:
    """The marker of series ``index``."""
    return MARKERS[index % len(MARKERS)]
