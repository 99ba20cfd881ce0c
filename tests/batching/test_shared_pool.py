"""Several batchers on one pool: what one of them no longer needs, the others get, worked out by hand."""

from __future__ import annotations

from tests.batching.driving import step

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Vllm
from servewise.batching.sequence import Sequence


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
