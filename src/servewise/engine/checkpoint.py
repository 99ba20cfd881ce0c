"""A checkpoint on disk: its config, its weights one by one, its tokenizer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from torch import Tensor

from servewise.engine.checkpoints.library import Places, find_checkpoint
from servewise.engine.checkpoints.opening import open_checkpoint
from servewise.engine.config import DecoderConfig


class Tokenizer(Protocol):
    """Text to token ids and back, with the chat template published with the model."""

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``, special tokens in it recognised, none added."""
        ...

    def prompt(self, text: str) -> list[int]:
        """Token ids of a plain prompt, with what the model is trained to see around one (Llama's begin token)."""
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
        """How most weights of the layers are stored: bf16, f32, Q4_1 ..."""
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


def load_checkpoint(path: str | Path, places: Places | None = None) -> Checkpoint:
    """The checkpoint in a safetensors folder or a GGUF file, or a local model by name (``smollm2-135m-instruct``).

    Names are looked for in ``places`` (None: the models folder and the hub cache in the user's home); nothing is
    fetched. Opening reads headers only. Raises UnknownName with the nearest names, InputError where there is no
    checkpoint, it is damaged, or its architecture is not one that the engine computes.
    """
    return open_checkpoint(find_checkpoint(path, places))


def weights_of(checkpoint: Checkpoint) -> Iterator[tuple[str, Tensor]]:
    """Every weight with its name."""
    return ((name, checkpoint.weight(name)) for name in checkpoint.names())
