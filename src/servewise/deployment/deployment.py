"""One way to serve a model: on what, split how, in which formats, within which limits."""

from __future__ import annotations

from dataclasses import dataclass, field

from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.spec import ModelSpec
from servewise.precision import Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How one replica is split, and how many replicas there are.

    ``tensor`` x ``pipeline`` accelerators hold one replica; ``data`` replicas of the attention share the experts when
    ``expert`` is set (experts are then spread over tensor x data ranks). ``decode_context``
    tensor ranks (vLLM's DCP, a divisor of ``tensor``) share out the tokens of the KV cache.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False
    decode_context: int = 1

    @property
    def accelerators(self) -> int:
        """Accelerators in all."""
        return self.tensor * self.pipeline * self.data

    def __str__(self) -> str:
        """TP2, TP4 PP2, ..."""
        parts = [("TP", self.tensor), ("PP", self.pipeline), ("DP", self.data), ("DCP", self.decode_context)]
        return " ".join(f"{name}{count}" for name, count in parts if count > 1 or name == "TP") + (
            " EP" if self.expert else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the engine is told. ``max_context_tokens`` None: the model's own.

    ``memory_utilization`` is the share of device memory the engine may take (vLLM gpu_memory_utilization, SGLang
    mem_fraction_static, TensorRT-LLM free_gpu_memory_fraction), None: the engine's default.
    """

    memory_utilization: float | None = None
    max_batched_tokens: int | None = None
    max_sequences: int | None = None
    max_context_tokens: int | None = None
    block_tokens: int | None = None
    cuda_graphs: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A model on accelerators, split, in formats, run by ``engine``.

    ``engine`` is ideal, vllm, sglang, trtllm or llamacpp, with a version where it matters (``vllm-0.10``).
    ``weights`` None means as the checkpoint stores them.
    """

    model: ModelSpec
    accelerator: Accelerator
    kv: Precision
    activations: Precision
    weights: Precision | None = None
    engine: str = "ideal"
    parallelism: Parallelism = field(default_factory=Parallelism)
    limits: Limits = field(default_factory=Limits)

    @property
    def stored_weights(self) -> Precision:
        """The precision that the layers' matrices are stored in."""
        return self.weights or self.model.weights
