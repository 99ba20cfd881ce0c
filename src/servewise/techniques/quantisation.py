"""Quantisation in bytes: what a scheme really stores, and the most that decoding can gain from it.

Quality is not in here: it is measured (KL, top-1 agreement, task scores), never computed from bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from servewise.errors import InputError, UnknownName


class Scheme(NamedTuple):
    """A storage scheme: effective ``bits`` a value, scales and zero points included, and where its layout is written.

    ``activations`` says whether the arithmetic is done in that format too; else weights are expanded and
    computed in 16 bits, and only memory traffic gains.
    """

    name: str
    bits: float
    source: str
    activations: bool = False


class Traffic(NamedTuple):
    """What one decode step reads: weights, KV of all sequences of the batch, and the rest [bytes]."""

    weight_bytes: float
    kv_bytes: float
    other_bytes: float = 0.0

    @property
    def total_bytes(self) -> float:
        """All that the step reads [bytes]."""
        return self.weight_bytes + self.kv_bytes + self.other_bytes


def effective_bits(bits: float, group: float, *, scale_bits: float = 16, zero_bits: float = 0) -> float:
    """Bits that a value takes with its share of its group's scale and zero point [bits].

    bits + (scale_bits + zero_bits) / group, for ``group`` values that share one scale and one zero point.

    >>> effective_bits(4, 128, zero_bits=4)  # GPTQ and AWQ, group 128
    4.15625
    """
    if not 0 < bits <= 64 or not 1 <= group < math.inf or not 0 <= scale_bits <= 64 or not 0 <= zero_bits <= 64:
        raise InputError(
            f"bits {bits!r}, group {group!r}, scale {scale_bits!r} and zero {zero_bits!r} bits are no scheme",
            hint="bits above 0, a group of at least 1, scales and zeros of 0 to 64 bits",
        )
    return bits + (scale_bits + zero_bits) / group


def matrix_bytes(
    rows: int, columns: int, bits: float, group: int, *, scale_bits: float = 16, zero_bits: float = 0
) -> int:
    """Bytes of a ``rows`` x ``columns`` matrix whose columns are grouped along the rows' inputs [bytes].

    Groups run along each row; a row that the group does not divide has one short group with a scale of its own. Values
    and scales are each padded to whole bytes a matrix. Leaves out act-order indices (32 bits a column) and headers.
    """
    effective_bits(bits, group, scale_bits=scale_bits, zero_bits=zero_bits)
    groups = rows * -(-columns // group)
    return math.ceil(rows * columns * bits / 8) + math.ceil(groups * (scale_bits + zero_bits) / 8)


def decode_speedup_bound(before: Traffic, after: Traffic) -> float:
    """The most that a decode step can gain when its traffic falls [ratio].

    bytes before / bytes after. Holds where memory bounds both steps; kernels that expand the weights, launch gaps and a
    compute-bound batch take their share off it, and where compute binds, weight-only schemes gain nothing.

    >>> decode_speedup_bound(Traffic(26e9, 0), Traffic(6.5e9, 0))
    4.0
    """
    if not (0 < after.total_bytes < math.inf and 0 <= before.total_bytes < math.inf):
        raise InputError("a step reads more than nothing", where="traffic")
    return before.total_bytes / after.total_bytes


def amdahl(share: float, ratio: float) -> float:
    """The gain when a ``share`` of the bytes shrinks ``ratio`` times and the rest stays [ratio].

    1 / ((1 - s) + s / r): the weights' share s falls as the KV cache grows with the batch and the context, and with it
    what weight quantisation can bring. Source: Amdahl, AFIPS 1967.

    >>> round(amdahl(0.5, 4), 3)
    1.6
    """
    if not 0 <= share <= 1 or not 0 < ratio < math.inf:
        raise InputError(f"a share of 0 to 1 and a ratio above 0 are wanted, not {share!r} and {ratio!r}")
    return 1 / ((1 - share) + share / ratio)


GGML = "https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-common.h (block structs, 2026)"
MX = "https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf (2023-09)"
NVFP4 = (
    "https://developer.nvidia.com/blog/introducing-nvfp4-for-efficient-and-accurate-low-precision-inference/ "
    "(2025-06): an E4M3 scale a group of 16, an fp32 scale a tensor"
)
GPTQ = "https://arxiv.org/abs/2210.17323 and AutoGPTQ's layout: fp16 scale, packed zero point a group"
AWQ = "https://arxiv.org/abs/2306.00978: fp16 scale, packed zero point a group"
COMPRESSED = "https://github.com/vllm-project/llm-compressor: symmetric, fp16 scale a group"

# ggml blocks: bytes and values.
_GGML_BLOCKS = {
    "q4_0": (18, 32), "q4_1": (20, 32), "q5_0": (22, 32), "q5_1": (24, 32), "q8_0": (34, 32), "mxfp4-gguf": (17, 32),
    "q2_k": (84, 256), "q3_k": (110, 256), "q4_k": (144, 256), "q5_k": (176, 256), "q6_k": (210, 256),
    "iq1_s": (50, 256), "iq1_m": (56, 256), "iq2_xxs": (66, 256), "iq2_xs": (74, 256), "iq2_s": (82, 256),
    "iq3_xxs": (98, 256), "iq3_s": (110, 256), "iq4_nl": (18, 32), "iq4_xs": (136, 256),
    "tq1_0": (54, 256), "tq2_0": (66, 256),
}  # fmt: skip


def _listed() -> Iterable[Scheme]:
    yield from (Scheme(name, 8 * size / values, GGML) for name, (size, values) in _GGML_BLOCKS.items())
    yield Scheme("gptq-g128", effective_bits(4, 128, zero_bits=4), GPTQ)
    yield Scheme("gptq-g32", effective_bits(4, 32, zero_bits=4), GPTQ)
    yield Scheme("awq-g128", effective_bits(4, 128, zero_bits=4), AWQ)
    yield Scheme("w4a16-g128", effective_bits(4, 128), COMPRESSED)
    yield Scheme("bnb-nf4", effective_bits(4, 64, scale_bits=32), "https://arxiv.org/abs/2305.14314 section 3")
    double = effective_bits(4, 64, scale_bits=effective_bits(8, 256, scale_bits=32))
    yield Scheme(
        "bnb-nf4-double", double, "https://arxiv.org/abs/2305.14314 section 3: 0.127 bits of constants a value"
    )
    yield Scheme("mxfp4", effective_bits(4, 32, scale_bits=8), MX, activations=True)
    yield Scheme("mxfp6", effective_bits(6, 32, scale_bits=8), MX, activations=True)
    yield Scheme("mxfp8", effective_bits(8, 32, scale_bits=8), MX, activations=True)
    yield Scheme("nvfp4", effective_bits(4, 16, scale_bits=8), NVFP4, activations=True)
    deepseek = "https://arxiv.org/abs/2412.19437 section 3.3: fp32 scale a 128 x 128 block"
    yield Scheme("fp8-block128", effective_bits(8, 128 * 128, scale_bits=32), deepseek, activations=True)
    yield Scheme("fp8-tensor", 8, "https://arxiv.org/abs/2209.05433: one scale a tensor", activations=True)
    yield Scheme(
        "int8-channel", 8, "https://arxiv.org/abs/2211.10438: one scale a channel, under 0.01 bits", activations=True
    )


SCHEMES: Mapping[str, Scheme] = {scheme.name: scheme for scheme in _listed()}


def find_scheme(name: str) -> Scheme:
    """The scheme of that name, case and underscores as people write them; UnknownName with the nearest names.

    >>> find_scheme("Q4_K").bits, find_scheme("gptq_g128").bits
    (4.5, 4.15625)
    """
    plain = {_plain(each): scheme for each, scheme in SCHEMES.items()}
    found = plain.get(_plain(name))
    if found is None:
        raise UnknownName("quantisation scheme", name, SCHEMES, hint="give NAME:BITS with its effective bits")
    return found


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-")
