"""The structures that the compiled kernels read, field for field as ``kernels/step.cpp`` and its headers have them."""

from __future__ import annotations

from ctypes import POINTER, Structure, c_float, c_int64, c_void_p


class ProductStructure(Structure):
    """A packed weight and its bias (or null)."""

    _fields_ = (("weights", c_void_p), ("bias", c_void_p), ("outputs", c_int64), ("inputs", c_int64))


class LayerStructure(Structure):
    """A layer's norms (the last two or null) and products."""

    _fields_ = (
        ("attention_norm", c_void_p),
        ("mlp_norm", c_void_p),
        ("q_norm", c_void_p),
        ("k_norm", c_void_p),
        ("qkv", ProductStructure),
        ("output", ProductStructure),
        ("gate_up", ProductStructure),
        ("down", ProductStructure),
    )


class ModelStructure(Structure):
    """A decoder."""

    _fields_ = (
        ("embedding", c_void_p),
        ("layers", POINTER(LayerStructure)),
        ("final_norm", c_void_p),
        ("head", ProductStructure),
        ("layer_count", c_int64),
        ("hidden", c_int64),
        ("heads", c_int64),
        ("kv_heads", c_int64),
        ("head_dim", c_int64),
        ("inner", c_int64),
        ("vocabulary", c_int64),
        ("rotated", c_int64),
        ("window", c_int64),
        ("epsilon", c_float),
    )


class CacheStructure(Structure):
    """One layer's keys and values."""

    _fields_ = (("keys", c_void_p), ("values", c_void_p))


class StepStructure(Structure):
    """A step's arrays and their sizes."""

    _fields_ = (
        ("tokens", c_void_p),
        ("slots", c_void_p),
        ("query_starts", c_void_p),
        ("contexts", c_void_p),
        ("table_starts", c_void_p),
        ("rows", c_void_p),
        ("tables", c_void_p),
        ("cosines", c_void_p),
        ("sines", c_void_p),
        ("token_count", c_int64),
        ("sequence_count", c_int64),
        ("row_count", c_int64),
        ("block_tokens", c_int64),
        ("block_count", c_int64),
    )
