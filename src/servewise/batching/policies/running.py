"""What the continuous policies share: who runs, who waits, who has to go back."""

from __future__ import annotations

from collections import deque
from math import inf

from servewise.batching.batch import Batch, Chunk
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup
from servewise.batching.sequence import Sequence


class ContinuousBatcher:
    """Sequences join and leave at every step; first come, first served.

    The oldest running sequence is never preempted and an admission never follows a preemption in one step, so the
    oldest always moves on: there is no livelock. A child says what the next step holds (``_chunks``).
    """

    def __init__(
        self,
        pool: BlockPool,
        *,
        max_sequences: int,
        max_batched_tokens: int,
        reserve_output: bool,
        window_tokens: int | None,
    ) -> None:
        self.pool = pool
        self.max_sequences = max_sequences
        self.max_batched_tokens = max_batched_tokens
        self.group = DecodeGroup(pool.block_tokens, grows=not reserve_output, window_tokens=window_tokens)
        self._reserve_output = reserve_output
        self._waiting: deque[Sequence] = deque()
        self._prefilling: list[Sequence] = []
        self._running: dict[int, Sequence] = {}  # by serial, in order of admission

    @property
    def waiting_count(self) -> int:
        """Sequences that wait."""
        return len(self._waiting)

    def add(self, sequence: Sequence, now_s: float) -> bool:  # noqa: ARG002 - the seam of all policies
        """Queue ``sequence``; False: not even an empty pool would hold it."""
        if not self.pool.can_ever_hold(sequence.total_tokens):
            return False
        self._waiting.append(sequence)
        return True

    def close(self) -> None:
        """Nothing to do: nobody waits for company."""

    def wake_s(self) -> float:
        """Only an arrival or an end changes anything."""
        return inf

    def plan(self, now_s: float) -> Batch | None:  # noqa: ARG002
        """The next step. Preempts first if the decoding ones cannot all grow by one token."""
        group = self.group
        preempted = self._make_room() if group.grows and group.size else ()
        chunks, admitted, decodes = self._chunks(bool(preempted))
        if not decodes and not chunks:
            return None
        return self._batch(tuple(chunks), tuple(admitted), preempted, decodes)

    def _chunks(self, preempted: bool) -> tuple[list[Chunk], list[Sequence], int]:
        """The prompt chunks of the next step, who was admitted for it, and how many sequences decode in it."""
        raise NotImplementedError

    def _batch(
        self, chunks: tuple[Chunk, ...], admitted: tuple[Sequence, ...], preempted: tuple[Sequence, ...], decodes: int
    ) -> Batch:
        group = self.group
        room = not self._waiting and len(self._running) < self.max_sequences
        context = group.context_tokens + decodes if decodes else 0
        growth = group.below_window if decodes else 0
        windowed = group.windowed_tokens + growth if decodes else 0
        repeat = 1 if chunks else self._repeat()
        active = decodes + sum(chunk.ends_prompt for chunk in chunks) if chunks else decodes
        return Batch(
            decodes, context, windowed, growth, chunks, active, len(self._running), repeat, room, admitted, preempted
        )

    def _repeat(self) -> int:
        group = self.group
        most = group.steps_to_next_end()
        if group.window_tokens is not None:
            most = min(most, group.steps_to_crossing())
        return group.steps_within(self.pool.available, most)

    def commit(self, batch: Batch, steps: int) -> list[Sequence]:
        """The step ran ``steps`` times: tokens are in the cache, ended sequences give their blocks back."""
        group, pool = self.group, self.pool
        ended: list[Sequence] = []
        if batch.decodes:
            if group.grows:
                pool.take(group.blocks_for(steps))
            ended = group.advance(steps)
        for chunk in batch.chunks:
            self._computed(chunk, ended)
        for sequence in ended:
            self._leave_running(sequence)
        return ended

    def _computed(self, chunk: Chunk, ended: list[Sequence]) -> None:
        sequence = chunk.sequence
        sequence.computed_tokens = chunk.computed_tokens + chunk.new_tokens
        if sequence.block_hashes:
            self.pool.publish(sequence)
        if not chunk.ends_prompt:
            return
        sequence.generated += 1
        self._prefilling.remove(sequence)
        if sequence.generated >= sequence.output_tokens:
            ended.append(sequence)
        else:
            self.group.join(sequence)

    def finish(self, sequence: Sequence) -> None:
        """Take out ``sequence`` wherever it is."""
        if sequence.serial not in self._running:
            self._waiting.remove(sequence)
            return
        self._withdraw(sequence)

    def _withdraw(self, sequence: Sequence) -> None:
        if sequence.join:
            self.group.leave(sequence)
            self._leave_running(sequence)
        else:
            self._prefilling.remove(sequence)
            del self._running[sequence.serial]
            self.pool.release(sequence)

    def _leave_running(self, sequence: Sequence) -> None:
        del self._running[sequence.serial]
        if self.group.grows:
            sequence.blocks = self.pool.private_blocks(sequence, sequence.computed_tokens)
        self.pool.release(sequence)

    def _make_room(self) -> tuple[Sequence, ...]:
        out: list[Sequence] = []
        while self.group.blocks_for(1) > self.pool.available:
            youngest = next(reversed(self._running.values()))
            self._withdraw(youngest)
            self._send_back(youngest)
            out.append(youngest)
        return tuple(out)

    def _send_back(self, sequence: Sequence) -> None:
        sequence.preemptions += 1
        sequence.target_tokens = sequence.prompt_tokens + sequence.generated
        sequence.computed_tokens = 0
        self._waiting.appendleft(sequence)

    def _admit(self, spare: int) -> Sequence | None:
        """The next waiting sequence with its blocks, ``spare`` blocks left; None: it must wait on."""
        waiting = self._waiting
        if not waiting or len(self._running) >= self.max_sequences:
            return None
        sequence = waiting[0]
        tokens = sequence.total_tokens if self._reserve_output else sequence.target_tokens
        if not self.pool.admit(sequence, tokens, spare):
            return None
        waiting.popleft()
        if sequence.first_cached_tokens is None:
            sequence.first_cached_tokens = sequence.cached_tokens
        self._running[sequence.serial] = sequence
        self._prefilling.append(sequence)
        return sequence
