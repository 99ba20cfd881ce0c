"""All findings of one text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from servewise.check.engines.launch import Launch
from servewise.check.finding import Finding, ordered
from servewise.check.launches.every import check_launch
from servewise.check.launches.operation import tokens_in
from servewise.check.prompts.every import check_prompts
from servewise.check.reading.detect import Content, read
from servewise.check.reports.claims import check_claims
from servewise.check.reports.logs import check_log
from servewise.check.reports.remedies import check_remedies
from servewise.check.reports.results import check_results
from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.spec import ModelSpec

ModelOf = Callable[[Launch], ModelSpec | None]


@dataclass(frozen=True, slots=True)
class Checked:
    """What the text held, and what is wrong in it, the worst first."""

    content: Content
    findings: tuple[Finding, ...]


def check_text(
    text: str, *, model_of: ModelOf | None = None, accelerator: Accelerator | None = None, engine: str | None = None
) -> Checked:
    """The findings in ``text``; ``model_of`` knows the model of a launch, if anyone does."""
    content = read(text, engine)
    findings = [*tokens_in(text)] if not content.prompts else []
    for launch in content.launches:
        findings += check_launch(launch, model_of(launch) if model_of else None, accelerator)
    findings += check_prompts(content.prompts)
    findings += check_results(content.documents)
    if "text" in content.kinds:
        findings += [*check_claims(text), *check_remedies(text), *check_log(text)]
    return Checked(content, ordered(findings))
