"""Models and accelerators whose numbers are public, written out by hand for these tests."""

from __future__ import annotations

from servewise.deployment.deployment import Deployment, Parallelism
from servewise.hardware.accelerator import Accelerator, Quantity
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward, Layers, ModelSpec
from servewise.precision import FORMATS, Precision

BF16, FP8 = FORMATS["bf16"], FORMATS["fp8"]


def llama(name: str, hidden: int, layers: int, heads: int, kv_heads: int, ffn: int, vocab: int) -> ModelSpec:
    """A Llama of those sizes (gated FFN, untied head, heads of hidden / heads)."""
    head_dim = hidden // heads
    attention = Attention(
        kind=AttentionKind.FULL,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        kv_values_per_token=2 * kv_heads * head_dim,
        score_width=hidden,
        value_width=hidden,
        parameters=2 * hidden * hidden + 2 * hidden * kv_heads * head_dim,
    )
    group = Layers(
        count=layers,
        attention=attention,
        feed_forward=FeedForward(dense_parameters=3 * hidden * ffn),
        norm_parameters=2 * hidden,
    )
    return ModelSpec(
        name=name,
        family="llama",
        layers=(group,),
        hidden_size=hidden,
        vocab_size=vocab,
        embedding_parameters=vocab * hidden,
        head_parameters=vocab * hidden,
        final_norm_parameters=hidden,
        max_context_tokens=4096,
        weights=BF16,
        dtype=BF16,
    )


LLAMA_2_7B = llama("llama-2-7b", 4096, 32, 32, 32, 11008, 32000)
LLAMA_31_8B = llama("llama-3.1-8b", 4096, 32, 32, 8, 14336, 128256)
LLAMA_31_70B = llama("llama-3.1-70b", 8192, 80, 64, 8, 28672, 128256)


def accelerator(
    name: str = "a100-80gb", bandwidth: float = 2.039e12, memory: float = 80e9, kin: str | None = None, **peaks: float
) -> Accelerator:
    """An accelerator of those numbers (by default the A100 80 GB SXM of NVIDIA's data sheet)."""

    def said(value: float, unit: str) -> Quantity:
        return Quantity(value, unit, "given by the test", "2026-11-29", "assumed")

    return Accelerator(
        name=name,
        title=name,
        memory=said(memory, "bytes"),
        bandwidth=said(bandwidth, "bytes/s"),
        peaks={each: said(value, "FLOP/s") for each, value in (peaks or {"bf16": 312e12}).items()},
        kin=kin,
    )


def deployed(
    model: ModelSpec = LLAMA_2_7B,
    device: Accelerator | None = None,
    *,
    engine: str = "vllm",
    tensor: int = 1,
    pipeline: int = 1,
    data: int = 1,
    expert: bool = False,
    weights: Precision | None = None,
    kv: Precision = BF16,
    activations: Precision = BF16,
) -> Deployment:
    """``model`` served on one kind of accelerator."""
    return Deployment(
        model=model,
        accelerator=device or accelerator(),
        kv=kv,
        activations=activations,
        weights=weights,
        engine=engine,
        parallelism=Parallelism(tensor=tensor, pipeline=pipeline, data=data, expert=expert),
    )
