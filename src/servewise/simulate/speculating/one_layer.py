"""Draft heads as models of one layer on the target's hidden state: EAGLE, multi-token prediction, Medusa.

They use the target's own embedding, and its output projection where they have none: those weigh nothing here, though
their products are counted. ``deployment`` with such a model gives its bytes, its KV and its step times.
"""

from __future__ import annotations

from dataclasses import replace

from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.modelspec.spec import Attention, AttentionKind, FeedForward, Layers, ModelSpec

EAGLE3_VOCABULARY = (
    32_000  # tokens that EAGLE-3's published heads can draft (d2t, SafeAILab/EAGLE eagle/model/cnets.py)
)
FEED_FORWARD_WIDTH = 3  # inner width over hidden, of a dense head on a mixture, as SpecForge's heads have it


def eagle(target: Deployment, *, draft_vocabulary: int | None = None) -> Deployment:
    """EAGLE's head: one dense layer of the target's kind after a projection of 2 hidden vectors into one.

    Li et al. 2024 (arXiv:2401.15077). With ``draft_vocabulary`` it is EAGLE-3's (Li et al. 2025, arXiv:2503.01840):
    three layers' features are projected, the layer's attention reads two vectors, and its own output projection knows
    the most frequent tokens alone. In 16 bits whatever the target's format, as published.
    """
    model = target.model
    layer = _attending(model)
    hidden, inputs = model.hidden_size, 2 if draft_vocabulary is None else 3
    dense = layer.feed_forward.dense_parameters
    if layer.feed_forward.experts:
        dense = 3 * FEED_FORWARD_WIDTH * hidden * hidden
    attention = layer.attention
    if draft_vocabulary is not None:
        attention = replace(attention, parameters=attention.parameters + _read_parameters(attention, hidden))
    head = replace(
        _head_of(model, f"{model.name} {'EAGLE' if draft_vocabulary is None else 'EAGLE-3'}"),
        layers=(replace(layer, count=1, attention=attention, feed_forward=FeedForward(dense_parameters=dense)),),
        weights=model.dtype,
        part_formats=(),
    )
    head = _with_projection(head, inputs)
    if draft_vocabulary is not None:
        size = min(draft_vocabulary, model.vocab_size)
        head = replace(head, vocab_size=size, head_parameters=size * hidden)
    return replace(target, model=head, weights=None)


def multi_token_prediction(target: Deployment) -> Deployment:
    """One more layer of the target as its checkpoint has it, its experts too, after a projection of 2 vectors into one.

    DeepSeek-V3 (arXiv:2412.19437), section 2.2; vllm/model_executor/models/deepseek_mtp.py (v0.11) runs it K times.
    """
    model = target.model
    head = replace(_head_of(model, f"{model.name} MTP"), layers=(replace(_attending(model), count=1),))
    return replace(target, model=_with_projection(head, 2))


def medusa_head(target: Deployment) -> Deployment:
    """One of Medusa's heads: a residual block (hidden x hidden) and an output projection of its own, in 16 bits.

    Cai et al. 2024 (arXiv:2401.10774), section 2.1. It holds no KV.
    """
    model = target.model
    block = Layers(
        count=1,
        attention=Attention(kind=AttentionKind.NONE),
        feed_forward=FeedForward(dense_parameters=model.hidden_size**2),
    )
    head = replace(
        _head_of(model, f"{model.name} Medusa"),
        layers=(block,),
        head_parameters=model.hidden_size * model.vocab_size,
        weights=model.dtype,
        part_formats=(),
    )
    return replace(target, model=head, weights=None)


def _head_of(model: ModelSpec, name: str) -> ModelSpec:
    """``model`` without what a head shares with it or does not have."""
    return replace(
        model,
        name=name,
        embedding_parameters=0,
        head_parameters=0,
        final_norm_parameters=model.hidden_size,
        quantised_parameters=None,
        checkpoint_bytes=None,
        stored_bytes=(),
        drafting_parameters=0,
        tower_parameters=0,
    )


def _with_projection(head: ModelSpec, inputs: int) -> ModelSpec:
    """``head`` with a product of ``inputs`` x hidden by hidden before its layer."""
    (layer,) = head.layers
    wider = layer.feed_forward.dense_parameters + inputs * head.hidden_size**2
    return replace(head, layers=(replace(layer, feed_forward=replace(layer.feed_forward, dense_parameters=wider)),))


def _read_parameters(attention: Attention, hidden: int) -> int:
    """What a second input vector adds to the query, key and value projections; the output's stays."""
    return max(0, attention.parameters - attention.value_width * hidden)


def _attending(model: ModelSpec) -> Layers:
    """The target's largest layer that attends to all tokens, or to a window where none does."""
    kinds = [each for each in model.layers if each.attention.kv_values_per_token]
    if not kinds:
        raise InputError(f"{model.name} has no attention layer for a draft head to copy", where="speculate")
    return max(kinds, key=lambda each: (each.attention.window_tokens is None, each.parameters))
