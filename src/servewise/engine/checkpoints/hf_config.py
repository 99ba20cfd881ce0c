"""A Hugging Face ``config.json`` -> DecoderConfig, and back; the families that the decoder computes exactly.

Where a config is silent, the family's own default in transformers applies. What the decoder would compute otherwise
than the family does (another activation, mixed windows, quantised weights, an unknown rope scaling) is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from servewise.engine.checkpoints.confined import confined
from servewise.engine.checkpoints.rope import positive, rope_of_config
from servewise.engine.config import DecoderConfig
from servewise.errors import InputError, nearest_names
from servewise.modelspec.checkpoint import MOST_CONFIG_BYTES, read_text
from servewise.modelspec.fields import MOST_LAYERS, Fields
from servewise.modelspec.hf_config import MOST_VOCABULARY, read_json

FAMILIES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
SUPPORTED = "read are llama (Llama 2 and 3, SmolLM2), mistral, qwen2 (and 2.5) and qwen3"
CONFIG, GENERATION = "config.json", "generation_config.json"
MISTRAL_WINDOW = 4096  # MistralConfig's default where sliding_window is absent; null means none


def config_of_folder(folder: Path) -> DecoderConfig:
    """The config of a checkpoint's folder, with the end tokens that its generation_config.json adds."""
    config = read_object(confined(folder, CONFIG))
    _refuse_own_code(config, str(folder / CONFIG))
    generation = read_object(confined(folder, GENERATION)) if (folder / GENERATION).is_file() else {}
    return parse_config(config, generation, name=folder.name, where=str(folder / CONFIG))


def _refuse_own_code(config: Mapping[str, Any], where: str) -> None:
    """Refuse a config that names a model class of its own (``auto_map``): what it would compute is not known here."""
    own = config.get("auto_map")
    classes = own if isinstance(own, Mapping) else {}
    if any(str(name).startswith("AutoModel") for name in classes):
        hint = "code of a checkpoint is never run; take one of a known architecture, or drop auto_map if it is one"
        raise InputError("names code of its own for the model (auto_map)", where=where, hint=hint)


def read_object(path: Path) -> Mapping[str, Any]:
    """The JSON object in the file; raises InputError where there is none."""
    content = read_json(read_text(path, MOST_CONFIG_BYTES), str(path))
    if not isinstance(content, Mapping):
        raise InputError("must hold one JSON object", where=str(path))
    return content


