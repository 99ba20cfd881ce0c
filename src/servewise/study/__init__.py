"""The study's tables again, from the product's own rooms."""

from __future__ import annotations

from servewise.study.row import StudyRow, StudySummary, StudyTable
from servewise.study.tables import summary, tables

__all__ = ["StudyRow", "StudySummary", "StudyTable", "summary", "tables"]
