"""What the continuous policies share: who runs, who waits, who has to go back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from servewise.batching.admission.rule import AdmissionRule
from servewise.batching.batch import Batch, Chunk
from servewise.batching.blockpool import BlockPool
from servewise.batching.decodegroup import DecodeGroup, GroupMaker
from servewise.batching.retreat.recompute import Recompute
from servewise.batching.retreat.victims import Victim, youngest
from servewise.batching.retreat.way import WayBack
from servewise.batching.sequence import Sequence
from servewise.batching.waiting.arrival import ArrivalQueue
from servewise.batching.waiting.queue import WaitingQueue

Preempted = tuple[Sequence, ...]


# What a step holds beside the decoding sequences: prompt chunks, who was admitted, who went back. A plain tuple: one is
# made for every step.
Planned = tuple[list[Chunk], list[Sequence], Preempted]


def _serial(sequence: Sequence) -> int:
    return sequence.serial


class HeldElsewhere(Exception):
    """Another batcher on the same pool holds the blocks that the last running sequence needs; the others went back.

    Alone on its pool a batcher never says so: whom it lets in fits it.
    """


class ContinuousBatcher:
    """Sequences join and leave at every step.

    Made of parts: ``admission`` says who may run, ``waiting`` in which order, ``victim`` who has to go back when
    blocks run out, ``way_back`` what becomes of its KV; a child says which prompt chunks the next step holds
    (``_with_prompts``). An admission never follows a preemption in one step, and ``victim`` always spares one and the
    same, so that one moves on: there is no livelock.
    """

    decodes_beside_prompts = True  # whether a step with prompt chunks decodes too

    def __init__(
        self,
        pool: BlockPool,
        admission: AdmissionRule,
        *,
        max_sequences: int,
        max_batched_tokens: int,
        window_tokens: int | None = None,
        group: GroupMaker = DecodeGroup,
        waiting: WaitingQueue | None = None,
        victim: Victim = youngest,
        way_back: WayBack | None = None,
    ) -> None:
        self.pool = pool
        self.max_sequences = max_sequences
        self.max_batched_tokens = max_batched_tokens
        self.group = group(pool.block_tokens, grows=admission.grows, window_tokens=window_tokens)
        self._admission = admission
        self._waiting: WaitingQueue = ArrivalQueue() if waiting is None else waiting
        self._victim = victim
        self._way_back: WayBack = Recompute() if way_back is None else way_back
        self._prefilling: list[Sequence] = []
        self._running: dict[int, Sequence] = {}  # by serial, in order of admission
        self._moved_tokens = 0  # KV tokens that move before the step that is being planned
        self._coming: list[Sequence] = []  # not seen yet, where a child decides ahead
        self._queue = self._waiting.append  # where a sequence goes that comes

    @property
    def waiting_count(self) -> int:
        """Sequences that wait."""
        return len(self._waiting) + len(self._coming)

    @property
    def running(self) -> Mapping[int, Sequence]:
        """Who was admitted and is not released, by serial, the eldest admission first."""
        return self._running

    @property
    def moves_kv(self) -> bool:
        """Whether a driver must be able to move KV out of the pool and back."""
        return self._way_back.moves_kv

    def add(self, sequence: Sequence, now_s: float) -> bool:  # noqa: ARG002 - the seam of all policies
        """Queue ``sequence``; False: not even an empty server could run it to its end."""
        if not self._could_run(sequence):
            return False
        self._queue(sequence)
        return True

    def _could_run(self, sequence: Sequence) -> bool:
        return self._admission.holds(sequence)

    def close(self) -> None:
        """Nothing to do: nobody waits for company."""

    def wake_s(self) -> float:
        """Only an arrival or an end changes anything."""
        return inf

    def plan(self, now_s: float) -> Batch | None:  # noqa: ARG002
        """The next step. Preempts first if the decoding ones cannot all grow by one token."""
        group, pool = self.group, self.pool
        preempted: Preempted = ()
        if group.size and group.grows and group.blocks_for_next() > pool.free + pool.kept_blocks:
            preempted = self._make_room()
        if self._prefilling or self._waiting:
            chunks, admitted, preempted = self._with_prompts(preempted)
            if chunks or admitted:
                return self._mixed(chunks, admitted, preempted)
        return self._decode(preempted) if group.size else None

    def _with_prompts(self, preempted: Preempted) -> Planned:
        """What the next step holds beside the decoding ones, when someone is in its prompt or waits."""
        raise NotImplementedError

    def _mixed(self, chunks: list[Chunk], admitted: list[Sequence], preempted: Preempted) -> Batch:
        group = self.group
        decodes = group.size if self.decodes_beside_prompts or not chunks else 0
        context = windowed = growth = drafted = 0
        if decodes:
            growth, drafted = group.below_window, group.drafted
            context, windowed = group.context_tokens + decodes * (1 + drafted), group.windowed_tokens + growth
        active = decodes + sum([chunk[3] for chunk in chunks])
        running, waiting = len(self._running), len(self._waiting) + len(self._coming)
        parts, came, moved = tuple(chunks), tuple(admitted), self._moved_tokens
        self._moved_tokens = 0
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

    def _decode(self, preempted: Preempted, *, once: bool = False) -> Batch:
        """A step of the decoding ones alone; ``once``: the next one may be another."""
        group = self.group
        size, growth, drafted = group.size, group.below_window, group.drafted
        running, waiting, repeat, moved = len(self._running), len(self._waiting) + len(self._coming), 1, 0
        if preempted:
            moved, self._moved_tokens = self._moved_tokens, 0
        elif not (drafted or once):
            repeat = group.steps_to_next_end()
            if group.counts:
                repeat = self._steps_alike(repeat)
        context, windowed = group.context_tokens + size * (1 + drafted), group.windowed_tokens + growth
        room = running < self.max_sequences and not (self._waiting and self._waiting.newest_last)
        return Batch(
            size, context, windowed, growth, (), size, running, waiting, repeat, room, (), preempted, moved, drafted
        )

    def _steps_alike(self, most: int) -> int:
        """How many of ``most`` steps neither fill a window nor run the pool dry, nor let anyone in."""
        group, pool = self.group, self.pool
        if group.window_tokens is not None:
            most = min(most, group.steps_to_crossing())
        if not group.grows:
            return most
        if self._admission.eased_by_eviction and self._waiting:
            return max(1, group.steps_within(pool.free, most))
        return group.steps_within(pool.free + pool.kept_blocks, most)

    def commit(self, batch: Batch, steps: int) -> list[Sequence]:
        """The step ran ``steps`` times: tokens are in the cache, ended sequences give their blocks back."""
        group, pool = self.group, self.pool
        ended: list[Sequence] = []
        if batch.decodes:
            if group.grows and (growth := group.blocks_for(steps)):
                pool.take(growth)
            ended = group.advance(steps)
        if batch.chunks:
            self._computed(batch.chunks, ended)
        if ended:
            self._release(ended)
        return ended

    def _computed(self, chunks: tuple[Chunk, ...], ended: list[Sequence]) -> None:
        pool, by_chunk = self.pool, self._admission.by_chunk
        for sequence, computed_tokens, new_tokens, ends_prompt in chunks:
            tokens = computed_tokens + new_tokens
            if by_chunk and (missing := pool.private_blocks(sequence, tokens) - sequence.blocks) > 0:
                pool.take(missing)
                sequence.blocks += missing
            sequence.computed_tokens = tokens
            if sequence.block_hashes:
                pool.publish(sequence)
            if ends_prompt:
                self._prompt_done(sequence, ended)

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
        yield from self._coming

    def finish(self, sequence: Sequence) -> list[Sequence]:
        """Take out ``sequence`` wherever it is; its blocks are given back at once."""
        if sequence.serial in self._running:
            self._withdraw(sequence)
        else:
            self._waiting.remove(sequence)
            self._way_back.done(sequence)
        return [sequence]

    def _withdraw(self, sequence: Sequence) -> None:
        if sequence.join:
            self.group.leave(sequence)
            self._give_blocks(sequence)
        else:
            self._prefilling.remove(sequence)
            self.pool.release(sequence)
        del self._running[sequence.serial]

    def _release(self, ended: list[Sequence]) -> None:
        for sequence in ended:
            del self._running[sequence.serial]
            self._give_blocks(sequence)

    def _give_blocks(self, sequence: Sequence) -> None:
        if self.group.grows:
            sequence.blocks = self.pool.private_blocks(sequence, sequence.computed_tokens)
        self.pool.release(sequence)

    def _make_room(self) -> Preempted:
        out: Preempted = ()
        group, pool = self.group, self.pool
        while group.blocks_for_next() > pool.available:
            out += self._relief()
        return out

    def _relief(self) -> Preempted:
        """One more goes back, for its blocks; the last one that runs stays."""
        if len(self._running) == 1:
            raise HeldElsewhere
        return (self._send_back(),)

    def _send_back(self) -> Sequence:
        victim = self._victim(self._running, self.group)
        whole = bool(victim.join)
        self._withdraw(victim)
        victim.preemptions += 1
        self._moved_tokens += self._way_back.leave(victim, whole=whole)
        self._waiting.give_back(victim)
        return victim

    @property
    def prefilling(self) -> list[Sequence]:
        """Who is in its prompt."""
        return self._prefilling

    def hand_over(self, sequence: Sequence) -> None:
        """``sequence``, which is in its prompt, goes to another batcher on the same pool, with its blocks."""
        self._prefilling.remove(sequence)
        del self._running[sequence.serial]

    def take_over(self, sequences: list[Sequence]) -> None:
        """Sequences that another batcher handed over, each in the place of its number."""
        self._prefilling = sorted((*self._prefilling, *sequences), key=_serial)
        self._running.update((each.serial, each) for each in sequences)
        self._running = dict(sorted(self._running.items()))

    def computed_ahead(self, chunks: tuple[Chunk, ...]) -> None:
        """Parts of prompts, none their last, count as computed and take their blocks before their batch is back."""
        self._computed(chunks, [])

    def give_way(self) -> Sequence:
        """One that runs goes back, for the sake of another batcher on the same pool; somebody must run."""
        return self._send_back()

    def _admit(self, most_new: int, spare: int) -> Sequence | None:
        """The next waiting sequence with its blocks, ``spare`` blocks left; None: it must wait on.

        The step computes ``most_new`` tokens of it at most.
        """
        waiting = self._waiting
        if not waiting or len(self._running) >= self.max_sequences:
            return None
        sequence = waiting.head()
        if sequence.stored_tokens:
            spare = self._spare_for(sequence, spare)
        if not self._admission.admit(sequence, most_new, spare):
            return None
        waiting.take()
        if sequence.first_cached_tokens is None:
            sequence.first_cached_tokens = sequence.cached_tokens
        self._running[sequence.serial] = sequence
        if sequence.stored_tokens:
            self._fetch(sequence)
        else:
            self._prefilling.append(sequence)
        return sequence

    def _spare_for(self, sequence: Sequence, spare: int) -> int:
        """It decodes at once: its next token's block must stay too, lest it go back before it has moved on."""
        if not self.group.grows:
            return spare
        return max(spare, self.group.blocks_for_next()) + self.group.blocks_to_join(sequence)

    def _fetch(self, sequence: Sequence) -> None:
        """The KV of ``sequence`` moves in from elsewhere, apart from what the prefix cache has; it decodes at once."""
        stored, sequence.stored_tokens = sequence.stored_tokens, 0
        self._way_back.done(sequence)
        self._moved_tokens += stored - sequence.computed_tokens
        sequence.computed_tokens = stored
        if sequence.block_hashes:
            self.pool.publish(sequence)
        self.group.join(sequence)
