"""Widths that a nested text config may leave out.

A composite config (text beside vision) is saved as the differences from its classes' defaults, so that the published
config of Gemma-3-4B, say, states neither its heads nor its vocabulary. The values are the class defaults of
transformers 5.24; they apply to nested parts only, since a config of its own is saved whole.
"""

from __future__ import annotations

NESTED_DEFAULTS: dict[str, dict[str, int]] = {
    "gemma": {
        "hidden_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "intermediate_size": 24576,
        "vocab_size": 256_000,
    },
    "gemma2": {
        "hidden_size": 2304,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "intermediate_size": 9216,
        "vocab_size": 256_000,
    },
    "gemma3_text": {
        "hidden_size": 2304,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "intermediate_size": 9216,
        "vocab_size": 262_208,
        "max_position_embeddings": 131_072,
    },
    "llama": {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 11008,
        "vocab_size": 32_000,
    },
    "mistral": {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 14336,
        "vocab_size": 32_000,
    },
    "qwen2": {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 22016,
        "vocab_size": 151_936,
    },
    "llama4_text": {
        "hidden_size": 5120,
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "vocab_size": 202_048,
        "num_local_experts": 16,
    },
}
