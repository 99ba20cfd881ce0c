"""A checkpoint on disk: its config, its weights one by one, its tokenizer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from torch import Tensor

from servewise.engine.config import DecoderConfig


class Tokenizer(Protocol):
    """Text to token ids and back, with the chat template published with the model."""

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``, special tokens in it recognised, none added."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ``tokens``, special ones left out."""
        ...

    def chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Token ids of a conversation in the model's template, ready for the assistant's reply."""
        ...


class Checkpoint(Protocol):
    """One model on disk. Weights carry the Hugging Face names (``model.layers.0.self_attn.q_proj.weight`` ...)."""

    @property
    def config(self) -> DecoderConfig:
        """Sizes and switches."""
        ...

    @property
    def path(self) -> Path:
        """The folder or file."""
        ...

    @property
    def stored(self) -> str:
        """How most weights are stored: bf16, f32, Q4_1 ..."""
        ...

    def names(self) -> Sequence[str]:
        """The names of all weights."""
        ...

    def weight(self, name: str) -> Tensor:
        """One weight, dequantised to float32 where it is stored in blocks, else as stored.

        Raises InputError for a missing name, a truncated file or a wrong shape.
        """
        ...

    def tokenizer(self) -> Tokenizer:
        """The tokenizer published with the model."""
        ...


def load_checkpoint(path: str | Path) -> Checkpoint:
    """The checkpoint in a safetensors folder or a GGUF file, or a local model by name (``smollm2-135m-instruct``)."""
    raise NotImplementedError


def weights_of(checkpoint: Checkpoint) -> Iterator[tuple[str, Tensor]]:
    """Every weight with its name."""
    return ((name, checkpoint.weight(name)) for name in checkpoint.names())
