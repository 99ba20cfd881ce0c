"""What the continuous policies share: who runs, who waits, who has to go back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf

from servewise.batching.batch import Batch, Chunk
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup, GroupMaker
from servewise.batching.sequence import Sequence


class ContinuousBatcher:
    """Sequences join and leave at every step; first come, first served.

    The oldest running sequence is never preempted and an admission never follows a preemption in one step, so the
    oldest always moves on: there is no livelock. A child says which prompt chunks the next step holds (``_chunks``).
    """

    decodes_beside_prompts: bool  # whether a step with prompt chunks decodes too

    def __init__(
        self,
        pool: BlockPool,
        *,
        max_sequences: int,
        max_batched_tokens: int,
        reserve_output: bool,
        window_tokens: int | None,
        group: GroupMaker = DecodeGroup,
    ) -> None:
        self.pool = pool
        self.max_sequences = max_sequences
        self.max_batched_tokens = max_batched_tokens
        self.group = group(pool.block_tokens, grows=not reserve_output, window_tokens=window_tokens)
        self._reserve_output = reserve_output
        self._waiting: deque[Sequence] = deque()
        self._prefilling: list[Sequence] = []
        self._running: dict[int, Sequence] = {}  # by serial, in order of admission
        self._moved_tokens = 0  # KV tokens that move before the step that is being planned

    @property
    def waiting_count(self) -> int:
        """Sequences that wait."""
        return len(self._waiting)

    def add(self, sequence: Sequence, now_s: float) -> bool:  # noqa: ARG002 - the seam of all policies
        """Queue ``sequence``; False: not even an empty pool would hold it."""
        if sequence.prompt_tokens + sequence.output_tokens > self.pool.capacity_tokens:
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
        size = group.size
        preempted: tuple[Sequence, ...] = ()
        if size and group.grows and group.blocks_for_next() > self.pool.available:
            preempted = self._make_room()
            size = group.size
        if (self._waiting and not preempted) or self._prefilling:
            chunks, admitted = self._chunks(bool(preempted))
            if chunks or admitted:
                return self._mixed(chunks, admitted, preempted)
        if not size:
            return None
        if group.drafted:
            return self._mixed([], [], preempted)
        growth = group.below_window
        running, waiting, repeat = len(self._running), len(self._waiting), group.steps_to_next_end()
        if group.counts:
            repeat = self._steps_alike(repeat)
        room = not waiting and running < self.max_sequences
        context, windowed = group.context_tokens + size, group.windowed_tokens + growth
        return Batch(size, context, windowed, growth, (), size, running, waiting, repeat, room, (), preempted)

    def _chunks(self, preempted: bool) -> tuple[list[Chunk], list[Sequence]]:
        """The prompt chunks of the next step, and who was admitted for it."""
        raise NotImplementedError

    def _mixed(self, chunks: list[Chunk], admitted: list[Sequence], preempted: tuple[Sequence, ...]) -> Batch:
        group = self.group
        decodes = group.size if self.decodes_beside_prompts or not chunks else 0
        context = windowed = growth = drafted = 0
        if decodes:
            growth, drafted = group.below_window, group.drafted
            context, windowed = group.context_tokens + decodes * (1 + drafted), group.windowed_tokens + growth
        active = decodes + sum([chunk[3] for chunk in chunks])
        running, waiting, parts, came = len(self._running), len(self._waiting), tuple(chunks), tuple(admitted)
        moved, self._moved_tokens = self._moved_tokens, 0
        return Batch(
            decodes,
            context,
            windowed,
            growth,
            parts,
            active,
            running,
            waiting,
            1,
            True,
            came,
            preempted,
            moved,
            drafted,
        )

    def _steps_alike(self, most: int) -> int:
        """How many of ``most`` steps neither fill a window nor run the pool dry."""
        group = self.group
        if group.window_tokens is not None:
            most = min(most, group.steps_to_crossing())
        return group.steps_within(self.pool.available, most) if group.grows else most

    def commit(self, batch: Batch, steps: int) -> list[Sequence]:
        """The step ran ``steps`` times: tokens are in the cache, ended sequences give their blocks back."""
        group, pool = self.group, self.pool
        ended: list[Sequence] = []
        if batch.decodes:
            if group.grows:
                pool.take(group.blocks_for(steps))
            ended = group.advance(steps)
        for sequence, computed_tokens, new_tokens, ends_prompt in batch.chunks:
            sequence.computed_tokens = computed_tokens + new_tokens
            if sequence.block_hashes:
                pool.publish(sequence)
            if ends_prompt:
                self._prompt_done(sequence, ended)
        for sequence in ended:
            self._leave_running(sequence)
        return ended

    def _prompt_done(self, sequence: Sequence, ended: list[Sequence]) -> None:
        sequence.generated += 1
        self._prefilling.remove(sequence)
        if sequence.generated >= sequence.output_tokens:
            ended.append(sequence)
        else:
            self.group.join(sequence)

    def unreleased(self) -> Iterator[Sequence]:
        """Every sequence that waits or runs."""
        yield from self._running.values()
        yield from self._waiting

    def finish(self, sequence: Sequence) -> list[Sequence]:
        """Take out ``sequence`` wherever it is; its blocks are given back at once."""
        if sequence.serial in self._running:
            self._withdraw(sequence)
        else:
            self._waiting.remove(sequence)
        return [sequence]

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
        while self.group.blocks_for_next() > self.pool.available:
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
        tokens = sequence.target_tokens
        if self._reserve_output:
            tokens = sequence.prompt_tokens + sequence.output_tokens
        elif sequence.stored_tokens:
            tokens = sequence.stored_tokens
            spare = self.group.blocks_for_next() + (tokens % self.pool.block_tokens == 0)
        if not self.pool.admit(sequence, tokens, spare):
            return None
        waiting.popleft()
        if sequence.first_cached_tokens is None:
            sequence.first_cached_tokens = sequence.cached_tokens
        self._running[sequence.serial] = sequence
        if sequence.stored_tokens:
            self._fetch(sequence)
        else:
            self._prefilling.append(sequence)
        return sequence

    def _fetch(self, sequence: Sequence) -> None:
        """The KV of ``sequence`` moves in from elsewhere, apart from what the prefix cache has; it decodes at once."""
        stored, sequence.stored_tokens = sequence.stored_tokens, 0
        self._moved_tokens += stored - sequence.computed_tokens
        sequence.computed_tokens = stored
        if sequence.block_hashes:
            self.pool.publish(sequence)
        self.group.join(sequence)
