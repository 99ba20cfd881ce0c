"""Vision towers that a checkpoint holds beside its language model: what they add to the weights.

Counted are those whose ``vision_config`` has a known ``model_type``, as transformers 5.24 allocates them with their
projector. They cost memory once; their compute is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable

from servewise.modelspec.families.network import layer_count, linear
from servewise.modelspec.fields import Fields


def _block(hidden: int, intermediate: int) -> int:
    """An encoder block: q, k, v, output and a plain feed-forward part, all with biases, and two LayerNorms."""
    attention = 4 * linear(hidden, hidden, True)
    return attention + linear(hidden, intermediate, True) + linear(intermediate, hidden, True) + 4 * hidden


def _positions(vision: Fields) -> int:
    side = vision.count("image_size") // vision.count("patch_size", most=vision.count("image_size"))
    return side * side


def siglip(vision: Fields, text_hidden: int) -> int:
    """SigLIP with Gemma 3's projector: a matrix to the text width and a norm before it."""
    hidden = vision.count("hidden_size")
    patch = linear(vision.count("num_channels", default=3) * vision.count("patch_size") ** 2, hidden, True)
    blocks = layer_count(vision) * _block(hidden, vision.count("intermediate_size"))
    return patch + _positions(vision) * hidden + blocks + 2 * hidden + linear(hidden, text_hidden) + hidden


def llama4_vision(vision: Fields, text_hidden: int) -> int:
    """Llama 4's tower: a class token, norms before and after, an adapter behind pixel shuffle, a projector."""
    hidden, width = vision.count("hidden_size"), vision.count("intermediate_size")
    patch = linear(vision.count("num_channels", default=3) * vision.count("patch_size") ** 2, hidden)
    blocks = layer_count(vision) * _block(hidden, width)
    adapter_in, adapter_out = vision.count("projector_input_dim"), vision.count("projector_output_dim")
    adapter = linear(width, adapter_in) + linear(adapter_in, adapter_out)
    projector = linear(vision.count("vision_output_dim"), text_hidden)
    return patch + hidden + (_positions(vision) + 1) * hidden + 4 * hidden + blocks + adapter + projector


def qwen_vision(vision: Fields, _text_hidden: int) -> int:
    """The tower of Qwen3-VL and Qwen 3.5: patches over two frames, learned positions, one merger and deepstack's."""
    hidden, merged = vision.count("hidden_size"), vision.count("spatial_merge_size", default=2) ** 2
    frames = vision.count("temporal_patch_size", default=2)
    values = vision.count("in_channels", "in_chans", default=3) * frames * vision.count("patch_size") ** 2
    blocks = layer_count(vision, "depth") * _block(hidden, vision.count("intermediate_size"))
    wide, out = merged * hidden, vision.count("out_hidden_size")
    merger = linear(wide, wide, True) + linear(wide, out, True)
    deep = len(vision.listed("deepstack_visual_indexes") or ())
    positions = vision.count("num_position_embeddings") * hidden
    return linear(values, hidden, True) + positions + blocks + merger + 2 * hidden + deep * (merger + 2 * wide)


TOWERS: dict[str, Callable[[Fields, int], int]] = {
    "siglip_vision_model": siglip,
    "llama4_vision_model": llama4_vision,
    "qwen3_vl": qwen_vision,
    "qwen3_vl_vision": qwen_vision,
    "qwen3_vl_moe": qwen_vision,
    "qwen3_vl_moe_vision": qwen_vision,
    "qwen3_5": qwen_vision,
    "qwen3_5_vision": qwen_vision,
    "qwen3_5_moe": qwen_vision,
    "qwen3_5_moe_vision": qwen_vision,
}


def tower_parameters(outer: Fields, text_hidden: int) -> int | None:
    """Parameters of the vision tower; 0 where there is none, None where it is of a kind that is not known."""
    vision = outer.part("vision_config")
    if vision is None or not vision.values:
        return 0
    reader = TOWERS.get(vision.text("model_type"))
    if reader is None:
        return None
    count = reader(vision, text_hidden)
    vision.check()
    return count
