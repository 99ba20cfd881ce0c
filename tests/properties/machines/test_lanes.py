"""Several batchers on one pool, as in a pipeline: whatever the others hold, each goes on or gives way, and all end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.properties.machines.asks import BLOCK, NAMED, Ask, asks
from tests.properties.machines.drawn_policies import batchwise, comes_and_goes, joining, speculating

from servewise.batching.batch import Batch
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Policy, TrtLlm
from servewise.batching.sequence import Sequence
from servewise.simulate.pipelined.lanes import Lanes
from servewise.simulate.pipelined.share import Share

MOST = 16  # requests at once


class LanesMachine(RuleBasedStateMachine):
    """Requests come; batches are planned while others fly, up to one a lane, and come back in any order."""

    @initialize(
        policy=joining | speculating | batchwise,
        blocks=st.integers(2, 12) | st.integers(8, 30),
        lanes=st.integers(1, 4),
    )
    def begin(self, policy: Policy, blocks: int, lanes: int) -> None:
        self.policy = policy = replace(policy, pipeline_parallel_size=lanes) if isinstance(policy, TrtLlm) else policy
        self.pool = BlockPool(blocks, BLOCK, NAMED if getattr(policy, "prefix_cache", False) else None)
        self.lanes = Lanes(policy.batcher, self.pool, Share.of(policy, lanes), lanes)
        self.here: dict[int, Sequence] = {}
        self.flying: list[Batch] = []
        self.serial, self.now_s = 0, 0.0

    @precondition(lambda self: len(self.here) < MOST)
    @rule(wanted=st.lists(asks, min_size=1, max_size=5))
    def come(self, wanted: list[Ask]) -> None:
        """Requests come; what is taken fits into the whole pool."""
        for each in wanted:
            sequence = each.sequence(self.serial)
            self.serial += 1
            if self.lanes.add(sequence, self.now_s):
                assert sequence.total_tokens <= self.pool.capacity_tokens
                self.here[sequence.serial] = sequence

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now_s += seconds

    @rule(most=st.integers(1, 4))
    def take_off(self, most: int) -> None:
        """As many batches as there are lanes may fly; a sequence flies in one of them alone."""
        for _ in range(most):
            if not self.lanes.idle or not self._planned():
                return

    def _planned(self) -> bool:
        batch = self.lanes.plan(self.now_s)
        if batch is None:
            return False
        ends = [
            chunk.sequence.serial for flying in (*self.flying, batch) for chunk in flying.chunks if chunk.ends_prompt
        ]
        assert len(ends) == len(set(ends))
        for sequence, computed, new, ends_prompt in batch.chunks:
            assert 1 <= new <= sequence.target_tokens - computed
            assert ends_prompt == (computed + new == sequence.target_tokens)
        self.flying.append(batch)
        return True

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def land(self, data: st.DataObject) -> None:
        """A batch comes back."""
        self._landed(self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1))))

    def _landed(self, batch: Batch) -> None:
        for each in self.lanes.commit(batch, 1):
            assert each.generated == each.output_tokens or not comes_and_goes(self.policy)
            del self.here[each.serial]

    @precondition(lambda self: self.here and not self.flying)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """A request is taken out wherever it is, between flights."""
        sequence = self.here[data.draw(st.sampled_from(sorted(self.here)))]
        for each in self.lanes.finish(sequence):
            del self.here[each.serial]

    @invariant()
    def everyone_is_in_one_place(self) -> None:
        """No lane has whom another has, and nobody is lost."""
        assert sorted(each.serial for each in self.lanes.unreleased()) == sorted(self.here)

    @invariant()
    def no_more_run_than_there_are_slots(self) -> None:
        """Of all lanes together, whichever lane a prompt's last part went to."""
        if comes_and_goes(self.policy):
            assert sum(len(lane.running) for lane in self.lanes._lanes) <= self.policy.slots

    @invariant()
    def no_block_is_lost_or_owed(self) -> None:
        """What lies free or kept is never below zero; with nobody here, and nothing in flight, it is all there is."""
        assert min(self.pool.free, self.pool.kept_blocks) >= 0
        assert self.pool.available <= (self.pool.total or 0)
        if not self.here and not self.flying and not any(self._ending()):
            assert self.pool.available == self.pool.total

    def _ending(self) -> list[list[Sequence]]:
        return [getattr(lane.batcher, "ending", []) for lane in self.lanes._lanes]

    def _stuck(self) -> str:
        lanes = [(sorted(lane.running), lane.batcher.waiting_count) for lane in self.lanes._lanes]
        return f"nothing flies: each lane's running and waiting {lanes}, {self.lanes.waiting_count} wait in all"

    def teardown(self) -> None:
        """No more come: all end within steps in proportion to their tokens, and the pool is whole."""
        if not hasattr(self, "lanes"):
            return
        self.lanes.close()
        self.now_s += 100.0
        tokens = sum(each.total_tokens for each in self.here.values())
        steps = 0
        while self.flying or self.here:
            while self.lanes.idle and self._planned():
                pass
            if not self.flying:
                break
            self._landed(self.flying.pop(0))
            self.everyone_is_in_one_place()
            self.no_block_is_lost_or_owed()
            steps += 1
            assert steps <= 60 * (tokens + 1), "livelock"
        assert not self.here, self._stuck()
        assert not self._planned()
        assert self.pool.available == self.pool.total


TestLanes: Any = LanesMachine.TestCase
TestLanes.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
