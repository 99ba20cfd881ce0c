"""The matrix products of one step, call by call: what launch costs and rooflines apply to."""

from __future__ import annotations

from typing import NamedTuple

from servewise.deployment.deployment import Deployment
from servewise.modelspec.spec import AttentionKind, FeedForward, Layers, WeightPart
from servewise.steptime.expert_parallel import HotRank, hot_rank
from servewise.steptime.work import Experts, attention_parameters_on_rank, experts_of, stored_bits

OUTPUT_BYTES = 2  # engines keep the products' results in 16 bits

# Products before the output projection. MLA: down-projections, query up, key up and value up (absorbed).
INPUT_PRODUCTS = {AttentionKind.LATENT: 4, AttentionKind.STATE: 2}


class Gemm(NamedTuple):
    """``calls`` equal products a step on one rank.

    One call reads ``weights`` (for a dense product all of them, whatever the tokens), computes ``flops_per_token``
    and moves ``activation_bytes_per_token`` for each new token. ``hot``: experts lie whole on the ranks; the fullest
    rank's time is the step's.
    """

    calls: int
    weights: Experts
    flops_per_token: float
    activation_bytes_per_token: float
    hot: HotRank | None = None

    def read_bytes(self, tokens: int) -> float:
        """Weight bytes that one call of a step of ``tokens`` new tokens reads on the fullest rank."""
        even = 1.0 - self.weights.unread**tokens
        return self.weights.bytes * (even if self.hot is None else self.hot.read_share(tokens, even))

    def work_tokens(self, tokens: int) -> float:
        """The tokens whose FLOPs and activations the fullest rank has, in a step of ``tokens`` new tokens."""
        return tokens if self.hot is None else self.hot.tokens(tokens)


def layer_gemms(deployment: Deployment) -> tuple[Gemm, ...]:
    """The products of all layers on one rank. Their bytes and FLOPs sum to those of ``Work``."""
    found = [
        each
        for group in deployment.model.layers
        for each in (*_attention(deployment, group), *_dense(deployment, group), *_experts(deployment, group))
    ]
    return tuple(each for each in found if each.weights.bytes or each.flops_per_token)


def head_gemm(deployment: Deployment) -> Gemm:
    """The output projection; its tokens are the rows whose logits are wanted."""
    model, tensor = deployment.model, deployment.parallelism.tensor
    table = WeightPart.EMBEDDING if model.tied else WeightPart.HEAD
    values = model.hidden_size * model.vocab_size
    size = (model.head_parameters or values) * stored_bits(deployment)[table] / 8 / tensor
    moved = OUTPUT_BYTES * (model.vocab_size / tensor + model.hidden_size)
    return Gemm(1, Experts(size, 0.0), 2.0 * values / tensor, moved)


def feed_forward_width(part: FeedForward, hidden: int) -> float:
    """Activated values between the products of a gated feed-forward, for one token (three equal matrices)."""
    return (part.dense_parameters + part.experts_per_token * part.expert_parameters) / (3.0 * hidden)


def _attention(deployment: Deployment, group: Layers) -> tuple[Gemm, Gemm]:
    """The projections into attention (norms and recurrent state with them) and out of it."""
    hidden, tensor = deployment.model.hidden_size, deployment.parallelism.tensor
    bits, each = stored_bits(deployment), group.attention
    stored = deployment.activations.bits / 8
    out = min(each.value_width * hidden / tensor, attention_parameters_on_rank(group, tensor))
    inner = attention_parameters_on_rank(group, tensor) - out
    norms = group.norm_parameters / tensor
    calls = INPUT_PRODUCTS.get(each.kind, 1)
    size = (inner * bits[WeightPart.ATTENTION] + norms * bits[WeightPart.NORMS]) / 8 / calls
    flops = 2.0 * (inner + norms + 2 * each.state_values / tensor) / calls
    moved_in = hidden * stored + inner / calls / hidden * OUTPUT_BYTES
    moved_out = each.value_width / tensor * stored + hidden * OUTPUT_BYTES
    return (
        Gemm(group.count * calls, Experts(size, 0.0), flops, moved_in),
        Gemm(group.count, Experts(out * bits[WeightPart.ATTENTION] / 8, 0.0), 2.0 * out, moved_out),
    )


def _dense(deployment: Deployment, group: Layers) -> tuple[Gemm, Gemm]:
    parameters = group.feed_forward.dense_parameters
    size = parameters * stored_bits(deployment)[WeightPart.FEED_FORWARD] / 8 / deployment.parallelism.tensor
    return _up_and_down(deployment, group.count, parameters, Experts(size, 0.0), 1)


def _experts(deployment: Deployment, group: Layers) -> tuple[Gemm, ...]:
    part = group.feed_forward
    if not part.experts:
        return ()
    weights = experts_of(part, deployment.parallelism, stored_bits(deployment)[WeightPart.EXPERTS])
    hot = hot_rank(deployment, part)
    whole = hot is not None
    calls = _up_and_down(
        deployment, group.count, part.expert_parameters, weights, part.experts_per_token, whole_experts=whole
    )
    return tuple(each._replace(hot=hot) for each in calls)


def _up_and_down(
    deployment: Deployment,
    layers: int,
    parameters: int,
    weights: Experts,
    times: int,
    *,
    whole_experts: bool = False,
) -> tuple[Gemm, Gemm]:
    """Gate with up (two thirds), and down (one third), of a feed-forward that each token enters ``times`` times.

    A rank with slices moves every token's hidden values; one with ``whole_experts`` those of the tokens that call on
    them, its part of all.
    """
    hidden, tensor = deployment.model.hidden_size, deployment.parallelism.tensor
    width, stored = parameters / (3.0 * hidden) / tensor, deployment.activations.bits / 8
    flops = 2.0 * times * parameters / tensor
    values = hidden / tensor if whole_experts else float(hidden)
    moved_up = times * (values * stored + 2 * width * OUTPUT_BYTES)
    moved_down = times * (width * stored + values * OUTPUT_BYTES)
    return (
        Gemm(layers, Experts(weights.bytes * 2 / 3, weights.unread), flops * 2 / 3, moved_up),
        Gemm(layers, Experts(weights.bytes / 3, weights.unread), flops / 3, moved_down),
    )
