"""The study's tables again, from the product's own rooms."""

from __future__ import annotations

from servewise.study.every_table import summary, tables
from servewise.study.figure import StudyFigure, figures
from servewise.study.row import StudyRow, StudySummary, StudyTable

__all__ = ["StudyFigure", "StudyRow", "StudySummary", "StudyTable", "figures", "summary", "tables"]
