"""Rotary positions as a checkpoint states them: plain, or stretched the way Llama 3.1 is; anything else is refused."""

from __future__ import annotations

import math

import numpy as np

from servewise.engine.config import RopeConfig
from servewise.errors import InputError
from servewise.modelspec.fields import Fields

PLAIN = ("default", "none", "")
KNOWN_STRETCHES = "plain and llama3 are computed"
# Low and high frequency factor and original context of every published Llama 3.1, 3.2 and 3.3 checkpoint; only the
# stretch itself differs (8, or 32 in 3.2). Source: their config.json on the hub, 2026-11.
LLAMA3_BAND = (1.0, 4.0, 8192)


def rope_of_config(fields: Fields, dimensions: int) -> RopeConfig:
    """The rotary positions of a Hugging Face config, old layout (rope_theta, rope_scaling) or new (rope_parameters)."""
    part = fields.part("rope_parameters") or fields.part("rope_scaling")
    theta = positive(part, "rope_theta") if part is not None and part.has("rope_theta") else None
    theta = theta or positive(fields, "rope_theta", 10_000.0)
    for holder in (part, fields):
        share = positive(holder, "partial_rotary_factor", 1.0) if holder is not None else 1.0
        if share != 1.0:
            raise InputError(f"rotates only {share:g} of each head, which no family read here does", where=fields.where)
    kind = part.text("rope_type", "type", default="default") if part is not None else "default"
    if part is None or kind in PLAIN or (kind == "linear" and positive(part, "factor", 1.0) == 1.0):
        return RopeConfig(theta=theta, dimensions=dimensions)
    if kind != "llama3":
        raise InputError(f"rope scaling {kind[:40]!r} is not computed", where=part.where, hint=KNOWN_STRETCHES)
    rope = RopeConfig(
        theta=theta,
        dimensions=dimensions,
        factor=positive(part, "factor"),
        low_frequency_factor=positive(part, "low_freq_factor"),
        high_frequency_factor=positive(part, "high_freq_factor"),
        original_context_tokens=_original_context(part, fields),
    )
    part.check()
    if rope.high_frequency_factor <= rope.low_frequency_factor or rope.factor < 1:
        what = "needs factor >= 1 and high_freq_factor > low_freq_factor"
        raise InputError(f"rope scaling llama3 {what}", where=part.where)
    return rope


def _original_context(part: Fields, fields: Fields) -> int:
    name = "original_max_position_embeddings"
    return part.count(name) if part.has(name) or not fields.has(name) else fields.count(name)


def positive(fields: Fields, name: str, default: float | None = None) -> float:
    """A finite number above zero; ``default`` where the field is missing, which is noted where there is none."""
    value = fields.get(name)
    if value is None:
        if default is None:
            fields.missing(name)
        return 1.0 if default is None else default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e30:
        raise fields.wrong(name, value, "a number above zero")
    return float(value)


def stretches(rope: RopeConfig) -> np.ndarray:
    """By how much each of the ``dimensions / 2`` wavelengths is stretched, float32: GGUF's ``rope_freqs.weight``.

    Frequencies whose wavelength is under ``original_context / high`` stay, those over ``original_context / low`` are
    divided by ``factor``, between them the inverse of the stretch is interpolated. Source: Llama 3.1's reference code
    (apply_scaling, 2024-07), as transformers' ``rope_type: llama3`` and llama.cpp's converter have it.
    """
    wavelengths = 2 * math.pi * rope.theta ** (np.arange(0, rope.dimensions, 2, dtype=np.float64) / rope.dimensions)
    low, high = rope.low_frequency_factor, rope.high_frequency_factor
    smooth = (rope.original_context_tokens / wavelengths - low) / (high - low)
    return (1 / (np.clip(smooth, 0, 1) * (1 - 1 / rope.factor) + 1 / rope.factor)).astype(np.float32)


def rope_of_stretches(given: np.ndarray, theta: float, dimensions: int, where: str) -> RopeConfig:
    """The rotary positions whose stretches are ``given``; refused where they are not Llama 3.1's kind."""
    low, high, original = LLAMA3_BAND
    finite = given.shape == (dimensions // 2,) and bool(np.isfinite(given).all()) and bool((given >= 1).all())
    rope = RopeConfig(
        theta=theta,
        dimensions=dimensions,
        factor=float(given.max()) if finite and given.size else 1.0,
        low_frequency_factor=low,
        high_frequency_factor=high,
        original_context_tokens=original,
    )
    if not finite or not np.allclose(stretches(rope), given, rtol=1e-4):
        what = "rope_freqs.weight stretches the rotary positions in a way that is not Llama 3.1's"
        raise InputError(what, where=where, hint=KNOWN_STRETCHES)
    return rope
