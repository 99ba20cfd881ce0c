"""A checkpoint in a GGUF file: config and tokenizer from its metadata, weights dequantised one by one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from servewise.engine.checkpoints.blocks import decoded
from servewise.engine.checkpoints.expected import Shape, expected_weights
from servewise.engine.checkpoints.gguf_config import config_of_gguf
from servewise.engine.checkpoints.gguf_header import GgufHeader, read_blocks, read_gguf_header
from servewise.engine.checkpoints.gguf_names import STRETCHES, from_gguf_rows, gguf_name, heads_reordered
from servewise.engine.checkpoints.gguf_tokenizer import tokenizer_of_gguf
from servewise.engine.checkpoints.tokenizer import TextTokenizer
from servewise.engine.config import DecoderConfig
from servewise.errors import InputError


class GgufFile:
    """The checkpoint in the file at ``path``; opening it reads the header, not the weights."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.path = path
        self.header: GgufHeader = read_gguf_header(path)
        if self.header.metadata.get("split.count", 0) not in (0, 1):
            raise InputError("is one part of several", where=str(path), hint="merge them: llama-gguf-split --merge")
        self.config: DecoderConfig = config_of_gguf(self.header, self._stretches(), name=name or path.stem)
        self._shapes = expected_weights(self.config)
        _check(self.header, self._shapes, self.config)

    @property
    def stored(self) -> str:
        """The ggml type of most of the weights in layers: Q4_1, Q8_0, BF16 ..."""
        counts: Counter[str] = Counter()
        for name, shape in self._shapes.items():
            if name.startswith("model.layers."):
                counts[self.stored_as(name)] += math.prod(shape)
        return counts.most_common(1)[0][0]

    def names(self) -> Sequence[str]:
        """The names of all weights, Hugging Face's."""
        return tuple(self._shapes)

    def stored_as(self, name: str) -> str:
        """The ggml type of one weight."""
        self._refuse_unknown(name)
        return self.header.tensors[gguf_name(name)].type.name

    def weight(self, name: str) -> Tensor:
        """One weight: float32 from block formats, else as stored; rows in transformers' order."""
        self._refuse_unknown(name)
        weight = self._read(gguf_name(name))
        heads = heads_reordered(name, self.config)
        return weight if heads is None else from_gguf_rows(weight, heads)

    def tokenizer(self) -> TextTokenizer:
        """The tokenizer in the file's metadata; raises InputError where its kind is not known."""
        return tokenizer_of_gguf(self.header, self.config)

    def _refuse_unknown(self, name: str) -> None:
        if name not in self._shapes:
            raise InputError(f"has no weight {name[:120]!r}", where=str(self.path))

    def _read(self, name: str) -> Tensor:
        tensor = self.header.tensors[name]
        blocks = torch.from_numpy(read_blocks(self.path, tensor))
        weight = decoded(blocks, tensor.type.name, tensor.type.block_bytes, f"{self.path}: {name}")
        return weight.reshape(tensor.shape)

    def _stretches(self) -> np.ndarray | None:
        if STRETCHES not in self.header.tensors:
            return None
        return self._read(STRETCHES).float().numpy()


def _check(header: GgufHeader, expected: dict[str, Shape], config: DecoderConfig) -> None:
    """Refuse a file that lacks a weight, has one of another shape, or one that the decoder would leave out."""
    for name, shape in expected.items():
        stored = header.tensors.get(gguf_name(name))
        if stored is None:
            raise InputError(f"lacks the weight {gguf_name(name)}", where=header.where)
        if stored.shape != shape:
            what = f"{stored.name} has the shape {list(stored.shape)}, where its metadata make it {list(shape)}"
            raise InputError(what, where=header.where)
    known = {gguf_name(name) for name in expected} | {STRETCHES}
    spare = [name for name in header.tensors if name not in known and not name.endswith("attn_rot_embd")]
    if spare:
        what = f"has the weight {spare[0][:80]!r}, which a {config.family} does not use"
        raise InputError(what, where=header.where)
