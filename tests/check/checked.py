"""A text's findings, shortly."""

from __future__ import annotations

from servewise.check.engines.launch import Launch
from servewise.check.every import check_text
from servewise.check.finding import Finding
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model


def findings(text: str, *, model: str = "", accelerator: str = "", engine: str | None = None) -> tuple[Finding, ...]:
    """All findings in ``text``; sized where model and accelerator are named."""
    spec = load_model(model) if model else None
    chip = load_accelerator(accelerator) if accelerator else None
    return check_text(text, model_of=lambda _: spec, accelerator=chip, engine=engine).findings


def codes(text: str, *, model: str = "", accelerator: str = "") -> set[str]:
    """Their codes."""
    return {each.code for each in findings(text, model=model, accelerator=accelerator)}


def the(code: str, text: str, *, model: str = "", accelerator: str = "") -> Finding:
    """The one finding of ``code``."""
    found = [each for each in findings(text, model=model, accelerator=accelerator) if each.code == code]
    assert len(found) == 1, [each.code for each in findings(text, model=model, accelerator=accelerator)]
    return found[0]


def launches(text: str) -> tuple[Launch, ...]:
    """The launches in ``text``."""
    return check_text(text).content.launches
