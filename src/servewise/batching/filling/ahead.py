"""The next step is decided while the last one runs: vLLM's async scheduling, SGLang's and TensorRT-LLM's overlap."""

from __future__ import annotations

from bisect import bisect_right
from math import inf
from typing import Any

from servewise.batching.batch import Batch
from servewise.batching.filling.batcher import ContinuousBatcher, Preempted
from servewise.batching.sequence import Sequence


class Ahead(ContinuousBatcher):
    """Put before a filling rule, it decides with one step's delay.

    Step n + 1 is decided when step n begins (v1/engine/core.py ``step_with_batch_queue``, vLLM 0.19). So (1) whoever
    came while step n ran is seen by step n + 2, and (2) whoever ends with step n keeps its slot and its blocks while
    step n + 1 is decided. Where nothing runs there is no delay. Lengths are known ahead: a sequence that reached
    ``max_tokens`` is not run again; the extra row of one that ended by its stop token is not modelled. The time that
    the overlap saves is the estimator's.

    A driver that ran several steps at once may say when the last of them began (``seen_until_s``): who had come by then
    is seen by the next one.
    """

    decides_ahead = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ending: list[Sequence] = []  # released with the last step, their blocks not yet
        self._slots = self.max_sequences
        self._came_s: list[float] = []  # when each of them that are coming came
        self.seen_until_s = -inf

    def add(self, sequence: Sequence, now_s: float) -> bool:
        """Queue ``sequence``; it is seen with the decision after the next."""
        if not self._could_run(sequence):
            return False
        self._coming.append(sequence)
        self._came_s.append(now_s)
        return True

    def plan(self, now_s: float) -> Batch | None:
        """The next step, as it was decided when the last one began."""
        came_s = self._came_s
        if came_s and came_s[0] <= self.seen_until_s:
            self._queue_up(bisect_right(came_s, self.seen_until_s))
        batch = super().plan(now_s)
        if self._coming or batch is None:
            return self._see(batch, now_s)
        return batch

    def _see(self, batch: Batch | None, now_s: float) -> Batch | None:
        """Who came meanwhile counts from the next decision on, or from this one if nothing runs."""
        idle = batch is None and bool(self._coming or self.ending)
        self._queue_up(len(self._coming))
        if idle:
            self._let_go()
            return super().plan(now_s)
        return batch

    def _queue_up(self, count: int) -> None:
        """The first ``count`` of those who came are seen."""
        coming = self._coming
        for sequence in coming[:count]:
            self._waiting.append(sequence)
        del coming[:count], self._came_s[:count]

    def _decode(self, preempted: Preempted, *, once: bool = False) -> Batch:
        ending = self.ending
        if not ending:
            return super()._decode(preempted, once=once or bool(self._coming) or not self.max_sequences)
        taken, self.max_sequences = self.max_sequences, self._slots  # who comes now may have the slots given back
        batch = super()._decode(preempted, once=once or bool(self._coming or self._waiting))
        self.max_sequences = taken
        if batch.repeat > 1 and self.group.steps_within(self.pool.free, batch.repeat) < batch.repeat:
            return batch._replace(repeat=1)  # the blocks of those that ended may save others from eviction
        return batch

    def _relief(self) -> Preempted:
        """One more goes back, unless it is the only one: then the blocks of those that ended are waited for.

        Nobody is admitted in such a step, as in one that preempts.
        """
        if self.ending and len(self._running) == 1:
            self._let_go()
            self.max_sequences = 0
            return ()
        return super()._relief()

    def _send_back(self) -> Sequence:
        victim = super()._send_back()
        if self._waiting.rejoins_last:  # behind those who have come too, seen or not
            self._waiting.remove(victim)
            self._coming.append(victim)
            self._came_s.append(inf)
        return victim

    def commit(self, batch: Batch, steps: int) -> list[Sequence]:
        """The step ran ``steps`` times; who ended before it gives its blocks back now, after it took its own."""
        ended_before = self.ending
        if ended_before:
            self.ending = []
        ended = super().commit(batch, steps)
        for sequence in ended_before:
            self._give_blocks(sequence)
        self.max_sequences = self._slots - len(ended)
        if ended and not (self._running or self._waiting or self._coming):
            self._let_go()  # there is no next step here; another batcher on the same pool may wait for the blocks
        return ended

    def _release(self, ended: list[Sequence]) -> None:
        for sequence in ended:
            del self._running[sequence.serial]
        self.ending = list(ended)

    def _let_go(self) -> None:
        for sequence in self.ending:
            self._give_blocks(sequence)
        self.ending = []
        self.max_sequences = self._slots

    def finish(self, sequence: Sequence) -> list[Sequence]:
        """Take out ``sequence`` wherever it is; its blocks are given back at once."""
        if sequence in self._coming:
            place = self._coming.index(sequence)
            del self._coming[place], self._came_s[place]
            return [sequence]
        return super().finish(sequence)
