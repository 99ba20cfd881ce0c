"""The time of a step's communication between accelerators."""

from __future__ import annotations

from servewise.deployment.deployment import Deployment
from servewise.steptime.coefficients import Coefficients
from servewise.steptime.expert_parallel import AllToAll, all_to_all_of
from servewise.steptime.gemms import OUTPUT_BYTES
from servewise.steptime.hop import hop_of

SENDING = ("sglang", "trtllm")  # engines whose experts over data-parallel ranks are reached by all-to-all


class Messages:
    """Communication of a step, by its new tokens.

    Two all-reduces a layer over the tensor-parallel ranks (after attention, after the feed-forward); with expert
    parallelism the latter spans the data ranks too and carries the tokens of all of them: vLLM gathers all and scatters
    the sums (``allgather_reducescatter``, its default), which moves what an all-reduce of all tokens does; SGLang and
    TensorRT-LLM send each token to its experts' ranks and back (``all_to_all_s``). A pipeline stage hands its
    activations on (``Hop``); decode context parallelism gathers and scatters once more a layer. The ranks hold a share
    of the vocabulary each and gather the logits, which moves half of what an all-reduce of as many bytes does.
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
        self._sent = _all_to_all(deployment) if parallelism.expert and parallelism.data > 1 else ()
        self._calls = (
            (tensor, mixers + dense + sharing, 1),
            (spread, 0 if self._sent else experts, replicas),
        )
        self._hops = parallelism.pipeline - 1
        self._hop = hop_of(deployment) if self._hops else None

    def seconds(self, tokens: int) -> float:
        """All messages of a step [s]."""
        if not tokens:
            return 0.0
        size = self._bytes_per_token * tokens
        known = self._coefficients
        found = sum(count * known.all_reduce_s(ranks, times * size) for ranks, count, times in self._calls if count)
        found += sum(count * each.seconds(tokens) for count, each in self._sent)
        return found + self._hops * self._hop.seconds(tokens) if self._hop is not None else found

    def logits_s(self, rows: int) -> float:
        """The logits of ``rows`` positions, gathered [s]."""
        if not rows or not self._logit_bytes_per_row:
            return 0.0
        return self._coefficients.all_reduce_s(self._tensor, 0.5 * self._logit_bytes_per_row * rows)


def _all_to_all(deployment: Deployment) -> tuple[tuple[int, AllToAll], ...]:
    """(layers, message) for each kind of layer whose tokens are sent to their experts."""
    if deployment.engine.partition("-")[0] not in SENDING:
        return ()
    groups = [(group.count, group.feed_forward) for group in deployment.model.layers if group.feed_forward.experts]
    return tuple((count, all_to_all_of(deployment, part)) for count, part in groups)
