"""A figure: a chart that cannot leave without its conditions, nor without its numbers as a table."""

from __future__ import annotations

import html
from dataclasses import dataclass

from servewise.conditions import Conditions
from servewise.report.captions import caption
from servewise.report.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """``svg`` is the chart, ``conditions`` go into its caption, ``table`` holds the same numbers as text."""

    title: str
    svg: str
    conditions: Conditions
    table: Table
    note: str = ""

    @property
    def labelled(self) -> str:
        """The chart with its conditions in its description, so that it can stand alone."""
        said = html.escape(f" {caption(self.conditions)}.")
        return self.svg.replace("</desc>", f"{said}</desc>", 1)
