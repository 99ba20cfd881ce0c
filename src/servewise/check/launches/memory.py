"""Device memory: what fits, what is left for the cache, what the log says of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from servewise.check.engines.settings import Settings, number_of
from servewise.check.finding import Finding, Place, Severity, found
from servewise.check.sizing import Sizing
from servewise.deployment.capacity import DoesNotFit, KvCapacity
from servewise.units import GB, GIB, format_bytes

HIGH_SHARE, LOW_SHARE = 0.98, 0.5
SMALL_SLOT = 1024
PCIE_BYTES_PER_S = 25e9  # one direction of PCIe 4.0 x16 as copies reach it
TYPICAL_SHARE = 4  # requests are taken to be a quarter of the longest context on average


def memory(settings: Settings, sizing: Sizing | None) -> Iterator[Finding]:
    """The mistakes of memory in one launch."""
    yield from _share(settings, sizing)
    yield from _slots(settings)
    yield from _offload(settings)
    if sizing is not None:
        yield from _fits(settings, sizing)


def _share(settings: Settings, sizing: Sizing | None) -> Iterator[Finding]:
    option, share = settings.given("utilization"), settings.number("utilization")
    if option is None or share is None:
        return
    if not 0 < share <= 1:
        yield found(
            "bad-value", option.at, f"{option.written} {share:g} is no share of the memory, 0 to 1.", value=share
        )
    elif share >= HIGH_SHARE:
        left = "" if sizing is None else f", {format_bytes((1 - share) * sizing.accelerator.memory_bytes)}"
        why = f"{share:.0%} of the memory is planned: {1 - share:.0%}{left} is left for what is not planned for."
        yield found("memory-share-too-high", option.at, why, share=share)
    elif share < LOW_SHARE and settings.launch.engine != "trtllm":
        idle = "" if sizing is None else f" ({format_bytes((1 - share) * sizing.accelerator.memory_bytes)})"
        why = f"{1 - share:.0%} of each accelerator{idle} is neither weights nor cache."
        yield found("memory-share-too-low", option.at, why, share=share)


def _slots(settings: Settings) -> Iterator[Finding]:
    option, context, slots = settings.given("context"), settings.whole("context"), settings.whole("sequences")
    if settings.launch.engine != "llamacpp" or option is None or not context or not slots or slots < 2:
        return
    if settings.launch.option("--kv-unified") or context / slots >= SMALL_SLOT:
        return
    each = context // slots
    why = (
        f"{context:,} tokens over {slots} slots are {each:,} each: longer prompts with their answers are "
        f"refused or cut."
    )
    yield found("context-split-over-slots", option.at, why, context_tokens=context, slots=slots, slot_tokens=each)


def _offload(settings: Settings) -> Iterator[Finding]:
    option = settings.given("offload")
    gigabytes = number_of(option.value) if option is not None else None
    if option is None or not gigabytes or gigabytes <= 0:
        return
    step_s = gigabytes * GIB / PCIE_BYTES_PER_S
    why = (
        f"{gigabytes:g} GiB cross the bus at each step: at {PCIE_BYTES_PER_S / GB:g} GB/s that alone is "
        f"{step_s:.2g} s a token, however few are asked for."
    )
    severity: Severity = "warning" if step_s > 0.5 else "note"
    yield found("weights-on-host", option.at, why, severity=severity, step_s=step_s)


def _fits(settings: Settings, sizing: Sizing) -> Iterator[Finding]:
    capacity, place = sizing.capacity, _at(settings)
    where = f"{sizing.model.name} on {sizing.accelerator.title}, {sizing.deployment.parallelism}"
    if isinstance(capacity, DoesNotFit):
        short = format_bytes(capacity.short_by_bytes)
        why = f"{where}: {short} a rank are missing ({format_bytes(capacity.weight_bytes)} of weights on each)."
        yield found("weights-do-not-fit", place, why, short_by_bytes=capacity.short_by_bytes)
        return
    context = sizing.context_tokens
    if context and settings.launch.engine != "llamacpp":
        yield from _room(settings, sizing, capacity, context, where)
    yield from _unneeded_bits(settings, sizing, context)


def _room(settings: Settings, sizing: Sizing, capacity: KvCapacity, context: int, where: str) -> Iterator[Finding]:
    held, tokens = sizing.sequences_of(context), capacity.kv_tokens
    figures: dict[str, Any] = {"kv_tokens": tokens, "context_tokens": context, "sequences_held": held}
    option = settings.given("context")
    if held < 1:
        why = f"{where}: the pool holds {tokens:,} tokens, one sequence of {context:,} needs more."
        severity: Severity = "error" if settings.launch.engine == "vllm" else "warning"
        place = option.at if option else _at(settings)
        cure = f"A longest context of at most {tokens:,} tokens, an fp8 KV cache (measured), or more accelerators."
        yield found("context-does-not-fit", place, why, cure=cure, severity=severity, **figures)
        return
    wanted, stated = settings.at_once, settings.given("sequences")
    if not wanted or stated is None or option is None or wanted <= held:
        return
    short = sizing.sequences_of(max(1, context // TYPICAL_SHARE)) < wanted
    why = (
        f"{where}: {wanted} sequences of {context:,} tokens need {wanted * context:,} KV tokens, the pool holds "
        f"{tokens:,}: {held} such at once" + (", and too few even at a quarter of that length." if short else ".")
    )
    severity = "warning" if short else "note"
    yield found("kv-not-counted", stated.at, why, severity=severity, sequences=wanted, **figures)


def _unneeded_bits(settings: Settings, sizing: Sizing, context: int | None) -> Iterator[Finding]:
    option, wanted = settings.given("quantization"), settings.at_once
    if option is None or not wanted or not context or sizing.deployment.weights is None:
        return
    plain = sizing.unquantised
    if isinstance(plain, KvCapacity) and plain.kv_tokens >= wanted * context:
        why = (
            f"As stored it leaves {plain.kv_tokens:,} KV tokens, {wanted} sequences of {context:,} need "
            f"{wanted * context:,}."
        )
        yield found("quantisation-not-needed", option.at, why, kv_tokens=plain.kv_tokens)


def _at(settings: Settings) -> Place:
    return settings.launch.place
