"""How a policy takes prompts through steps, as far as bounds on its time need to know."""

from __future__ import annotations

from dataclasses import dataclass

from servewise.batching.policies import Continuous, Dynamic, LlamaCpp, Policy, Sglang, Static, TrtLlm, Vllm


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """What holds of every step, whatever the load.

    ``longest_chunk``: tokens of one prompt that a step computes at most; None: prompts are never cut. ``full_tokens``:
    prompt tokens that a step computes at least in which a prompt was cut, since only a full step cuts one: what the
    largest number of decoding sequences beside it leaves of the budget. ``most_tokens``: prompt tokens of a step at
    most. ``beside``: prompts run in steps that decode too. ``caches``: prefixes may be found in a cache.
    """

    longest_chunk: int | None
    full_tokens: int
    most_tokens: int
    beside: bool
    caches: bool


def stepping_of(policy: Policy, longest_prompt: int, *, speculates: bool = False) -> Stepping:
    """How ``policy`` steps prompts of up to ``longest_prompt`` tokens.

    Of a policy that is not known here nothing is assumed. Drafts take room of a step's budget too, as many as the
    draft's length says: then a full step may hold a single prompt token.
    """
    caches = bool(getattr(policy, "prefix_cache", False))
    match policy:
        case Static() | Dynamic():
            return _whole(policy.slots * longest_prompt, beside=False, caches=False)
        case Continuous(chunked_prefill=False):
            return _whole(max(policy.max_batched_tokens, longest_prompt), beside=False, caches=caches)
        case Vllm(enable_chunked_prefill=False):
            return _whole(policy.max_num_batched_tokens, beside=True, caches=caches)
        case TrtLlm(enable_chunked_prefill=False):
            return _whole(policy.max_num_tokens, beside=True, caches=caches)
        case Sglang():
            return _sglang(policy, longest_prompt)
    budget, chunk, lost = _budget(policy, longest_prompt)
    left = 1 if speculates else budget - (policy.slots - 1) - lost
    return Stepping(
        longest_chunk=chunk,
        full_tokens=max(1, min(chunk, left)),
        most_tokens=budget,
        beside=not (isinstance(policy, LlamaCpp) and not policy.cont_batching),
        caches=caches,
    )


def _budget(policy: Policy, longest_prompt: int) -> tuple[int, int, int]:
    """Tokens of a step, of a prompt's chunk at most, and what a full step may leave unused beside decoding ones."""
    match policy:
        case Continuous():
            return policy.max_batched_tokens, policy.max_batched_tokens, 0
        case Vllm():
            budget = policy.max_num_batched_tokens
            return budget, min(budget, policy.long_prefill_token_threshold or budget), 0
        case TrtLlm():
            return policy.max_num_tokens, policy.max_num_tokens, policy.tokens_per_block - 1
        case LlamaCpp():
            return policy.n_batch, policy.n_batch, 0
    anything = policy.slots * longest_prompt
    return anything, longest_prompt, anything


def _whole(most_tokens: int, *, beside: bool, caches: bool) -> Stepping:
    return Stepping(longest_chunk=None, full_tokens=1, most_tokens=most_tokens, beside=beside, caches=caches)


def _sglang(policy: Sglang, longest_prompt: int) -> Stepping:
    """A chunk may also be cut short where memory is, in a step that is not full."""
    chunked, caches = policy.chunked_prefill_size != -1, policy.prefix_cache
    if not chunked:
        return _whole(policy.max_prefill_tokens + longest_prompt, beside=False, caches=caches)
    return Stepping(
        longest_chunk=policy.chunked_prefill_size,
        full_tokens=1,
        most_tokens=policy.chunked_prefill_size,
        beside=policy.enable_mixed_chunk,
        caches=caches,
    )
