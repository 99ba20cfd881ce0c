"""The message that a pipeline stage hands on: the activations of a step's new tokens."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.deployment.deployment import Deployment
from servewise.steptime.gemms import OUTPUT_BYTES
from servewise.steptime.link import UNLINKED, LinkTime, link_time

# Tensors of tokens x hidden values that engines hand on: the hidden states and, where norms are fused with the
# addition, the residual beside them (vllm/model_executor/models/llama.py make_empty_intermediate_tensors, v0.9;
# sglang/srt/models/llama.py PPProxyTensors). They send a slice from each tensor-parallel rank and gather
# it behind (vllm/distributed/parallel_state.py send_tensor_dict).
TENSORS = {"vllm": 2, "sglang": 2}


@dataclass(frozen=True, slots=True)
class Hop:
    """One stage to the next: ``bytes_per_token`` on each rank's link [bytes], at the link's time."""

    bytes_per_token: float
    link: LinkTime

    def seconds(self, tokens: int) -> float:
        """The time of the message of a step of ``tokens`` new tokens [s]."""
        return self.link.seconds(self.bytes_per_token * tokens)


def hop_of(deployment: Deployment, over: LinkTime | None = None) -> Hop:
    """The hop between two pipeline stages of ``deployment``, over its accelerators' link or ``over`` another.

    bytes a token = tensors x hidden x 2 / tensor-parallel ranks.
    """
    if over is None:
        over = link_time(deployment.accelerator if deployment.accelerator.link else UNLINKED)
    tensors = TENSORS.get(deployment.engine.partition("-")[0], 1)
    size = tensors * deployment.model.hidden_size * OUTPUT_BYTES / deployment.parallelism.tensor
    return Hop(size, over)
