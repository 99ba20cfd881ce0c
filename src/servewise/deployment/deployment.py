"""One way to serve a model: on what, split how, in which formats, within which limits."""

from __future__ import annotations

from dataclasses import dataclass, field

from servewise.deployment.expert_load import USUAL, ExpertLoad
from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.spec import ModelSpec
from servewise.precision import Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How one replica is split, and how many replicas there are.

    ``tensor`` x ``pipeline`` accelerators hold one replica; ``data`` replicas of the attention share the experts when
    ``expert`` is set (experts are then spread over tensor x data ranks). ``decode_context``
    tensor ranks (vLLM's DCP, a divisor of ``tensor``) share out the tokens of the KV cache. ``redundant_experts``
    (vLLM's num_redundant_experts): copies that EPLB adds in each layer, placing all by their load; None: no EPLB.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False
    decode_context: int = 1
    redundant_experts: int | None = None

    @property
    def expert_ranks(self) -> int:
        """Ranks over which whole experts are spread; 1: every rank has a slice of each."""
        return self.tensor * self.data if self.expert else 1

    @property
    def accelerators(self) -> int:
        """Accelerators in all."""
        return self.tensor * self.pipeline * self.data

    def __str__(self) -> str:
        """TP2, TP4 PP2, TP8 EP, TP8 EP EPLB+8, ..."""
        parts = [("TP", self.tensor), ("PP", self.pipeline), ("DP", self.data), ("DCP", self.decode_context)]
        balanced = "" if self.redundant_experts is None else f" EPLB+{self.redundant_experts}"
        return " ".join(f"{name}{count}" for name, count in parts if count > 1 or name == "TP") + (
            f" EP{balanced}" if self.expert else ""
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
    ``weights`` None means as the checkpoint stores them. ``expert_load``: how popular its routed experts are, where
    they are spread over ranks.
    """

    model: ModelSpec
    accelerator: Accelerator
    kv: Precision
    activations: Precision
    weights: Precision | None = None
    engine: str = "ideal"
    parallelism: Parallelism = field(default_factory=Parallelism)
    limits: Limits = field(default_factory=Limits)
    expert_load: ExpertLoad = USUAL

    @property
    def stored_weights(self) -> Precision:
        """The precision that the layers' matrices are stored in."""
        return self.weights or self.model.weights
