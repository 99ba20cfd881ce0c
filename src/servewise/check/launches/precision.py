"""Bits: of weights, of the cache, and what the hardware makes of them."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.check.engines.settings import Settings
from servewise.check.finding import Finding, found
from servewise.check.sizing import Sizing

FOUR_BITS = ("fp4", "nvfp4", "q4", "iq4", "int4")
EIGHT_BITS = ("fp8", "q8", "q5", "int8", "mxfp8")
NOT_QUANTISED = ("auto", "none", "", "bfloat16", "bf16", "float16", "f16", "f32", "fp16")


def precision(settings: Settings, sizing: Sizing | None) -> Iterator[Finding]:
    """The mistakes of precision in one launch."""
    yield from _cache(settings)
    yield from _weights(settings, sizing)
    dtype = settings.given("dtype")
    if dtype is not None and settings.words("dtype") in ("float32", "float", "fp32"):
        yield found("wide-floats", dtype.at)


def _cache(settings: Settings) -> Iterator[Finding]:
    for name in ("kv", "kv_values"):
        option, words = settings.given(name), settings.words(name)
        if option is None or words in NOT_QUANTISED:
            continue
        if words.startswith(FOUR_BITS):
            yield found(
                "kv-four-bits",
                option.at,
                f"{option.written} {words}: keys hold outliers by channel, 4 bits lose far more than 8.",
            )
        elif words.startswith(EIGHT_BITS) and not _calibrated(settings):
            yield found(
                "kv-precision-unmeasured", option.at, f"{option.written} {words}, no scales and no evaluation in sight."
            )
    if settings.launch.engine == "llamacpp":
        yield from _values_need_flash(settings)


def _calibrated(settings: Settings) -> bool:
    launch = settings.launch
    return launch.option("--calculate-kv-scales", "--quantization-param-path") is not None


def _values_need_flash(settings: Settings) -> Iterator[Finding]:
    values, flash = settings.given("kv_values"), settings.launch.option("--flash-attn")
    quantised = values is not None and settings.words("kv_values") not in NOT_QUANTISED
    if values is not None and quantised and flash is not None and str(flash.value).lower() == "off":
        why = "A quantised V cache needs flash attention, which is switched off."
        yield found("contradictory-options", values.at, why, severity="error")


def _weights(settings: Settings, sizing: Sizing | None) -> Iterator[Finding]:
    option, words = settings.given("quantization"), settings.words("quantization")
    if option is None or words in NOT_QUANTISED or option.value is None:
        return
    yield found(
        "quantisation-unmeasured", option.at, f"{option.written} {words}: what it costs in quality is not stated."
    )
    if sizing is None or "fp8" not in words or "fp8" in sizing.accelerator.peaks:
        return
    why = f"{sizing.accelerator.title} has no fp8 units: weights take half the bytes, products run in 16 bits."
    yield found("precision-not-in-hardware", option.at, why)
