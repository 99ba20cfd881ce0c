"""The first line of ``check``: how many findings of each severity."""

from __future__ import annotations

from servewise.answer import Answer
from servewise.report.headlines.headline import Headline
from servewise.report.reading import mapping, number, text
from servewise.report.wording import count

_SEVERITIES = ("error", "warning", "note")


def check(answer: Answer) -> Headline:
    """E.g. ``1 error, 2 warnings in FILE``; bad where there is an error or a warning."""
    counts = mapping(answer.result.get("counts"))
    found = {name: number(counts.get(name)) or 0 for name in _SEVERITIES}
    where = text(answer.result.get("file"), "the file")
    words = ", ".join(f"{count(many)} {name}{'' if many == 1 else 's'}" for name, many in found.items() if many)
    if not words:
        return Headline(f"No common mistake found in {where}.")
    return Headline(f"{words} in {where}.", good=not (found["error"] or found["warning"]))
