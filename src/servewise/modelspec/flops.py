"""FLOPs of a model: two a parameter and token, plus attention by query-key pairs."""

from __future__ import annotations

from servewise.modelspec.spec import Attention, ModelSpec


def layer_linear_flops_per_token(model: ModelSpec) -> float:
    """FLOPs of all layers for one token, without attention scores and without the head [FLOP].

    2 x the active parameters (Kaplan et al. 2020, eq. 2.2), and 4 a value of a recurrent state (decay and write, read;
    a lower bound for Mamba-2 and DeltaNet alike). Norms and biases are counted too, under 0.1%.
    """
    return 2.0 * sum(
        group.count * (group.active_parameters + 2 * group.attention.state_values) for group in model.layers
    )


def head_flops_per_token(model: ModelSpec) -> float:
    """FLOPs of the output projection for one position whose logits are wanted [FLOP]."""
    return 2.0 * model.hidden_size * model.vocab_size


def attention_flops_per_pair(model: ModelSpec, *, windowed: bool, absorbed: bool = False) -> float:
    """FLOPs of one query-key pair summed over the layers with a limit on what is read, or over those without [FLOP].

    2 x (score_width + value_width) a layer (Dao et al. 2022, section 2); softmax is left out, under 2%. ``absorbed``:
    MLA as engines decode it, each head on the latent (DeepSeek-V2, section 2.1.2), 3.4 times the work of its own
    widths. In sparse attention the pairs without limit cost the indexer's scores only. A chunked layer counts as a
    window of the chunk's length: up to twice its pairs, since a chunk starts empty.
    """
    return 2.0 * sum(count * _pair_width(each, windowed, absorbed) for count, each in model.attentions())


def _pair_width(attention: Attention, windowed: bool, absorbed: bool) -> int:
    limited = bool(attention.window_tokens or attention.attended_tokens)
    if limited != windowed:
        return attention.index_width if attention.attended_tokens else 0
    if absorbed and attention.absorbed_score_width:
        return attention.absorbed_score_width + attention.absorbed_value_width
    return attention.score_width + attention.value_width


def prefill_flops(model: ModelSpec, new_tokens: int, computed_tokens: int = 0, logit_rows: int = 1) -> float:
    """FLOPs of prefilling ``new_tokens`` after ``computed_tokens`` cached ones, with logits of ``logit_rows`` [FLOP].

    Each position attends to itself and to all before it, or to the last ``read_window_tokens``.
    """
    window = model.read_window_tokens
    return (
        layer_linear_flops_per_token(model) * new_tokens
        + attention_flops_per_pair(model, windowed=False) * causal_pairs(computed_tokens, new_tokens)
        + attention_flops_per_pair(model, windowed=True) * causal_pairs(computed_tokens, new_tokens, window)
        + head_flops_per_token(model) * logit_rows
    )


def decode_flops(model: ModelSpec, context_tokens: int) -> float:
    """FLOPs of decoding one token that attends to ``context_tokens`` tokens, itself included [FLOP]."""
    read = min(context_tokens, model.read_window_tokens or context_tokens)
    return (
        layer_linear_flops_per_token(model)
        + attention_flops_per_pair(model, windowed=False, absorbed=True) * context_tokens
        + attention_flops_per_pair(model, windowed=True, absorbed=True) * read
        + head_flops_per_token(model)
    )


def causal_pairs(computed_tokens: int, new_tokens: int, window: int | None = None) -> int:
    """Query-key pairs of ``new_tokens`` positions after ``computed_tokens``, at most ``window`` keys a query.

    >>> causal_pairs(0, 3), causal_pairs(0, 4, 2), causal_pairs(10, 2, 4)
    (6, 7, 8)
    """
    end = computed_tokens + new_tokens
    return pairs(computed_tokens, end) if window is None else windowed_pairs(computed_tokens, end, window)


def pairs(start: int, end: int) -> int:
    """Query-key pairs of positions ``start`` to ``end`` - 1, each attending to itself and all before it.

    >>> pairs(0, 3), pairs(2, 3)
    (6, 3)
    """
    return (end * (end + 1) - start * (start + 1)) // 2


def windowed_pairs(start: int, end: int, window: int) -> int:
    """The same with each position attending to at most ``window`` positions, itself included.

    >>> windowed_pairs(0, 4, 2)
    7
    """
    bend = min(max(start, window), end)
    return pairs(start, bend) + window * (end - bend)
