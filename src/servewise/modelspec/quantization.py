"""How a checkpoint stores its weights: ``quantization_config`` of a config.json, or a dtype."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servewise.errors import InputError
from servewise.modelspec.fields import Fields
from servewise.modelspec.modules import excluded_parts, part_of
from servewise.modelspec.spec import WeightPart
from servewise.precision import FORMATS, Precision, parse_precision

MOST_NAME_LENGTH = 40
LAYER_PARTS = frozenset({WeightPart.ATTENTION, WeightPart.FEED_FORWARD, WeightPart.EXPERTS})


@dataclass(frozen=True, slots=True)
class Storage:
    """``weights`` is the format of ``parts``, ``dtype`` that of everything else.

    ``formats`` are the parts' own where a checkpoint mixes several; ``weights`` is then the experts' or the matrices'.
    """

    weights: Precision
    dtype: Precision
    parts: frozenset[WeightPart] = field(default=LAYER_PARTS)
    formats: Mapping[WeightPart, Precision] = field(default_factory=dict)


def read_storage(fields: Fields, outer: Fields) -> Storage:
    """The formats of a checkpoint; ``outer`` is the whole config where ``fields`` are its text part.

    Read are the methods fp8, fbgemm_fp8, gptq, awq, compressed-tensors, mxfp4, modelopt and bitsandbytes. Scales are
    counted in the effective bits where they come to over 0.1%. An unknown method is refused.
    """
    dtype = _dtype(fields, outer)
    settings = outer.part("quantization_config") or fields.part("quantization_config")
    if settings is None:
        return Storage(dtype, dtype)
    method = settings.text("quant_method") or ("modelopt" if settings.has("quant_algo") else "")
    reader = METHODS.get(method)
    if reader is None:
        raise settings.wrong("quant_method", method or None, f"one of {', '.join(METHODS)}")
    if settings.text("quant_algo") == "MIXED_PRECISION":
        return _mixed(settings, dtype)
    weights, parts = reader(settings)
    layers = fields.count("num_hidden_layers", "n_layer", default=1)
    return Storage(weights, dtype, parts - excluded_parts(settings, layers))


def _dtype(fields: Fields, outer: Fields) -> Precision:
    name = next(
        (each.get("dtype", "torch_dtype") for each in (fields, outer) if each.get("dtype", "torch_dtype")), None
    )
    if name is None or name == "auto":
        return FORMATS["bf16"]  # engines load half precision where a config does not say (vLLM dtype=auto)
    if not isinstance(name, str) or len(name) > MOST_NAME_LENGTH:
        raise fields.wrong("torch_dtype", name, "the name of a number format")
    return parse_precision(name.removeprefix("torch."), where=fields.where)


def _fp8(_settings: Fields) -> tuple[Precision, frozenset[WeightPart]]:
    return FORMATS["fp8"], LAYER_PARTS


def _mxfp4(_settings: Fields) -> tuple[Precision, frozenset[WeightPart]]:
    return FORMATS["mxfp4"], frozenset({WeightPart.EXPERTS})


def _grouped_integers(settings: Fields) -> tuple[Precision, frozenset[WeightPart]]:
    """GPTQ and AWQ: one fp16 scale and one zero point a group of ``group_size`` weights."""
    bits = settings.count("bits", "w_bit", most=8)
    settings.check()
    return integers(bits, _group(settings, "group_size", "q_group_size"), zero_bits=bits), LAYER_PARTS


def _group(settings: Fields, *names: str) -> int:
    value = settings.get(*names)
    return 0 if value == -1 else settings.count(*names, default=128)


def integers(bits: int, group: int, *, zero_bits: int = 0, scale_bits: int = 16) -> Precision:
    """``bits``-bit integers with a scale (and a zero point) per ``group`` weights; 0: a group a row, not counted.

    >>> integers(4, 128, zero_bits=4).bits
    4.15625
    """
    known = {2: "int2", 3: "int3", 4: "int4", 5: "int5", 6: "int6", 8: "int8"}
    if bits not in known:
        raise InputError(f"{bits}-bit integer weights are not known", where="quantization_config")
    effective = bits + (scale_bits + zero_bits) / group if group else bits
    return Precision(known[bits], effective, "bf16")


def _bitsandbytes(settings: Fields) -> tuple[Precision, frozenset[WeightPart]]:
    """Dettmers et al. 2023: blocks of 64 with an fp32 scale, or with 8-bit scales and an fp32 one per 256 of them."""
    if not settings.flag("load_in_4bit", "_load_in_4bit", default=False):
        return FORMATS["int8"], LAYER_PARTS
    double = settings.flag("bnb_4bit_use_double_quant", default=False)
    extra = 8 / 64 + 32 / (64 * 256) if double else 32 / 64
    return Precision("int4", 4 + extra, "bf16"), LAYER_PARTS


def _compressed_tensors(settings: Fields) -> tuple[Precision, frozenset[WeightPart]]:
    groups = settings.part("config_groups")
    if groups is None or not groups.values:
        settings.missing("config_groups")
        settings.check()
    formats = {_scheme(scheme) for name in groups.values if (scheme := groups.part(name))} if groups else set()
    if len(formats) != 1:
        raise settings.wrong("config_groups", f"{len(formats)} formats", "of one weight format")
    return formats.pop(), LAYER_PARTS


def _scheme(scheme: Fields) -> Precision:
    weights = scheme.part("weights")
    if weights is None:
        scheme.missing("weights")
        scheme.check()
        weights = scheme
    bits, kind = weights.count("num_bits", most=16), weights.text("type", default="int")
    weights.check()
    group = weights.count("group_size", default=0, least=0) if weights.get("group_size") != -1 else 0
    if kind == "float" and bits == 8:
        return FORMATS["fp8"]
    if kind == "float" and bits == 4:
        return FORMATS["mxfp4" if group == 32 else "nvfp4"]
    if kind != "int":
        raise weights.wrong("type", f"{kind} of {bits} bits", "int, or float of 8 or 4 bits")
    zero = 0 if weights.flag("symmetric", default=True) else bits
    stored = integers(bits, group, zero_bits=zero)
    both = bits == 8 and scheme.has("input_activations")
    return Precision(stored.name, stored.bits, "int8") if both else stored


ALGORITHMS = {"FP8": "fp8", "FP8_PB_WO": "fp8", "FP8_PER_CHANNEL_PER_TOKEN": "fp8", "NVFP4": "nvfp4", "MXFP4": "mxfp4"}


def _mixed(settings: Fields, dtype: Precision) -> Storage:
    """ModelOpt's mixture: ``quantized_layers`` gives each module's algorithm; the others keep ``dtype``."""
    listed = settings.part("quantized_layers")
    if listed is None or not listed.values:
        settings.missing("quantized_layers")
        settings.check()
        listed = settings
    found: dict[WeightPart, list[Precision]] = {}
    for module in listed.values:
        own = listed.part(module)
        if own is not None:
            found.setdefault(part_of(module), []).append(_modelopt(own)[0])
    formats = {part: _mean(each) for part, each in found.items()}
    weights = next((formats[part] for part in BY_SIZE if part in formats), dtype)
    return Storage(weights, dtype, frozenset(formats), formats)


BY_SIZE = (WeightPart.EXPERTS, WeightPart.FEED_FORWARD, WeightPart.ATTENTION, WeightPart.HEAD)


def _mean(formats: list[Precision]) -> Precision:
    """The commonest of the formats, with the mean bits of all."""
    common = max(set(formats), key=formats.count)
    return Precision(common.name, sum(each.bits for each in formats) / len(formats), common.compute)


def _modelopt(settings: Fields) -> tuple[Precision, frozenset[WeightPart]]:
    algorithm = settings.text("quant_algo")
    if algorithm in ("W4A16_AWQ", "INT4_AWQ"):
        return integers(4, _group(settings, "group_size")), LAYER_PARTS
    if algorithm not in ALGORITHMS:
        wanted = f"one of {', '.join(ALGORITHMS)} (a mixture is not one format)"
        raise settings.wrong("quant_algo", algorithm or None, wanted)
    return FORMATS[ALGORITHMS[algorithm]], LAYER_PARTS


METHODS: dict[str, Any] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "gptq": _grouped_integers,
    "awq": _grouped_integers,
    "compressed-tensors": _compressed_tensors,
    "mxfp4": _mxfp4,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "bitsandbytes": _bitsandbytes,
}
