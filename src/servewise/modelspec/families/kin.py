"""Llama's further kin: families that differ from it by a bias, a norm, a default or a pattern of windows."""

from __future__ import annotations

from servewise.modelspec.families.attention import windowed_layers
from servewise.modelspec.families.llama import Style, llama_like, read_window
from servewise.modelspec.families.network import Network, layer_count
from servewise.modelspec.fields import Fields


def granite(fields: Fields) -> Network:
    """Granite 3: Llama's layers with multipliers, which have no parameters."""
    return llama_like(fields, Style())


def ministral3(fields: Fields) -> Network:
    """Ministral 3: 8 KV heads and heads of 128 where the config is silent, a window only if one is given."""
    window = read_window(fields)
    return llama_like(fields, Style(kv_heads=8, head_dim=128), [window is not None] * layer_count(fields), window)


def seed_oss(fields: Fields) -> Network:
    """Seed-OSS: biases on q, k, v by default, one on the output if ``attention_out_bias``."""
    style = Style(
        kv_heads=8,
        head_dim=128,
        qkv_bias=fields.flag("attention_bias", default=True),
        out_bias=fields.flag("attention_out_bias", default=False),
    )
    return llama_like(fields, style)


def ernie4_5(fields: Fields) -> Network:
    """ERNIE 4.5, dense: one ``use_bias`` for all matrices, tied."""
    bias = fields.flag("use_bias", default=False)
    return llama_like(fields, Style(tied=True, kv_heads=2, head_dim=128, qkv_bias=bias, out_bias=bias, mlp_bias=bias))


def glm(fields: Fields) -> Network:
    """GLM-4-9B: biases on q, k, v by default, 2 KV heads."""
    return llama_like(fields, _glm_style(fields, norms=2))


def glm4(fields: Fields) -> Network:
    """GLM-4-0414: GLM with norms before and after each part."""
    return llama_like(fields, _glm_style(fields, norms=4))


def _glm_style(fields: Fields, norms: int) -> Style:
    bias = fields.flag("attention_bias", default=True)
    return Style(qkv_bias=bias, out_bias=False, kv_heads=2, head_dim=128, norms=norms)


def olmo3(fields: Fields) -> Network:
    """OLMo 3: OLMo 2 with a window in three of four layers."""
    return _every_fourth_full(fields, Style(wide_norm=True))


def exaone4(fields: Fields) -> Network:
    """EXAONE 4: norms after each part and a norm a head; three of four layers in a window if one is given."""
    return _every_fourth_full(fields, Style(head_norm=True, out_bias=False, qkv_bias=False))


def cohere2(fields: Fields) -> Network:
    """Command R7B and A: one norm a layer (its parts run in parallel), tied, three of four layers in a window."""
    return _every_fourth_full(fields, Style(tied=True, norms=1))


def _every_fourth_full(fields: Fields, style: Style) -> Network:
    count, pattern = layer_count(fields), fields.count("sliding_window_pattern", default=4)
    windows = windowed_layers(fields, count, default=[(index + 1) % pattern != 0 for index in range(count)])
    return llama_like(fields, style, windows, read_window(fields, default=4096))
