"""Several batchers on one pool: what one of them no longer needs, the others get, worked out by hand."""

from __future__ import annotations

from tests.batching.driving import planned, serials, step

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Sglang, Vllm
from servewise.batching.sequence import Sequence


def test_a_batch_that_was_full_is_tried_again_once_nobody_runs() -> None:
    """SGLang's ``batch_is_full`` falls with an end; where that end was another batcher's, an empty one tries again.

    Four pages: the first batcher's prompt takes three, the second's needs three and waits; after the end it runs.
    """
    pool = BlockPool(4, 16)
    policy = Sglang(8, 64, disable_overlap_schedule=True)
    one, other = policy.batcher(pool), policy.batcher(pool)
    one.add(Sequence(0, 40, 1), 0.0)
    other.add(Sequence(1, 40, 1), 0.0)
    batch = planned(one)

    assert other.plan(0.0) is None
    one.commit(batch, 1)
    assert serials(planned(other).admitted) == [1]


def test_who_ends_last_keeps_no_blocks_for_a_step_that_will_not_be() -> None:
    """Async scheduling holds the blocks of an ended sequence for one step more; with nobody left there is none."""
    for others, free in ((0, 4), (1, 2)):
        pool = BlockPool(4, 16)
        batcher = Vllm(8, 64).batcher(pool)
        batcher.add(Sequence(0, 10, 1), 0.0)
        for serial in range(others):
            batcher.add(Sequence(1 + serial, 10, 3), 0.0)
        _, ended = step(batcher)

        assert ended == [0]
        assert pool.free == free
