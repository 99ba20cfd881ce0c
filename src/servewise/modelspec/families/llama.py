"""The Llama line: pre-norm RMSNorm, grouped-query attention, gated feed-forward (Touvron et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from servewise.modelspec.families.attention import Heads, grouped_query, read_heads, windowed_layers
from servewise.modelspec.families.feed_forward import dense
from servewise.modelspec.families.network import Network, drafting_layers, grouped, layer_count
from servewise.modelspec.fields import Fields
from servewise.modelspec.spec import Attention, FeedForward


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a family differs from Llama; the fields that a config may carry override it.

    ``kv_heads`` and ``head_dim`` are the family's defaults in transformers (None: heads, and hidden_size / heads).
    ``norms`` are the norms of a layer, ``norm_weights`` the weights a dimension of each norm (2: weight and bias, 0: a
    norm without parameters). ``qkv_bias`` and ``out_bias`` None: the config's ``attention_bias``,
    ``mlp_bias`` None: its ``mlp_bias``, both false by default.
    """

    tied: bool = False
    kv_heads: int | None = None
    head_dim: int | None = None
    qkv_bias: bool | None = None
    out_bias: bool | None = None
    mlp_bias: bool | None = None
    head_norm: bool = False
    wide_norm: bool = False
    norms: int = 2
    norm_weights: int = 1


def read_attention(fields: Fields, style: Style, size: Heads, window_tokens: int | None = None) -> Attention:
    """The attention of a layer in ``style``."""
    bias = fields.flag("attention_bias", default=False)
    return grouped_query(
        size,
        qkv_bias=bias if style.qkv_bias is None else style.qkv_bias,
        out_bias=bias if style.out_bias is None else style.out_bias,
        head_norm=style.head_norm,
        wide_norm=style.wide_norm,
        window_tokens=window_tokens,
    )


def read_window(fields: Fields, default: int | None = None) -> int | None:
    """The config's ``sliding_window``; one that no context reaches is none."""
    if "sliding_window" in fields.values and not fields.has("sliding_window"):
        return None
    window = fields.count("sliding_window", default=default or 0, least=0)
    longest = fields.count("max_position_embeddings", default=0, least=0)
    return window if window and not (longest and window >= longest) else None


def llama_like(fields: Fields, style: Style, windows: list[bool] | None = None, window: int | None = None) -> Network:
    """A network of equal layers but for their windows: ``windows`` says which layers have one."""
    count, size = layer_count(fields), read_heads(fields, kv_heads=style.kv_heads, head_dim=style.head_dim)
    bias = fields.flag("mlp_bias", default=False) if style.mlp_bias is None else style.mlp_bias
    feed_forward = dense(fields, bias=bias)
    return assemble(fields, style, size, [feed_forward] * count, windows or [False] * count, window)


def assemble(
    fields: Fields,
    style: Style,
    size: Heads,
    feed_forwards: list[FeedForward],
    windows: list[bool],
    window: int | None,
) -> Network:
    """The network of these feed-forward parts, one a layer, with attention in ``style``."""
    norm = style.norm_weights * size.hidden
    full, windowed = (read_attention(fields, style, size, each) for each in (None, window))
    return Network(
        layers=grouped(
            (windowed if narrow else full, feed_forward, style.norms * norm)
            for narrow, feed_forward in zip(windows, feed_forwards, strict=True)
        ),
        tied=fields.flag("tie_word_embeddings", default=style.tied),
        final_norm_parameters=norm,
        uncounted=drafting_layers(fields),
    )


def llama(fields: Fields) -> Network:
    """Llama 1 to 3 and its kin (Yi, CodeLlama, TinyLlama, SmolLM2, Salamandra, DeepSeek LLM)."""
    return llama_like(fields, Style())


def mistral(fields: Fields) -> Network:
    """Mistral: 8 KV heads and a window of 4,096 where the config is silent (``null`` means no window)."""
    window = read_window(fields, default=4096)
    return llama_like(fields, Style(kv_heads=8), [window is not None] * layer_count(fields), window)


def qwen2(fields: Fields) -> Network:
    """Qwen 2 and 2.5: biases on q, k, v; a window in layers from ``max_window_layers`` on, if switched on."""
    windows, window = qwen_windows(fields)
    return llama_like(fields, Style(qkv_bias=True, out_bias=False, kv_heads=32), windows, window)


def qwen3(fields: Fields) -> Network:
    """Qwen 3: a norm over each query and key head, no biases."""
    windows, window = qwen_windows(fields)
    return llama_like(fields, Style(head_norm=True, kv_heads=32, head_dim=128), windows, window)


def qwen_windows(fields: Fields) -> tuple[list[bool], int | None]:
    """Which layers of a Qwen model have a window; none, unless ``use_sliding_window``."""
    count = layer_count(fields)
    window = read_window(fields, default=4096) if fields.flag("use_sliding_window", default=False) else None
    first = fields.count("max_window_layers", default=28, least=0)
    windows = windowed_layers(fields, count, default=[index >= first for index in range(count)])
    return ([each and window is not None for each in windows], window)


def phi3(fields: Fields) -> Network:
    """Phi-3, 3.5, 4 and 4-mini: fused q/k/v and gate/up matrices, the same counts as Llama's."""
    window = read_window(fields)
    return llama_like(fields, Style(), [window is not None] * layer_count(fields), window)


def olmo(fields: Fields) -> Network:
    """OLMo: LayerNorm without parameters."""
    return llama_like(fields, Style(norm_weights=0))


def olmo2(fields: Fields) -> Network:
    """OLMo 2: norms after each part, and one over all query and all key heads."""
    return llama_like(fields, Style(wide_norm=True))


def stablelm(fields: Fields) -> Network:
    """StableLM: LayerNorm with bias, partial rotary embedding; one norm a layer where residuals run in parallel."""
    if fields.flag("qk_layernorm", default=False):
        raise fields.wrong("qk_layernorm", True, "false (a norm a head is not counted yet)")
    norms = 1 if fields.flag("use_parallel_residual", default=False) else 2
    bias = fields.flag("use_qkv_bias", default=False)
    style = Style(norm_weights=2, norms=norms, qkv_bias=bias, out_bias=False, kv_heads=32)
    return llama_like(fields, style)


def gemma(fields: Fields) -> Network:
    """Gemma: tied embedding, heads of 256."""
    return llama_like(fields, Style(tied=True, head_dim=256, kv_heads=16))


def gemma2(fields: Fields) -> Network:
    """Gemma 2: norms before and after each part, a window in every second layer from the first."""
    count = layer_count(fields)
    windows = windowed_layers(fields, count, default=[index % 2 == 0 for index in range(count)])
    return llama_like(fields, GEMMA2, windows, read_window(fields, default=4096))


GEMMA2 = Style(tied=True, head_dim=256, kv_heads=4, norms=4)


def gemma3(fields: Fields) -> Network:
    """Gemma 3: Gemma 2 with a norm a head and five windowed layers to a full one."""
    count, pattern = layer_count(fields), fields.count("sliding_window_pattern", "_sliding_window_pattern", default=6)
    windows = windowed_layers(fields, count, default=[(index + 1) % pattern != 0 for index in range(count)])
    return llama_like(fields, replace(GEMMA2, head_norm=True), windows, read_window(fields, default=4096))


def smollm3(fields: Fields) -> Network:
    """SmolLM3: Llama's layers, some without rotary embedding."""
    return llama_like(fields, Style(tied=True, kv_heads=4))
