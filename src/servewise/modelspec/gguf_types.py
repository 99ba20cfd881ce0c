"""How ggml stores tensors: values and bytes of a block.

Source: ggml's ``ggml-common.h`` block structs and ``GGML_QUANT_SIZES`` of the Python package gguf 0.17 (MIT), 2025.
"""

from __future__ import annotations

from typing import NamedTuple


class TensorType(NamedTuple):
    """A storage type: ``block_values`` values take ``block_bytes`` bytes; ``format`` is our name for its kind."""

    name: str
    block_values: int
    block_bytes: int
    format: str


TENSOR_TYPES: dict[int, TensorType] = {
    0: TensorType("F32", 1, 4, "fp32"),
    1: TensorType("F16", 1, 2, "fp16"),
    2: TensorType("Q4_0", 32, 18, "int4"),
    3: TensorType("Q4_1", 32, 20, "int4"),
    6: TensorType("Q5_0", 32, 22, "int5"),
    7: TensorType("Q5_1", 32, 24, "int5"),
    8: TensorType("Q8_0", 32, 34, "int8"),
    9: TensorType("Q8_1", 32, 40, "int8"),
    10: TensorType("Q2_K", 256, 84, "int2"),
    11: TensorType("Q3_K", 256, 110, "int3"),
    12: TensorType("Q4_K", 256, 144, "int4"),
    13: TensorType("Q5_K", 256, 176, "int5"),
    14: TensorType("Q6_K", 256, 210, "int6"),
    15: TensorType("Q8_K", 256, 292, "int8"),
    16: TensorType("IQ2_XXS", 256, 66, "int2"),
    17: TensorType("IQ2_XS", 256, 74, "int2"),
    18: TensorType("IQ3_XXS", 256, 98, "int3"),
    19: TensorType("IQ1_S", 256, 50, "int2"),
    20: TensorType("IQ4_NL", 32, 18, "int4"),
    21: TensorType("IQ3_S", 256, 110, "int3"),
    22: TensorType("IQ2_S", 256, 82, "int2"),
    23: TensorType("IQ4_XS", 256, 136, "int4"),
    24: TensorType("I8", 1, 1, "int8"),
    25: TensorType("I16", 1, 2, "fp16"),
    26: TensorType("I32", 1, 4, "fp32"),
    27: TensorType("I64", 1, 8, "fp64"),
    28: TensorType("F64", 1, 8, "fp64"),
    29: TensorType("IQ1_M", 256, 56, "int2"),
    30: TensorType("BF16", 1, 2, "bf16"),
    34: TensorType("TQ1_0", 256, 54, "int2"),
    35: TensorType("TQ2_0", 256, 66, "int2"),
    39: TensorType("MXFP4", 32, 17, "mxfp4"),
    40: TensorType("NVFP4", 64, 36, "nvfp4"),
}
