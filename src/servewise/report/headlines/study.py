"""Headline of ``study``."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.headlines.headline import Headline
from servewise.report.reading import rows


def study(answer: Answer) -> Headline:
    """How many of the study's figures agree."""
    result = answer.result
    verdicts = [row.get("agrees") for table in rows(result, "tables") for row in rows(table, "rows")]
    judged = [each for each in verdicts if isinstance(each, bool)]
    agree = result.get("all_agree") is True
    if not judged and not agree:
        return Headline("")
    left = len(verdicts) - len(judged)
    detail = f"{left} more are shown without a verdict." if left else ""
    return Headline(f"{sum(judged)} of {len(judged)} figures of the study agree.", detail, good=agree)
