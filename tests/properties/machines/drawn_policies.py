"""Every policy and preset, each with limits small enough to be felt, some speculating."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from hypothesis import strategies as st
from tests.batching.strategies import continuous, llamacpp, sglang, trtllm, vllm

from servewise.batching.policies import Continuous, Dynamic, LlamaCpp, Policy, Sglang, Static, TrtLlm, Vllm
from servewise.batching.speculative.acceptance import Acceptance
from servewise.batching.speculative.draft_length import FixedLength, UntilBatch
from servewise.batching.speculative.policy import Groupable, Speculative

batchwise = st.builds(Static, st.integers(1, 5)) | st.builds(Dynamic, st.integers(1, 5), st.sampled_from([0.0, 3.0]))
joining = continuous | vllm | sglang | trtllm | llamacpp


@dataclass(frozen=True)
class Fixed:
    """Makes the same draft length for each run."""

    k: int
    most: int | None = None

    def __call__(self) -> FixedLength | UntilBatch:
        """A length."""
        return FixedLength(self.k) if self.most is None else UntilBatch(self.k, self.most)


def _speculating(policy: Policy, acceptance: float, hits: float, length: Fixed, looks_ahead: bool, seed: int) -> Policy:
    wanted = cast("Groupable", policy)
    return Speculative(wanted, Acceptance((acceptance,), hits), length, seed=seed, looks_ahead=looks_ahead)


speculating = st.builds(
    _speculating,
    joining,
    st.sampled_from([0.0, 0.6, 1.0]),
    st.sampled_from([1.0, 1.0, 0.5]),
    st.builds(Fixed, st.integers(0, 4), st.none() | st.integers(1, 4)),
    st.booleans(),
    st.integers(0, 3),
)


def plain(policy: Policy) -> Policy:
    """The policy that speculates, or itself."""
    return cast("Policy", policy.policy) if isinstance(policy, Speculative) else policy


def comes_and_goes(policy: Policy) -> bool:
    """Whether sequences join and leave at every step."""
    return not isinstance(policy, Static | Dynamic)


def decodes_first(policy: Policy) -> bool:
    """Whether every step decodes all that have their first token: vLLM v1, TensorRT-LLM, llama.cpp, chunked prefill."""
    policy = plain(policy)
    match policy:
        case Continuous():
            return policy.chunked_prefill
        case LlamaCpp():
            return policy.cont_batching
        case _:
            return isinstance(policy, Vllm | TrtLlm)


def prefills_apart(policy: Policy) -> bool:
    """Whether a step has prompts or decodes, never both: vLLM v0 and Orca, SGLang unless mixed, llama.cpp as asked."""
    policy = plain(policy)
    match policy:
        case Continuous():
            return not policy.chunked_prefill
        case Sglang():
            return not policy.enable_mixed_chunk or policy.chunked_prefill_size == -1
        case LlamaCpp():
            return not policy.cont_batching
        case _:
            return isinstance(policy, Static | Dynamic)


def order_of(policy: Policy) -> str:
    """In which order the policy promises to let in: fcfs, fcfs_last (who goes back starts again), priority, or none."""
    policy = plain(policy)
    match policy:
        case Vllm():
            return policy.scheduling_policy
        case Sglang():
            return "fcfs_last" if policy.schedule_policy == "fcfs" else "none"
        case Continuous():
            return policy.order if policy.order in ("fcfs", "priority") else "none"
        case _:
            return "fcfs"


def decides_ahead(policy: Policy) -> bool:
    """Whether who comes is seen one step later."""
    policy = plain(policy)
    match policy:
        case Vllm():
            return policy.async_scheduling
        case Sglang():
            return not policy.disable_overlap_schedule
        case TrtLlm():
            return not policy.disable_overlap_scheduler
        case _:
            return False


def budget(policy: Policy) -> int | None:
    """New tokens of a step at most; None: the policy sets no such limit to every step."""
    policy = plain(policy)
    match policy:
        case Vllm():
            return policy.max_num_batched_tokens
        case TrtLlm():
            return policy.max_num_tokens
        case LlamaCpp():
            return policy.n_batch
        case Continuous():
            return policy.max_batched_tokens if policy.chunked_prefill else None
        case _:
            return None
