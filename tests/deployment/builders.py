"""Hand-built models and accelerators: shapes from the published configs, numbers that a reader can check."""

from __future__ import annotations

from dataclasses import replace

from servewise.deployment.deployment import Deployment, Limits, Parallelism
from servewise.hardware.accelerator import Accelerator, Quantity
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward, Layers, ModelSpec
from servewise.precision import FORMATS
from servewise.units import GIB

BF16, FP8, INT8, INT4 = FORMATS["bf16"], FORMATS["fp8"], FORMATS["int8"], FORMATS["int4"]


def device(memory_bytes: float, name: str = "test-gpu") -> Accelerator:
    """A device of which only the memory matters here."""
    return Accelerator(
        name=name,
        title=name,
        memory=Quantity(memory_bytes, "B", "test", "", "assumed"),
        bandwidth=Quantity(2e12, "B/s", "test", "", "assumed"),
        peaks={"bf16": Quantity(312e12, "FLOP/s", "test", "", "assumed")},
    )


def full_attention(hidden: int, heads: int, kv_heads: int, head_dim: int) -> Attention:
    """Grouped-query attention: q and o of heads x head_dim, k and v of kv_heads x head_dim."""
    return Attention(
        kind=AttentionKind.FULL,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        kv_values_per_token=2 * kv_heads * head_dim,
        score_width=heads * head_dim,
        value_width=heads * head_dim,
        parameters=2 * hidden * head_dim * (heads + kv_heads),
    )


def dense(name: str, *, layers: int, hidden: int, heads: int, kv_heads: int, inner: int, vocab: int, context: int,
          head_dim: int = 128) -> ModelSpec:  # fmt: skip
    """A Llama-like model with an untied head."""
    attention = full_attention(hidden, heads, kv_heads, head_dim)
    block = Layers(
        count=layers,
        attention=attention,
        feed_forward=FeedForward(dense_parameters=3 * hidden * inner),
        norm_parameters=2 * hidden,
    )
    return ModelSpec(
        name=name,
        family="llama",
        layers=(block,),
        hidden_size=hidden,
        vocab_size=vocab,
        embedding_parameters=vocab * hidden,
        head_parameters=vocab * hidden,
        final_norm_parameters=hidden,
        max_context_tokens=context,
        weights=BF16,
        dtype=BF16,
    )


LLAMA_2_13B = dense(
    "llama-2-13b", layers=40, hidden=5120, heads=40, kv_heads=40, inner=13824, vocab=32000, context=4096
)
LLAMA_2_7B = dense("llama-2-7b", layers=32, hidden=4096, heads=32, kv_heads=32, inner=11008, vocab=32000, context=4096)
LLAMA_3_8B = dense("llama-3-8b", layers=32, hidden=4096, heads=32, kv_heads=8, inner=14336, vocab=128256, context=8192)
LLAMA_31_8B = replace(LLAMA_3_8B, name="llama-3.1-8b", max_context_tokens=131072)


def study_model(kv_heads: int = 40) -> ModelSpec:
    """The study's Llama 2 13B: 13e9 parameters, all of them in the layers; 819,200 bytes a token at 40 KV heads."""
    spread = 13_000_000_000 // 40
    attention = replace(full_attention(5120, 40, kv_heads, 128), parameters=0)
    block = Layers(count=40, attention=attention, feed_forward=FeedForward(dense_parameters=spread))
    return replace(LLAMA_2_13B, layers=(block,), embedding_parameters=0, head_parameters=0, final_norm_parameters=0)


def deployment(model: ModelSpec, memory_bytes: float, **changes: object) -> Deployment:
    """``model`` on one device of that memory, bf16 throughout, with changes."""
    plain = Deployment(model=model, accelerator=device(memory_bytes), kv=BF16, activations=BF16)
    return replace(plain, **changes)  # type: ignore[arg-type]


H100_BYTES = 79.18 * GIB
__all__ = ["BF16", "FP8", "H100_BYTES", "INT4", "INT8", "LLAMA_2_7B", "LLAMA_2_13B", "LLAMA_3_8B", "LLAMA_31_8B",
           "Limits", "Parallelism", "dense", "deployment", "device", "full_attention", "study_model"]  # fmt: skip
