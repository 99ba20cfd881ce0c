"""Number formats: how many bits a stored value takes and which arithmetic unit computes with it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from servewise.errors import InputError, UnknownName


@dataclass(frozen=True, slots=True)
class Precision:
    """A storage format.

    ``bits`` are the effective bits a value takes, scales included (mxfp4: 4 + 8/32 = 4.25). ``compute`` is the
    peak that applies when both operands are in this format; a format without an arithmetic unit of its own
    (weight-only int4 and below) is expanded and computed in bf16.
    """

    name: str
    bits: float
    compute: str

    def bytes_for(self, values: float) -> float:
        """Bytes that ``values`` values take."""
        return values * self.bits / 8

    def __str__(self) -> str:
        """The name, with the bits where they are not the format's own."""
        known = FORMATS.get(self.name)
        return self.name if known and known.bits == self.bits else f"{self.name}:{self.bits:g}"


# Effective bits: OCP MX v1.0 (2023-09) for mxfp4/mxfp8 (one 8-bit scale per 32 values); NVIDIA NVFP4 (2025-06):
# one 8-bit scale per 16 values. int8..int2 are the bare bits, as in the study; give NAME:BITS to add scales.
FORMATS: dict[str, Precision] = {
    each.name: each
    for each in (
        Precision("fp64", 64, "fp64"),
        Precision("fp32", 32, "fp32"),
        Precision("tf32", 32, "tf32"),
        Precision("bf16", 16, "bf16"),
        Precision("fp16", 16, "fp16"),
        Precision("fp8", 8, "fp8"),
        Precision("mxfp8", 8.25, "fp8"),
        Precision("int8", 8, "int8"),
        Precision("fp6", 6, "fp6"),
        Precision("int6", 6, "bf16"),
        Precision("int5", 5, "bf16"),
        Precision("int4", 4, "bf16"),
        Precision("int3", 3, "bf16"),
        Precision("int2", 2, "bf16"),
        Precision("nvfp4", 4.5, "fp4"),
        Precision("mxfp4", 4.25, "fp4"),
    )
}
ALIASES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8",
    "fp4": "nvfp4",
}


def parse_precision(text: str, *, where: str = "precision") -> Precision:
    """The precision called ``NAME`` or ``NAME:BITS`` (effective bits, scales included).

    Raises UnknownName for a format that is not known, InputError for bits outside 1 to 64.

    >>> parse_precision("int4:4.5").bytes_for(16)
    9.0
    """
    name, colon, bits_text = text.strip().lower().partition(":")
    found = FORMATS.get(ALIASES.get(name, name))
    if found is None:
        raise UnknownName("precision", name, FORMATS, where=where, hint=f"one of {', '.join(FORMATS)}")
    return Precision(found.name, _bits(bits_text, text, where), found.compute) if colon else found


def _bits(text: str, whole: str, where: str) -> float:
    try:
        bits = float(text)
    except ValueError:
        bits = math.nan
    if not 1 <= bits <= 64:
        raise InputError(f"bits of {whole!r} must be a number from 1 to 64", where=where, hint="e.g. int4:4.5")
    return bits
