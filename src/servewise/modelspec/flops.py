"""FLOPs of a model: two a parameter and token, plus attention by query-key pairs."""

from __future__ import annotations

from servewise.modelspec.spec import ModelSpec


def layer_linear_flops_per_token(model: ModelSpec) -> float:
    """FLOPs of all layers' matrix products for one token, without attention scores and without the head [FLOP].

    2 x the active matrix parameters (Kaplan et al. 2020, eq. 2.2); norms are counted too, under 0.01%.
    """
    return 2.0 * sum(group.count * group.active_parameters for group in model.layers)


def head_flops_per_token(model: ModelSpec) -> float:
    """FLOPs of the output projection for one position whose logits are wanted [FLOP]."""
    return 2.0 * model.hidden_size * model.vocab_size


def attention_flops_per_pair(model: ModelSpec, *, windowed: bool) -> float:
    """FLOPs of one query-key pair summed over the layers with a window, or over those without [FLOP].

    2 x (score_width + value_width) a layer (Dao et al. 2022, section 2); softmax is left out, under 2%.
    """
    return 2.0 * sum(
        count * (each.score_width + each.value_width)
        for count, each in model.attentions()
        if bool(each.window_tokens) == windowed
    )
