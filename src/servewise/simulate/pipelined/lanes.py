"""A policy at work on a pipeline: as many batches in flight as it has stages, each formed in a lane of its own.

A sequence of a batch in flight is not scheduled again before the batch returns, so a pipeline of p stages needs p
batches to be busy. vLLM v1 keeps a queue of p batches and schedules whoever is not in flight
(vllm/v1/engine/core.py step_with_batch_queue: "fulfilling the batch queue has a higher priority than getting
model outputs"); v0 has p virtual engines, each with a scheduler of its own, and a new request goes to the one with the
fewest unfinished (vllm/engine/llm_engine.py); SGLang has p running batches of
max_running_requests / p each (sglang/srt/managers/scheduler_pp_mixin.py event_loop_pp). Here, as in SGLang and v0, a
sequence that decodes stays in its lane, and no lane takes more than its even share of what is there; as in v1 and
SGLang, all share one block pool and a sequence that waits goes to whichever lane plans next.

So does a prompt under way, as in v1 (v1/core/sched/scheduler.py ``_update_after_schedule``: "allowing us to schedule
the prefill request again immediately in the next scheduling step") and SGLang (one ``chunked_req`` for all batches):
the next part follows the last through the stages, in the next lane's batch, and stays with the lane of its last part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import cast

from servewise.batching.batch import Batch, Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup
from servewise.batching.filling.batcher import HeldElsewhere
from servewise.batching.sequence import Sequence
from servewise.simulate.pipelined.lane import Lane
from servewise.simulate.pipelined.share import Share


class Lanes:
    """A Batcher that may plan again while earlier batches are in flight, up to ``count`` of them.

    ``made`` makes a batcher on the pool that all share. The blocks that a batch in flight will take are put by, so that
    no other lane takes them. A lane's youngest sequence is preempted for its own lane's sake; the last one stands until
    the other lanes have left it blocks, and nobody new comes to a lane meanwhile. Where all lanes are on the ground and
    none can go on, those of the other lanes give way, the latest first, until the lane of the first to come has a step;
    it takes that before anyone comes back, so that there is no livelock.
    """

    def __init__(self, made: Callable[[BlockPool], Batcher], pool: BlockPool, share: Share, count: int) -> None:
        self.pool = pool
        self._lanes = [Lane(made(pool)) for _ in range(count)]
        self._door = made(BlockPool(pool.total, pool.block_tokens, pool.hash_block_tokens))
        self._share = share
        self._waiting: deque[tuple[float, Sequence]] = deque()
        self._next = 0  # the lane whose turn it is
        self._last = self._lanes[0]
        self.flying = 0
        self._standing: list[Lane] = []  # on the ground, with sequences that run but find no blocks
        self.lost: list[Sequence] = []  # preempted by a lane that then had no batch to tell of it

    @property
    def group(self) -> DecodeGroup:
        """The decoding sequences of the lane that planned last."""
        return self._last.batcher.group

    @property
    def waiting_count(self) -> int:
        """Sequences that wait, in a lane or for one."""
        return len(self._waiting) + sum(lane.batcher.waiting_count for lane in self._lanes)

    @property
    def idle(self) -> bool:
        """Whether a lane could take an arrival at once."""
        return self.flying < len(self._lanes)

    @property
    def alone(self) -> bool:
        """Whether one lane has all sequences and none is in its prompt: its steps follow each other at once."""
        if self._waiting or sum(lane.held > 0 for lane in self._lanes) != 1:
            return False
        return len(self._lanes) == 1 or not any(lane.prefilling for lane in self._lanes)

    @property
    def next_s(self) -> float:
        """When the first of those that wait for a lane came; infinity: none waits."""
        return self._waiting[0][0] if self._waiting else inf

    def add(self, sequence: Sequence, now_s: float) -> bool:
        """Queue ``sequence``; False: not even an empty pool would hold it."""
        if len(self._lanes) == 1:
            self._lanes[0].held += 1
            return self._lanes[0].batcher.add(sequence, now_s)
        if not self._door.add(sequence, now_s):
            return False
        self._door.finish(sequence)
        self._waiting.append((now_s, sequence))
        return True

    def close(self) -> None:
        """No more will come."""
        for lane in self._lanes:
            lane.batcher.close()

    def wake_s(self) -> float:
        """When a lane that waits for company starts without it."""
        return min((lane.batcher.wake_s() for lane in self._lanes if lane.flying is None), default=inf)

    def plan(self, now_s: float) -> Batch | None:
        """The next batch of the first lane in turn that has one; None: no lane on the ground has work."""
        batch = self._in_turn(now_s)
        if batch is not None or self.flying:
            return batch
        batch = self._unstuck(now_s)
        if batch is None and self.waiting_count:  # the last lane in turn may have let go of blocks
            return self._in_turn(now_s)
        return batch

    def _in_turn(self, now_s: float) -> Batch | None:
        """Those that stand first, then each lane on the ground once."""
        for lane in tuple(self._standing):
            if (batch := self._planned(lane, now_s)) is not None:
                return batch
        for _ in range(len(self._lanes)):
            lane = self._lanes[self._next]
            self._next = (self._next + 1) % len(self._lanes)
            if lane.flying is None and (batch := self._planned(lane, now_s)) is not None:
                return batch
        return None

    def _unstuck(self, now_s: float) -> Batch | None:
        """A step of the lane that runs the first to come, for which the other lanes' sequences give way."""
        holding = [lane for lane in self._lanes if lane.running]
        if not holding:
            return None
        spared = min(holding, key=lambda lane: min(lane.running))
        while (batch := self._planned(spared, now_s)) is None and spared.running:
            others = [lane for lane in holding if lane is not spared and lane.running]
            if not others:
                return None
            self.lost.append(max(others, key=lambda lane: max(lane.running)).continuous.give_way())
        return batch

    def _planned(self, lane: Lane, now_s: float) -> Batch | None:
        if lane.comes_and_goes and len(self._lanes) > 1:
            self._gather_prompts(lane)
        if self._waiting and not self._standing:
            self._feed(lane, now_s)
        ran = tuple(lane.running.values())
        try:
            lane.flying = batch = lane.batcher.plan(now_s)
        except HeldElsewhere:
            batch = None
        if lane in self._standing:
            self._standing.remove(lane)
        if batch is None:
            self.lost += [each for each in ran if each.serial not in lane.running]
            if lane.running:
                self._standing.append(lane)
            return None
        self._last = lane
        self.flying += 1
        lane.unfinished = batch
        if len(self._lanes) > 1:
            self._put_by(lane, batch)
        return batch

    def _gather_prompts(self, lane: Lane) -> None:
        """Prompts under way come to ``lane`` from all the others, but for those whose last part is in flight."""
        found: list[Sequence] = []
        for other in self._lanes:
            if other is not lane and other.prefilling:
                found += other.hand_over()
        if found:
            lane.continuous.take_over(found)
            lane.held += len(found)

    def _put_by(self, lane: Lane, batch: Batch) -> None:
        """Parts of prompts are computed for whoever plans next; the blocks of what is left are put by."""
        if batch.chunks and lane.comes_and_goes:
            parts = tuple(each for each in batch.chunks if not each.ends_prompt)
            lane.continuous.computed_ahead(parts)
            last = tuple(each for each in batch.chunks if each.ends_prompt)
            lane.unfinished = batch = batch._replace(chunks=last)
        lane.put_by = self._blocks_for(batch, lane.batcher.group)
        self.pool.take(lane.put_by)

    def _blocks_for(self, batch: Batch, group: DecodeGroup) -> int:
        """Blocks that ``batch`` takes when it is committed: its decoding ones' next, its chunks' that are not held."""
        pool = self.pool
        blocks = group.blocks_for_next() if batch.decodes and group.grows else 0
        for sequence, computed, new, _ in batch.chunks:
            blocks += max(0, pool.private_blocks(sequence, computed + new) - sequence.blocks)
        return blocks

    def _feed(self, lane: Lane, now_s: float) -> None:
        """Give ``lane`` of those that wait what its next step could take."""
        waiting, share = self._waiting, self._share
        most, tokens = self._most(lane), 0
        if share.even and lane.batcher.waiting_count:
            return
        while waiting and waiting[0][0] <= now_s and lane.held < most and tokens < share.tokens:
            came_s, sequence = waiting.popleft()
            lane.batcher.add(sequence, came_s)
            lane.held += 1
            tokens += sequence.prompt_tokens

    def _most(self, lane: Lane) -> int:
        """Sequences that ``lane`` may hold: its even share of what is there, and no more than all may hold together."""
        if not self._share.even:
            return self._share.slots
        held = sum(each.held for each in self._lanes)
        there = len(self._waiting) + held
        return min(self._share.slots, -(-there // len(self._lanes)), lane.held + self._share.total - held)

    def number_of(self, batch: Batch) -> int:
        """The lane that ``batch`` flies for."""
        return next(number for number, each in enumerate(self._lanes) if each.flying is batch)

    def commit(self, batch: Batch, steps: int) -> list[Sequence]:
        """``batch`` came back after ``steps`` steps; returns the sequences that are released now."""
        lane = self._lanes[self.number_of(batch)]
        lane.flying = None
        self.flying -= 1
        self.pool.free += lane.put_by
        lane.put_by = 0
        ended = lane.batcher.commit(cast("Batch", lane.unfinished), steps)
        lane.unfinished = None
        lane.held -= len(ended)
        return ended

    def unreleased(self) -> Iterator[Sequence]:
        """Every sequence that waits or runs."""
        for lane in self._lanes:
            yield from lane.batcher.unreleased()
        yield from (sequence for _, sequence in self._waiting)

    def finish(self, sequence: Sequence) -> list[Sequence]:
        """Take out a sequence that is in no batch in flight; returns the sequences that are released now."""
        for lane in self._lanes:
            if any(each is sequence for each in lane.batcher.unreleased()):
                released = lane.batcher.finish(sequence)
                lane.held -= len(released)
                return released
        self._waiting = deque(pair for pair in self._waiting if pair[1] is not sequence)
        return [sequence]
