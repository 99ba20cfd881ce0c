"""GGUF's tensor names and row order against Hugging Face's.

llama.cpp rotates neighbouring rows of a head in the llama architecture, transformers rows half a head apart; so the
converter reorders the rows of q and k (convert_hf_to_gguf.py, LlamaModel.permute), and reading undoes it. Qwen's
architectures rotate as transformers does and keep their order.
"""

from __future__ import annotations

import re

from torch import Tensor

from servewise.engine.config import DecoderConfig

_OUTER = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_INNER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)\.(weight|bias)")
REORDERED = ("self_attn.q_proj", "self_attn.k_proj")
STRETCHES = "rope_freqs.weight"


def gguf_name(name: str) -> str:
    """GGUF's name of the weight that Hugging Face calls ``name``.

    >>> gguf_name("model.layers.3.mlp.up_proj.weight")
    'blk.3.ffn_up.weight'
    """
    found = _LAYER.fullmatch(name)
    return f"blk.{found[1]}.{_INNER[found[2]]}.{found[3]}" if found else _OUTER[name]


def heads_reordered(name: str, config: DecoderConfig) -> int | None:
    """The heads within which GGUF's llama architecture reorders the rows of ``name``; None where it does not."""
    if config.family not in ("llama", "mistral") or not any(part in name for part in REORDERED):
        return None
    return config.heads if "q_proj" in name else config.kv_heads


def to_gguf_rows(weight: Tensor, heads: int) -> Tensor:
    """Rows i and i + half of each head become rows 2i and 2i + 1."""
    half = weight.shape[0] // heads // 2
    return weight.reshape(heads, 2, half, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)


def from_gguf_rows(weight: Tensor, heads: int) -> Tensor:
    """Rows 2i and 2i + 1 of each head become rows i and i + half: transformers' order."""
    half = weight.shape[0] // heads // 2
    return weight.reshape(heads, half, 2, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)