def parse_config(
    config: Mapping[str, Any], generation: Mapping[str, Any], *, name: str, where: str = CONFIG
) -> DecoderConfig:
    """The decoder of a parsed ``config.json`` and ``generation_config.json`` (empty where there is none)."""
    fields = Fields(config, where)
    family = _family(fields)
    if fields.has("quantization_config"):
        hint = "take the checkpoint in 16 or 32 bits, or a GGUF file"
        raise InputError("its weights are quantised (quantization_config), which is not read", where=where, hint=hint)
    activation = fields.text("hidden_act", default="silu")
    if activation not in ("silu", "swish"):
        raise InputError(f"hidden_act {activation[:40]!r} is not computed; silu is", where=where)
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    layers, vocabulary = (
        fields.count("num_hidden_layers", most=MOST_LAYERS),
        fields.count("vocab_size", most=MOST_VOCABULARY),
    )
    head_dim = fields.count("head_dim", default=128 if family == "qwen3" else max(1, hidden // heads))
    attention_bias = family in ("llama", "qwen3") and fields.flag("attention_bias", default=False)
    decoder = DecoderConfig(
        name=name,
        family=family,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=fields.count("num_key_value_heads", default={"llama": heads, "mistral": 8}.get(family, 32)),
        head_dim=head_dim,
        intermediate=fields.count("intermediate_size"),
        vocabulary=vocabulary,
        max_context_tokens=fields.count("max_position_embeddings"),
        norm_epsilon=positive(fields, "rms_norm_eps", 1e-6),
        rope=rope_of_config(fields, head_dim),
        tied=fields.flag("tie_word_embeddings", default=False),
        qkv_bias=family == "qwen2" or attention_bias,
        output_bias=attention_bias,
        mlp_bias=family == "llama" and fields.flag("mlp_bias", default=False),
        qk_norm=family == "qwen3",
        window_tokens=_window(fields, family, layers),
        begin_token=_begin(fields, vocabulary),
        end_tokens=_ends((Fields(generation, GENERATION), fields), vocabulary),
    )
    fields.check()
    return checked(decoder, where)


def checked(config: DecoderConfig, where: str) -> DecoderConfig:
    """``config``, if its sizes go together."""
    if config.heads % config.kv_heads:
        raise InputError(f"{config.heads} heads cannot share {config.kv_heads} key-value heads", where=where)
    if config.head_dim % 2:
        raise InputError(f"a head of {config.head_dim} dimensions cannot be rotated in pairs", where=where)
    return config


def _family(fields: Fields) -> str:
    family = fields.text("model_type")
    if family in FAMILIES:
        return family
    called = family or next((str(each) for each in fields.listed("architectures") or ()), "")
    if not called:
        hint = "take the config.json from the checkpoint's own repository"
        raise InputError("missing field model_type", where=fields.where, hint=hint)
    near = nearest_names(called, FAMILIES)
    hint = SUPPORTED + (f"; nearest: {', '.join(near)}" if near else "")
    raise InputError(f"architecture {called[:60]!r} is not computed by the engine", where=fields.where, hint=hint)


def _window(fields: Fields, family: str, layers: int) -> int | None:
    """The window that every layer has; Qwen 2 and 3 have it only in layers from max_window_layers on."""
    if family == "llama":
        return None
    if family == "mistral":
        absent = "sliding_window" not in fields.values
        return MISTRAL_WINDOW if absent else fields.count("sliding_window") if fields.has("sliding_window") else None
    kinds = fields.choices("layer_types", ("full_attention", "sliding_attention"), layers)
    if kinds is None:
        first = fields.count("max_window_layers", default=28, least=0)
        used = fields.flag("use_sliding_window", default=False)
        kinds = ["sliding_attention" if used and index >= first else "full_attention" for index in range(layers)]
    if "sliding_attention" not in kinds:
        return None
    if "full_attention" in kinds:
        raise InputError("mixes layers with and without a sliding window, which is not computed", where=fields.where)
    return fields.count("sliding_window", default=4096)


def _begin(fields: Fields, vocabulary: int) -> int | None:
    return fields.count("bos_token_id", least=0, most=vocabulary - 1) if fields.has("bos_token_id") else None


def _ends(sources: Iterable[Fields], vocabulary: int) -> tuple[int, ...]:
    """The end tokens of all ``sources``, one number or a list in each, in order and without repeats."""
    found: dict[int, None] = {}
    for fields in sources:
        value = fields.get("eos_token_id")
        for token in value if isinstance(value, list) else () if value is None else (value,):
            if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < vocabulary:
                raise fields.wrong("eos_token_id", token, f"a token from 0 to {vocabulary - 1}")
            found[token] = None
    return tuple(found)


def hf_config(config: DecoderConfig, dtype: str) -> dict[str, Any]:
    """``config`` as the config.json of transformers and vLLM, in the layout that all of their versions read."""
    rope = config.rope
    scaling = {
        "rope_type": "llama3",
        "factor": rope.factor,
        "low_freq_factor": rope.low_frequency_factor,
        "high_freq_factor": rope.high_frequency_factor,
        "original_max_position_embeddings": rope.original_context_tokens,
    }
    content: dict[str, Any] = {
        "architectures": [FAMILIES[config.family]],
        "model_type": config.family,
        "hidden_size": config.hidden,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.intermediate,
        "hidden_act": "silu",
        "vocab_size": config.vocabulary,
        "max_position_embeddings": config.max_context_tokens,
        "rms_norm_eps": config.norm_epsilon,
        "rope_theta": rope.theta,
        "rope_scaling": scaling if rope.factor > 1 else None,
        "tie_word_embeddings": config.tied,
        "bos_token_id": config.begin_token,
        "eos_token_id": _one_or_list(config.end_tokens),
        "torch_dtype": dtype,
    }
    return content | _family_fields(config)


def _family_fields(config: DecoderConfig) -> dict[str, Any]:
    if config.family == "llama":
        return {"attention_bias": config.qkv_bias, "mlp_bias": config.mlp_bias}
    if config.family == "mistral":
        return {"sliding_window": config.window_tokens}
    window = {
        "use_sliding_window": config.window_tokens is not None,
        "sliding_window": config.window_tokens,
        "max_window_layers": 0 if config.window_tokens is not None else config.layers,
    }
    return window | ({"attention_bias": config.qkv_bias} if config.family == "qwen3" else {})


def generation_config(config: DecoderConfig) -> dict[str, Any]:
    """The generation_config.json: which tokens begin and end a text."""
    return {"bos_token_id": config.begin_token, "eos_token_id": _one_or_list(config.end_tokens)}


def _one_or_list(tokens: tuple[int, ...]) -> int | list[int] | None:
    return list(tokens) if len(tokens) > 1 else next(iter(tokens), None)
