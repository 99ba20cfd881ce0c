"""The batching policies, one file each; simulator and engine run them unchanged."""

from __future__ import annotations

from servewise.batching.policies.continuous import Continuous
from servewise.batching.policies.dynamic import Dynamic
from servewise.batching.policies.llamacpp import LlamaCpp
from servewise.batching.policies.policy import Policy
from servewise.batching.policies.sglang import Sglang
from servewise.batching.policies.static import Static
from servewise.batching.policies.trtllm import TrtLlm
from servewise.batching.policies.vllm import Vllm

__all__ = ["Continuous", "Dynamic", "LlamaCpp", "Policy", "Sglang", "Static", "TrtLlm", "Vllm"]
