"""Feed-forward parts: plain, gated, and mixtures of experts."""

from __future__ import annotations

from servewise.modelspec.families.network import linear
from servewise.modelspec.fields import Fields
from servewise.modelspec.spec import FeedForward

NO_FEED_FORWARD = FeedForward()


def gated(hidden: int, intermediate: int, *, bias: bool = False) -> int:
    """Parameters of gate, up and down matrices (SwiGLU, GeGLU; Shazeer 2020).

    >>> gated(2, 5)
    30
    """
    return 2 * linear(hidden, intermediate, bias) + linear(intermediate, hidden, bias)


def plain(hidden: int, intermediate: int, *, bias: bool = False) -> int:
    """Parameters of up and down matrices."""
    return linear(hidden, intermediate, bias) + linear(intermediate, hidden, bias)


def dense(fields: Fields, name: str = "intermediate_size", *, bias: bool = False) -> FeedForward:
    """A gated feed-forward part of the config's ``intermediate_size``."""
    return FeedForward(dense_parameters=gated(fields.count("hidden_size"), fields.count(name), bias=bias))


def mixture(
    fields: Fields,
    *,
    experts: int,
    per_token: int,
    expert_parameters: int,
    shared_parameters: int = 0,
    score_correction: bool = False,
    router_bias: bool = False,
) -> FeedForward:
    """Routed experts beside what every token uses: the router and the shared experts.

    ``score_correction`` is the router's bias on the scores, one an expert (DeepSeek-V3).
    """
    if per_token > experts:
        raise fields.wrong("the experts used by a token", per_token, f"at most the number of experts ({experts})")
    router = linear(fields.count("hidden_size"), experts, router_bias) + experts * score_correction
    return FeedForward(
        dense_parameters=router + shared_parameters,
        experts=experts,
        experts_per_token=per_token,
        expert_parameters=expert_parameters,
    )
