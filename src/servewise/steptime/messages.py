"""The time of a step's communication between accelerators."""

from __future__ import annotations

from servewise.deployment.deployment import Deployment
from servewise.steptime.coefficients import Coefficients
from servewise.steptime.gemms import OUTPUT_BYTES


class Messages:
    """Communication of a step, by its new tokens.

    Two all-reduces a layer over the tensor-parallel ranks (after attention, after the feed-forward); with expert
    parallelism the latter spans the data ranks too and carries the tokens of all of them: vLLM gathers all and scatters
    the sums (``allgather_reducescatter``, its default), which moves what an all-reduce of all tokens does. A pipeline
    stage hands its activations on in half an all-reduce of two ranks (assumed); decode context parallelism
    gathers and scatters once more a layer. The ranks hold a share of the vocabulary each and gather the logits, which
    moves half of what an all-reduce of as many bytes does.
    """

    def __init__(self, deployment: Deployment, coefficients: Coefficients) -> None:
        self._coefficients = coefficients
        parallelism, groups = deployment.parallelism, deployment.model.layers
        self._bytes_per_token = OUTPUT_BYTES * deployment.model.hidden_size
        self._tensor = tensor = parallelism.tensor
        self._logit_bytes_per_row = coefficients.logit_bytes * deployment.model.vocab_size
        spread = tensor * parallelism.data if parallelism.expert else tensor
        mixers = sum(group.count for group in groups if group.attention.parameters)
        dense = sum(g.count for g in groups if g.feed_forward.parameters and not g.feed_forward.experts)
        experts = sum(g.count for g in groups if g.feed_forward.experts)
        sharing = mixers if parallelism.decode_context > 1 else 0
        replicas = parallelism.data if parallelism.expert else 1
        self._calls = (
            (tensor, mixers + dense + sharing, 1),
            (spread, experts, replicas),
            (2, 0.5 * (parallelism.pipeline - 1), 1),
        )

    def seconds(self, tokens: int) -> float:
        """All messages of a step [s]."""
        if not tokens:
            return 0.0
        size = self._bytes_per_token * tokens
        known = self._coefficients
        return sum(count * known.all_reduce_s(ranks, times * size) for ranks, count, times in self._calls if count)

    def logits_s(self, rows: int) -> float:
        """The logits of ``rows`` positions, gathered [s]."""
        if not rows or not self._logit_bytes_per_row:
            return 0.0
        return self._coefficients.all_reduce_s(self._tensor, 0.5 * self._logit_bytes_per_row * rows)
