"""What one lane of a pipeline takes at most."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from servewise.batching.policies import Dynamic, Policy, Static

# Policies' names for the new prompt tokens of a step.
BUDGETS = ("max_batched_tokens", "max_num_batched_tokens", "max_num_tokens", "chunked_prefill_size")


@dataclass(frozen=True, slots=True)
class Share:
    """What a lane takes at most: ``slots`` sequences, new prompts of ``tokens`` tokens a step; ``even``: a fair part.

    ``total``: sequences of all lanes at most. A prompt that ends in another lane than it began in may bring that one
    above its ``slots`` (SGLang's scheduler.py, get_new_batch_prefill: a chunked request joins whatever is there), never
    all of them above ``total`` (SGLang's request pool, vLLM's one list of running requests). Batches that are formed
    and released whole (static, dynamic) wait to be full: theirs is a whole batch a lane.
    """

    slots: int
    total: int
    tokens: float
    even: bool

    @classmethod
    def of(cls, policy: Policy, lanes: int) -> Share:
        """The share of one of ``lanes`` lanes."""
        if isinstance(policy, (Static, Dynamic)):
            return cls(policy.slots, policy.slots * lanes, inf, False)
        budgets = [float(value) for name in BUDGETS if (value := getattr(policy, name, 0)) > 0]
        return cls(-(-policy.slots // lanes), policy.slots, min(budgets, default=inf), True)
