"""What static and dynamic batching share: a batch is formed, runs until its longest ends, and is released whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf

from servewise.batching.batch import Batch, Chunk
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup
from servewise.batching.sequence import Sequence


class BatchwiseBatcher:
    """Up to ``batch`` sequences at once, started when full, when no more will come, or when the oldest has waited.

    Prompts are computed in one step. Ended sequences keep their rows (they are computed on, as padded batches are)
    and their blocks until the longest ends; then all are released, and the next batch may start.
    """

    def __init__(self, pool: BlockPool, *, batch: int, window_s: float, window_tokens: int | None) -> None:
        self.pool = pool
        self.group = DecodeGroup(pool.block_tokens, grows=False, window_tokens=window_tokens)
        self._batch_size = batch
        self._window_s = window_s
        self._waiting: deque[tuple[float, Sequence]] = deque()
        self._members: list[Sequence] = []
        self._prefilling: list[Sequence] = []
        self._held_context = 0
        self._held_windowed = 0
        self._closed = False

    @property
    def waiting_count(self) -> int:
        """Sequences that wait."""
        return len(self._waiting)

    def add(self, sequence: Sequence, now_s: float) -> bool:
        """Queue ``sequence`` with its time of coming; False: not even an empty pool would hold it."""
        if sequence.total_tokens > self.pool.capacity_tokens:
            return False
        self._waiting.append((now_s, sequence))
        return True

    def close(self) -> None:
        """No more will come: start with what there is."""
        self._closed = True

    def wake_s(self) -> float:
        """When the oldest waiting sequence has waited for the window."""
        return self._waiting[0][0] + self._window_s if self._waiting and not self._members else inf

    def plan(self, now_s: float) -> Batch | None:
        """The next step of the running batch, or the first step of the next one if it may start."""
        admitted: tuple[Sequence, ...] = ()
        if not self._members:
            if not self._may_start(now_s):
                return None
            admitted = self._start()
        return self._prompts(admitted) if self._prefilling else self._decode()

    def _may_start(self, now_s: float) -> bool:
        waiting = len(self._waiting)
        if not waiting:
            return False
        return waiting >= self._batch_size or self._closed or now_s >= self._waiting[0][0] + self._window_s

    def _start(self) -> tuple[Sequence, ...]:
        while self._waiting and len(self._members) < self._batch_size:
            sequence = self._waiting[0][1]
            if not self.pool.admit(sequence, sequence.total_tokens):
                break
            self._waiting.popleft()
            sequence.first_cached_tokens = sequence.cached_tokens
            self._members.append(sequence)
        self._prefilling = list(self._members)
        return tuple(self._members)

    def _prompts(self, admitted: tuple[Sequence, ...]) -> Batch:
        chunks = tuple(
            Chunk(each, each.computed_tokens, each.target_tokens - each.computed_tokens, True)
            for each in self._prefilling
        )
        return Batch(0, 0, 0, 0, chunks, len(chunks), len(self._members), len(self._waiting), 1, False, admitted, ())

    def _decode(self) -> Batch:
        group, rows = self.group, len(self._members)
        growth = group.below_window
        repeat = group.steps_to_next_end()
        if group.window_tokens is not None:
            repeat = min(repeat, group.steps_to_crossing())
        context = group.context_tokens + self._held_context + group.size
        windowed = group.windowed_tokens + self._held_windowed + growth
        return Batch(rows, context, windowed, growth, (), group.size, rows, len(self._waiting), repeat, False, (), ())

    def commit(self, batch: Batch, steps: int) -> list[Sequence]:
        """The step ran ``steps`` times; returns the whole batch once its longest has ended, else nothing."""
        if batch.chunks:
            self._computed()
        else:
            for sequence in self.group.advance(steps):
                self._hold(sequence)
        return [] if self.group.size else self._release()

    def _computed(self) -> None:
        for sequence in self._prefilling:
            sequence.computed_tokens = sequence.target_tokens
            sequence.generated += 1
            self.pool.publish(sequence)
            if sequence.generated >= sequence.output_tokens:
                self._hold(sequence)
            else:
                self.group.join(sequence)
        self._prefilling = []

    def _hold(self, sequence: Sequence) -> None:
        tokens = sequence.computed_tokens
        self._held_context += tokens
        self._held_windowed += min(tokens, self.group.window_tokens or tokens)

    def _release(self) -> list[Sequence]:
        ended, self._members = self._members, []
        self._held_context = self._held_windowed = 0
        for sequence in ended:
            self.pool.release(sequence)
        return ended

    def unreleased(self) -> Iterator[Sequence]:
        """Every sequence that waits or runs."""
        yield from self._members
        yield from (sequence for _, sequence in self._waiting)

    def finish(self, sequence: Sequence) -> list[Sequence]:
        """Take out a waiting sequence, or end a running one where it is; its row is held like any ended one's.

        With the last one that ran, the whole batch is released.
        """
        if sequence.join:
            self.group.leave(sequence)
            self._hold(sequence)
            return [] if self.group.size or self._prefilling else self._release()
        if sequence in self._members:
            return []
        self._waiting = deque(pair for pair in self._waiting if pair[1] is not sequence)
        return [sequence]
