"""The scheduler: tokens a step, chunks, batches, graphs."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.check.engines.launch import Launch
from servewise.check.engines.settings import Settings, table_of
from servewise.check.finding import Finding, Severity, found
from servewise.check.sizing import Sizing
from servewise.units import format_seconds

LEAST_PREFILL = 128  # tokens a step that should be left to prompts
LONG_STEP_S = 1.0


def scheduling(settings: Settings, sizing: Sizing | None) -> Iterator[Finding]:
    """The mistakes of scheduling in one launch."""
    if settings.launch.engine in ("vllm", "trtllm"):
        yield from _budget(settings)
    yield from _chunks(settings, sizing)
    yield from _static(settings)
    eager = settings.given("eager")
    if eager is not None and eager.value is not False:
        served = settings.launch.site.kind in ("kubernetes", "compose")
        yield found("eager-mode", eager.at, severity="warning" if served else "note")


def _budget(settings: Settings) -> Iterator[Finding]:
    option, batched = settings.given("batched"), settings.whole("batched")
    sequences, context = settings.whole("sequences"), settings.whole("context")
    if option is None or batched is None or batched < 0:
        return
    if sequences and batched < sequences:
        why = f"{batched:,} tokens a step for {sequences:,} sequences of one token each."
        severity: Severity = "error" if settings.launch.engine == "vllm" else "warning"
        yield found("batched-below-sequences", option.at, why, severity=severity)
    elif settings.given("chunks_off") and context and batched < context:
        why = f"{batched:,} tokens a step, prompts of up to {context:,} that may not be split."
        yield found("batched-below-context", option.at, why)
    elif sequences and batched - sequences < LEAST_PREFILL:
        left = batched - sequences
        steps = f": a prompt of {context:,} takes {-(-context // max(left, 1)):,} steps" if context else ""
        why = (
            f"With {sequences:,} sequences decoding {left:,} of {batched:,} tokens a step are left for prompts{steps}."
        )
        yield found("prefill-starved", option.at, why, prefill_tokens=left)


def _chunks(settings: Settings, sizing: Sizing | None) -> Iterator[Finding]:
    off, option, batched = settings.given("chunks_off"), settings.given("batched"), settings.whole("batched")
    whole = settings.launch.engine == "sglang" and batched == -1
    if off is None and not whole:
        if option is not None and batched and batched > 0 and sizing is not None:
            yield from _long_chunk(settings, sizing, batched)
        return
    place = off.at if off is not None else option.at if option is not None else settings.launch.place
    longest = settings.whole("context") or (sizing.context_tokens if sizing else None)
    took = f" One of {longest:,} tokens takes {format_seconds(sizing.chunk_s(longest))}." if sizing and longest else ""
    yield found("prefill-not-chunked", place, "One long prompt freezes every stream for its whole prefill." + took)


def _long_chunk(settings: Settings, sizing: Sizing, batched: int) -> Iterator[Finding]:
    option = settings.given("batched")
    tokens = min(batched, sizing.context_tokens or batched)
    step_s = sizing.chunk_s(tokens) if option is not None else 0.0
    if option is not None and step_s > LONG_STEP_S:
        why = f"A step with {tokens:,} prompt tokens takes {format_seconds(step_s)} on {sizing.accelerator.title}."
        yield found("decode-frozen", option.at, why, step_s=step_s, chunk_tokens=tokens)


def _static(settings: Settings) -> Iterator[Finding]:
    off = settings.given("static")
    if off is not None:
        yield found("static-batching", off.at)
    kind = _batching_type(settings.launch)
    if kind is not None:
        yield kind


def _batching_type(launch: Launch) -> Finding | None:
    option = launch.option("--batching-type") or launch.option("--scheduler-config")
    if option is None:
        return None
    value = table_of(option.value).get("batching_type", option.value)
    static = str(value).upper() in ("STATIC", "V1", "BATCHINGTYPE.STATIC")
    return found("static-batching", option.at) if static else None
