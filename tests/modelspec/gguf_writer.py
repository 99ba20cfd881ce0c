"""Writes small GGUF files as the format's document says, with no help from the code under test."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence

F32, F16, Q4_0, Q8_0, Q6_K, MXFP4 = 0, 1, 2, 8, 14, 39
BLOCKS = {F32: (1, 4), F16: (1, 2), Q4_0: (32, 18), Q8_0: (32, 34), Q6_K: (256, 210), MXFP4: (32, 17)}

Tensors = Mapping[str, tuple[tuple[int, ...], int]]  # name: (dimensions, type)


def text(value: str) -> bytes:
    """A string: its length in 8 bytes, then UTF-8."""
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key: str, value: object) -> bytes:
    """A metadata entry: key, type, value."""
    if isinstance(value, bool):
        return text(key) + struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return text(key) + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", 6, value)
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    assert isinstance(value, Sequence)
    return text(key) + struct.pack("<I", 9) + _array(value)


def _array(values: Sequence[object]) -> bytes:
    if values and isinstance(values[0], str):
        return struct.pack("<IQ", 8, len(values)) + b"".join(text(str(each)) for each in values)
    if values and isinstance(values[0], bool):
        return struct.pack(f"<IQ{len(values)}?", 7, len(values), *values)
    return struct.pack(f"<IQ{len(values)}i", 5, len(values), *values)


def gguf(metadata: Mapping[str, object], tensors: Tensors, version: int = 3) -> bytes:
    """A GGUF file's header, without the tensors' data."""
    infos = b""
    offset = 0
    for name, (dimensions, kind) in tensors.items():
        rank = len(dimensions)
        infos += text(name) + struct.pack(f"<I{rank}QIQ", rank, *dimensions, kind, offset)
        offset += -(-size_of(dimensions, kind) // 32) * 32
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    return head + b"".join(entry(key, value) for key, value in metadata.items()) + infos


def size_of(dimensions: Sequence[int], kind: int) -> int:
    """Bytes of a tensor's data."""
    values, size = BLOCKS[kind]
    return math.prod(dimensions) // values * size


LLAMA: dict[str, object] = {
    "general.architecture": "llama",
    "general.name": "tiny",
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.context_length": 512,
    "tokenizer.ggml.tokens": ["a", "b", "c"],
}


def llama_tensors(layers: int = 2, kind: int = Q8_0) -> dict[str, tuple[tuple[int, ...], int]]:
    """The tensors of a Llama of width 64, 4 heads over 2 KV heads of 16, feed-forward 96, vocabulary 128."""
    tensors: dict[str, tuple[tuple[int, ...], int]] = {
        "token_embd.weight": ((64, 128), Q8_0),
        "output_norm.weight": ((64,), F32),
        "output.weight": ((64, 128), F16),
        "rope_freqs.weight": ((8,), F32),
    }
    for index in range(layers):
        tensors |= {
            f"blk.{index}.attn_norm.weight": ((64,), F32),
            f"blk.{index}.attn_q.weight": ((64, 64), kind),
            f"blk.{index}.attn_k.weight": ((64, 32), kind),
            f"blk.{index}.attn_v.weight": ((64, 32), kind),
            f"blk.{index}.attn_output.weight": ((64, 64), kind),
            f"blk.{index}.ffn_norm.weight": ((64,), F32),
            f"blk.{index}.ffn_gate.weight": ((64, 96), kind),
            f"blk.{index}.ffn_up.weight": ((64, 96), kind),
            f"blk.{index}.ffn_down.weight": ((96, 64), kind),
        }
    return tensors
