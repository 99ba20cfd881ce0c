"""What a draft takes of the KV pool, worked out by hand."""

from __future__ import annotations

import pytest

from servewise.ask.deploying import deploy
from servewise.deployment.capacity import KvCapacity, kv_capacity
from servewise.errors import InputError
from servewise.simulate.speculating.memory import NOTHING, Taken, blocks_left, taken_by
from servewise.simulate.speculating.one_layer import eagle


def pool(model: str = "llama-3.1-8b", accelerator: str = "h100-sxm") -> KvCapacity:
    """The pool of a model that fits."""
    found = kv_capacity(deploy(model, accelerator))
    assert isinstance(found, KvCapacity)
    return found


def test_no_draft_takes_nothing() -> None:
    """The pool stays as it is, to the block."""
    assert blocks_left(pool(), NOTHING) == pool().blocks


def test_an_eagle_head_is_one_layer_of_thirty_three() -> None:
    """Llama-3.1-8B has 32 layers of 4,096 bytes of KV a token; the head's own is one more, its weights 0.50 GB."""
    taken = taken_by(eagle(deploy("llama-3.1-8b", "h100-sxm")))
    before = pool()

    assert taken.kv_bytes_per_token == 4096
    assert taken.weight_bytes == pytest.approx(0.2516705e9 * 2, rel=0.15)  # vLLM's rotary table is counted too
    assert blocks_left(before, taken) == int((before.kv_budget_bytes - taken.weight_bytes) / (16 * 33 * 4096))


def test_tensor_parallel_shares_the_draft_out() -> None:
    """Half the weights and half the KV on each of two accelerators."""
    one, two = (taken_by(deploy("llama-3.2-1b", "h100-sxm", tp=tp, engine="ideal")) for tp in (1, 2))

    assert two.kv_bytes_per_token == one.kv_bytes_per_token / 2
    assert two.weight_bytes == pytest.approx(one.weight_bytes / 2, rel=0.01)


def test_a_draft_that_leaves_no_cache_is_refused() -> None:
    """A draft as large as the pool is an input error."""
    with pytest.raises(InputError, match="leave no KV cache"):
        blocks_left(pool(), Taken(weight_bytes=pool().kv_budget_bytes))
