"""From the names that people give to the facts behind them; objects pass through as they are."""

from __future__ import annotations

from dataclasses import replace

from servewise.ask.numbers import positive, whole
from servewise.errors import InputError
from servewise.hardware.accelerator import Accelerator
from servewise.hardware.catalogue import custom_accelerator, load_accelerator
from servewise.modelspec.load import load_model
from servewise.modelspec.spec import AttentionKind, Layers, ModelSpec
from servewise.precision import Precision, parse_precision

ModelLike = str | ModelSpec
AcceleratorLike = str | Accelerator
PrecisionLike = str | Precision

BY_HEAD = (AttentionKind.FULL, AttentionKind.SLIDING, AttentionKind.CHUNKED)  # keep keys and values for each head


def model_named(model: ModelLike) -> ModelSpec:
    """The model of a catalogue name, config.json, folder or GGUF file; a ModelSpec passes through."""
    return load_model(model) if isinstance(model, str) else model


def accelerator_named(
    accelerator: AcceleratorLike | None,
    *,
    peak_flops: float | None = None,
    bandwidth: float | None = None,
    memory: float | None = None,
) -> Accelerator:
    """The accelerator of a catalogue name or TOML file, with the user's own numbers over its own.

    None with all three numbers (``peak_flops`` [FLOP/s], ``bandwidth`` [bytes/s], ``memory`` [bytes]) is a device
    that no catalogue knows. Raises InputError where neither is complete.
    """
    if accelerator is None:
        return _custom(peak_flops, bandwidth, memory)
    known = load_accelerator(accelerator) if isinstance(accelerator, str) else accelerator
    if peak_flops is bandwidth is memory is None:
        return known
    return known.with_overrides(peak_flops=peak_flops, bandwidth=bandwidth, memory=memory)


def _custom(peak_flops: float | None, bandwidth: float | None, memory: float | None) -> Accelerator:
    given = {"peak_flops": peak_flops, "bandwidth": bandwidth, "memory": memory}
    missing = [name for name, value in given.items() if value is None]
    if peak_flops is None or bandwidth is None or memory is None:
        hint = f"name one, or give peak_flops, bandwidth and memory ({', '.join(missing)} missing)"
        raise InputError("no accelerator is given", where="accelerator", hint=hint)
    for name, value in given.items():
        positive(value, name)
    title = f"custom ({peak_flops / 1e12:g} TFLOP/s, {bandwidth / 1e9:g} GB/s, {memory / 1e9:g} GB)"
    return custom_accelerator(peak_flops=peak_flops, bandwidth=bandwidth, memory=memory, title=title)


def precision_named(precision: PrecisionLike | None, where: str) -> Precision | None:
    """The precision called ``NAME`` or ``NAME:BITS``; None stays None."""
    return parse_precision(precision, where=where) if isinstance(precision, str) else precision


def with_kv_heads(model: ModelSpec, kv_heads: int | None) -> ModelSpec:
    """The model as if it kept ``kv_heads`` key-value heads a layer, weights left as they are.

    Raises InputError for a model without key-value heads (MLA, state layers only) and for more heads than queries.
    """
    if kv_heads is None:
        return model
    whole(kv_heads, "kv_heads")
    if not any(each.kind in BY_HEAD for _, each in model.attentions()):
        raise InputError(f"{model.name} keeps no key-value heads", where="kv_heads", hint="leave it out")
    layers = tuple(_with_kv_heads(group, kv_heads) for group in model.layers)
    return replace(model, name=f"{model.name} with {kv_heads} KV heads", layers=layers)


def _with_kv_heads(group: Layers, kv_heads: int) -> Layers:
    attention = group.attention
    if attention.kind not in BY_HEAD:
        return group
    if attention.heads % kv_heads:
        raise InputError(f"must divide the {attention.heads} query heads, not {kv_heads}", where="kv_heads")
    values = attention.kv_values_per_token * kv_heads // attention.kv_heads
    return replace(group, attention=replace(attention, kv_heads=kv_heads, kv_values_per_token=values))
