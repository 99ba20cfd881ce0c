"""A tiny random checkpoint, written by the model classes that serve as oracle; and its byte-level tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
VOCABULARY = 320
TEXT = ["the cat sat on the mat and the dog ate the hat", "a model that is served well answers at once", "1 2 3 4 5"]

_CLASSES: dict[str, tuple[Any, Any]] = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
}


def tiny_checkpoint(
    folder: Path,
    family: str = "llama",
    seed: int = 0,
    *,
    hidden: int = 64,
    layers: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int | None = None,
    intermediate: int = 128,
    vocabulary: int = VOCABULARY,
    context_tokens: int = 512,
    tied: bool = False,
    dtype: torch.dtype = torch.float32,
    rope_scaling: dict[str, Any] | None = None,
    max_shard_size: str = "1GB",
    **more: Any,
) -> Path:
    """Write a checkpoint with random weights of ``seed`` into ``folder`` and return it.

    config.json and safetensors are transformers' own ``save_pretrained``; ``more`` goes into its config class. All
    vectors (norms, biases) are random too, so that leaving one out shows.
    """
    config_class, model_class = _CLASSES[family]
    rope = {"rope_theta": 10_000.0, "rope_type": "default", **(rope_scaling or {})}
    config = config_class(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim or hidden // heads,
        intermediate_size=intermediate,
        vocab_size=vocabulary,
        max_position_embeddings=context_tokens,
        rope_parameters=rope,
        tie_word_embeddings=tied,
        bos_token_id=1,
        eos_token_id=2,
        **more,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = model_class(config)
        for parameter in model.parameters():
            centre, spread = (1.0, 0.2) if parameter.ndim == 1 else (0.0, parameter.shape[-1] ** -0.5)
            torch.nn.init.normal_(parameter, centre, spread)
    folder.mkdir(parents=True, exist_ok=True)
    model.to(dtype).save_pretrained(folder, max_shard_size=max_shard_size)
    write_tokenizer(folder)
    return folder


def write_tokenizer(folder: Path) -> None:
    """tokenizer.json and tokenizer_config.json (with a chat template) of a byte-level BPE of ``VOCABULARY`` tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(each, special=True, normalized=False) for each in SPECIAL]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    assert tokenizer.get_vocab_size() <= VOCABULARY
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIAL[1],
        "eos_token": SPECIAL[2],
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))
