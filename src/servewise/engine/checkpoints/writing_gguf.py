"""A checkpoint as a GGUF file that llama.cpp loads: metadata, tokenizer, weights in its names, row order and blocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor

from servewise.engine.checkpoints.expected import EMBEDDING, HEAD, Shape, expected_weights
from servewise.engine.checkpoints.gguf_file import GgufFile
from servewise.engine.checkpoints.gguf_names import STRETCHES, gguf_name, heads_reordered, to_gguf_rows
from servewise.engine.checkpoints.gguf_vocabulary import vocabulary_metadata
from servewise.engine.checkpoints.rope import stretches
from servewise.engine.checkpoints.safetensors_folder import SafetensorsFolder
from servewise.engine.checkpoints.writing import cast, written_whole
from servewise.engine.config import DecoderConfig
from servewise.errors import UnknownName
from servewise.modelspec.gguf_types import TENSOR_TYPES

Kind = gguf.GGMLQuantizationType
KINDS = {"f32": Kind.F32, "f16": Kind.F16, "bf16": Kind.BF16, "q8_0": Kind.Q8_0, "q4_0": Kind.Q4_0}
FILE_TYPES = {
    "f32": gguf.LlamaFileType.ALL_F32,
    "f16": gguf.LlamaFileType.MOSTLY_F16,
    "bf16": gguf.LlamaFileType.MOSTLY_BF16,
    "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    "q4_0": gguf.LlamaFileType.MOSTLY_Q4_0,
}
Progress = Callable[[int, int], None]


def write_gguf(
    checkpoint: GgufFile | SafetensorsFolder, path: Path, dtype: str = "bf16", *, progress: Progress | None = None
) -> None:
    """Write ``checkpoint`` as the GGUF file ``path``, matrices in ``dtype``: f32, f16, bf16, q8_0 or q4_0.

    As llama.cpp's converter has it, vectors (norms, biases) are float32, and matrices whose rows are no whole number of
    blocks f16. With q4_0 the embedding table and the output projection are q8_0, which costs little and keeps much.
    Blocks are made by the gguf package's quantisers. One weight is in memory at a time; nothing is left behind where
    that fails; raises InputError where ``path`` is there already or the tokenizer has no form in GGUF.
    """
    if dtype not in KINDS:
        raise UnknownName("dtype", dtype, KINDS, where="gguf", hint=f"one of {', '.join(KINDS)}")
    tokenizer = _tokenizer(checkpoint)
    with written_whole(path) as part:
        writer = gguf.GGUFWriter(str(part), architecture(checkpoint.config))
        try:
            for key, value in (model_metadata(checkpoint.config) | tokenizer).items():
                _add(writer, key, value)
            writer.add_file_type(FILE_TYPES[dtype])
            writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
            _write_weights(writer, checkpoint, dtype, progress)
        finally:
            writer.close()


def architecture(config: DecoderConfig) -> str:
    """GGUF's name of the family: Mistral is a llama there."""
    return "llama" if config.family == "mistral" else config.family


def model_metadata(config: DecoderConfig) -> dict[str, Any]:
    """The entries that describe the network, by their full keys."""
    start = architecture(config)
    entries = {
        "block_count": config.layers,
        "context_length": config.max_context_tokens,
        "embedding_length": config.hidden,
        "feed_forward_length": config.intermediate,
        "vocab_size": config.vocabulary,
        "attention.head_count": config.heads,
        "attention.head_count_kv": config.kv_heads,
        "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim,
        "attention.layer_norm_rms_epsilon": float(config.norm_epsilon),
        "rope.dimension_count": config.rope.dimensions,
        "rope.freq_base": float(config.rope.theta),
    }
    if config.window_tokens is not None:
        entries["attention.sliding_window"] = config.window_tokens
    return {"general.name": config.name} | {f"{start}.{key}": value for key, value in entries.items()}


def _tokenizer(checkpoint: GgufFile | SafetensorsFolder) -> dict[str, Any]:
    checkpoint.tokenizer()  # refuses now what would make the file useless
    if isinstance(checkpoint, SafetensorsFolder):
        return vocabulary_metadata(checkpoint)
    return {key: value for key, value in checkpoint.header.metadata.items() if key.startswith("tokenizer.")}


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case _:
            writer.add_array(key, value)


def _write_weights(
    writer: gguf.GGUFWriter, checkpoint: GgufFile | SafetensorsFolder, dtype: str, progress: Progress | None
) -> None:
    config = checkpoint.config
    kinds = {name: _kind(name, shape, dtype) for name, shape in expected_weights(config).items()}
    scaled = stretches(config.rope) if config.rope.factor > 1 else None
    if scaled is not None:
        writer.add_tensor_info(STRETCHES, scaled.shape, scaled.dtype, scaled.nbytes)
    for name, shape in expected_weights(config).items():
        stored = _stored_shape(shape, kinds[name])
        size = int(np.prod(stored))
        writer.add_tensor_info(gguf_name(name), stored, np.dtype(np.uint8), size, raw_dtype=kinds[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    if scaled is not None:
        writer.write_tensor_data(scaled)
    for done, name in enumerate(kinds, start=1):
        writer.write_tensor_data(_packed(name, checkpoint.weight(name), kinds[name], config))
        if progress is not None:
            progress(done, len(kinds))


def _kind(name: str, shape: Shape, dtype: str) -> Kind:
    if len(shape) < 2:
        return Kind.F32
    kind = Kind.Q8_0 if dtype == "q4_0" and name in (EMBEDDING, HEAD) else KINDS[dtype]
    return kind if shape[-1] % TENSOR_TYPES[kind.value].block_values == 0 else Kind.F16


def _stored_shape(shape: Shape, kind: Kind) -> Shape:
    """The shape in bytes, rows first."""
    stored = TENSOR_TYPES[kind.value]
    return (*shape[:-1], shape[-1] // stored.block_values * stored.block_bytes)


def _packed(name: str, weight: Tensor, kind: Kind, config: DecoderConfig) -> np.ndarray:
    """The bytes of ``weight`` as GGUF stores it."""
    heads = heads_reordered(name, config)
    rows = weight if heads is None else to_gguf_rows(weight, heads)
    if kind == Kind.BF16:
        return cast(name, rows, torch.bfloat16).view(torch.uint8).numpy()
    if kind == Kind.F16:
        return cast(name, rows, torch.float16).view(torch.uint8).numpy()
    numbers = cast(name, rows, torch.float32).numpy()
    return gguf.quants.quantize(numbers, kind).view(np.uint8)
