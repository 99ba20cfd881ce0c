"""The decoding sequences as one group, so that many equal steps cost one update.

Every member gains one token a step. The group counts steps; a member that joins at step s with r tokens to go ends at
step s + r. The context sum, the next end, and the steps until the block pool runs dry all follow from the counter,
without touching the members.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from servewise.batching.sequence import Sequence

FOREVER = 1 << 62
JOINS = count(1)  # one for all groups: a sequence may leave one and join another, where it left its number in a heap


class GroupMaker(Protocol):
    """What makes a batcher's decode group: ``DecodeGroup`` itself, or a child's constructor with more bound to it."""

    def __call__(self, block_tokens: int, *, grows: bool, window_tokens: int | None = None) -> DecodeGroup:
        """An empty group."""
        ...


class DecodeGroup:
    """Sequences that decode one token a step. ``window_tokens`` is the model's attention window, if any.

    ``context_tokens`` and ``windowed_tokens`` are the KV tokens of all members now, the second with each member's
    capped at the window; ``below_window`` counts the members whose KV still grows inside it. ``grows`` says whether
    members take blocks as they grow (else they were reserved); ``counts`` whether blocks or a window are kept count of.

    What a child may change: ``drafted``, the draft tokens that each member verifies in the next step; the blocks of the
    next steps (``blocks_for_next`` at most, asked when a step is planned; ``blocks_for`` exactly, asked once when it is
    committed, right before ``advance``); how far a member gets in a step; and, by ``steps_to_next_end``, that no two
    steps are alike.
    """

    drafted = 0

    __slots__ = (
        "_crossings",
        "_ends",
        "_phases",
        "below_window",
        "block_tokens",
        "context_tokens",
        "counts",
        "grows",
        "size",
        "step",
        "window_tokens",
        "windowed_tokens",
    )

    def __init__(self, block_tokens: int, *, grows: bool, window_tokens: int | None = None) -> None:
        self.block_tokens = block_tokens
        self.grows = grows
        self.window_tokens = window_tokens
        self.counts = grows or window_tokens is not None
        self.step = 0
        self.size = 0
        self.context_tokens = 0
        self.windowed_tokens = 0
        self._ends: list[tuple[int, int, int, Sequence]] = []  # (end step, serial, join, member)
        # _phases[p]: members whose last block is full whenever step % block_tokens == p; stored twice in a row
        # so that any stretch of under one cycle is one slice.
        self._phases = [0] * (2 * block_tokens)
        self._crossings: list[tuple[int, int, int, Sequence]] = []  # (crossing step, serial, join, member)
        self.below_window = 0

    def join(self, sequence: Sequence) -> None:
        """Take in a sequence whose prompt is computed and whose newest token is not yet in the cache."""
        step = self.step
        end = step + sequence.output_tokens - sequence.generated
        join = next(JOINS)
        sequence.end_step = end
        sequence.join = join
        heappush(self._ends, (end, sequence.serial, join, sequence))
        self.size += 1
        self.context_tokens += sequence.computed_tokens
        if self.counts:
            self._count(sequence, sequence.computed_tokens, 1)

    def leave(self, sequence: Sequence) -> None:
        """Let a sequence go before its end: preempted, cancelled, or finished early."""
        if not sequence.join:
            raise AssertionError(f"sequence {sequence.serial} is not decoding")
        self._settle(sequence, sequence.end_step - self.step)

    def _settle(self, sequence: Sequence, left: int) -> None:
        generated = sequence.output_tokens - left
        sequence.generated = generated
        sequence.join = 0
        tokens = sequence.prompt_tokens + generated - 1
        sequence.computed_tokens = tokens
        self.size -= 1
        self.context_tokens -= tokens
        if self.counts:
            self._count(sequence, tokens, -1)

    def _count(self, sequence: Sequence, tokens: int, sign: int) -> None:
        if self.grows:
            size = self.block_tokens
            phase = (self.step - tokens) % size
            self._phases[phase] += sign
            self._phases[phase + size] += sign
        window = self.window_tokens
        if window is not None:
            self.windowed_tokens += sign * min(tokens, window)
            if tokens < window:
                self.below_window += sign
                if sign > 0:
                    heappush(self._crossings, (self.step + window - tokens, sequence.serial, sequence.join, sequence))

    def generated(self, sequence: Sequence) -> int:
        """Tokens that a member has made."""
        return sequence.output_tokens - (sequence.end_step - self.step)

    def steps_to_next_end(self) -> int:
        """Steps until the first member ends."""
        ends = self._ends
        while ends and ends[0][3].join != ends[0][2]:
            heappop(ends)
        return ends[0][0] - self.step if ends else FOREVER

    def steps_to_crossing(self) -> int:
        """Steps until a member's KV fills the window and stops growing there."""
        crossings = self._crossings
        while crossings and crossings[0][3].join != crossings[0][2]:
            heappop(crossings)
        return crossings[0][0] - self.step if crossings else FOREVER

    def blocks_for_next(self) -> int:
        """New blocks that the members take in the next step."""
        return self._phases[self.step % self.block_tokens]

    def blocks_to_join(self, sequence: Sequence) -> int:
        """New blocks that ``sequence``, its stored KV moved in, would take in the next step if it joined."""
        return int(sequence.stored_tokens % self.block_tokens == 0)

    def tokens_to_join(self, sequence: Sequence) -> int:  # noqa: ARG002 - a child's depend on it
        """New tokens of the step's budget that ``sequence`` would take in the next step if it joined."""
        return 1

    def blocks_for(self, steps: int) -> int:
        """New blocks that the members take over the next ``steps`` steps."""
        if not self.grows:
            return 0
        if steps == 1:
            return self._phases[self.step % self.block_tokens]
        cycles, rest = divmod(steps, self.block_tokens)
        start = self.step % self.block_tokens
        return cycles * self.size + sum(self._phases[start : start + rest])

    def steps_within(self, blocks: int, most: int) -> int:
        """The most steps, up to ``most``, whose growth fits in ``blocks`` blocks."""
        if not self.grows or self.size * (1 + (most - 1) // self.block_tokens) <= blocks:
            return most
        cycles = blocks // self.size if self.size else 0
        steps, left = cycles * self.block_tokens, blocks - cycles * self.size
        start = self.step % self.block_tokens
        for need in self._phases[start : start + self.block_tokens]:
            left -= need
            if left < 0:
                break
            steps += 1
        return min(steps, most)

    def advance(self, steps: int) -> list[Sequence]:
        """Every member gains ``steps`` tokens; returns those that end now, by (end, serial), already out.

        ``steps`` must not pass an end or a crossing.
        """
        self.step = step = self.step + steps
        self.context_tokens += self.size * steps
        if self.window_tokens is not None:
            self._cross(steps)
        ended: list[Sequence] = []
        ends = self._ends
        while ends and ends[0][0] <= step:
            _, _, join, sequence = heappop(ends)
            if sequence.join == join:
                self._settle(sequence, 0)
                ended.append(sequence)
        return ended

    def _cross(self, steps: int) -> None:
        self.windowed_tokens += self.below_window * steps
        crossings = self._crossings
        while crossings and crossings[0][0] <= self.step:
            _, _, join, sequence = heappop(crossings)
            if sequence.join == join:
                self.below_window -= 1
