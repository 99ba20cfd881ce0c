"""What a drafter takes of the target's memory, and the KV pool that is left."""

from __future__ import annotations

import math
from dataclasses import dataclass

from servewise.deployment.capacity import KvCapacity
from servewise.deployment.deployment import Deployment
from servewise.deployment.engine import engine_profile
from servewise.deployment.pool import rank_kv_bytes_per_token
from servewise.deployment.shard import Stage, stage_weight_bytes
from servewise.errors import InputError
from servewise.units import format_bytes


@dataclass(frozen=True, slots=True)
class Taken:
    """On each accelerator: ``weight_bytes`` out of the pool, ``kv_bytes_per_token`` on top of the target's own."""

    weight_bytes: float = 0.0
    kv_bytes_per_token: float = 0.0


NOTHING = Taken()


def taken_by(draft: Deployment, copies: int = 1) -> Taken:
    """What ``draft`` takes, split as the target is: vLLM's default, a draft tensor-parallel degree of the target's.

    Its weights, and its KV of every token that the target keeps. ``copies``: Medusa's heads are one model each.
    Activations and graphs of the draft are left out (they reuse the target's, or are small beside them).
    """
    profile = engine_profile(draft.engine)
    layers = draft.model.layer_count
    whole = Stage(share=1.0, layers=layers, first=True, last=True)  # a draft is not pipelined: all on the last stage
    return Taken(copies * stage_weight_bytes(draft, profile, whole), copies * rank_kv_bytes_per_token(draft, 1.0))


def blocks_left(capacity: KvCapacity, taken: Taken) -> int:
    """Blocks of the target's pool with the draft beside it.

    (pool - draft weights) / (block of the target + block_tokens x draft KV), as vLLM groups the draft's layers with the
    target's in one pool (v1/core/kv_cache_utils.py, v0.11). Raises InputError where not one block is left.
    """
    if not capacity.blocks:
        return 0
    block_bytes = capacity.kv_budget_bytes / capacity.blocks
    left = (capacity.kv_budget_bytes - taken.weight_bytes) / (
        block_bytes + capacity.block_tokens * taken.kv_bytes_per_token
    )
    if left < 1:
        raise InputError(
            f"the draft's weights of {format_bytes(taken.weight_bytes)} leave no KV cache",
            where="speculate",
            hint="a smaller draft, or more accelerators (--tp)",
        )
    return capacity.blocks if taken == NOTHING else math.floor(left)
