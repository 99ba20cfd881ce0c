"""By a rank of each sequence's own: its priority, or its length; equals by arrival."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from servewise.batching.sequence import Sequence

Rank = Callable[[Sequence], int]


def priority(sequence: Sequence) -> int:
    """The lower goes first: vLLM's ``scheduling_policy=priority`` (v1/core/sched/request_queue.py, 0.19)."""
    return sequence.priority


def shortest_prompt(sequence: Sequence) -> int:
    """The fewest tokens to compute first; the generated ones too, after a preemption."""
    return sequence.target_tokens


def shortest_output(sequence: Sequence) -> int:
    """The fewest tokens to generate first: what a perfect predictor of lengths would give."""
    return sequence.output_tokens - sequence.generated


def longest_output(sequence: Sequence) -> int:
    """The most tokens allowed first: SGLang's ``schedule_policy=lof`` (managers/schedule_policy.py, 0.5.6)."""
    return -sequence.output_tokens


class RankedQueue:
    """The lowest rank first, equals by serial; a preempted sequence is ranked like any other."""

    newest_last = False
    rejoins_last = False

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._heap: list[tuple[int, int, Sequence]] = []

    def append(self, sequence: Sequence) -> None:
        """Take in a sequence."""
        heappush(self._heap, (self._rank(sequence), sequence.serial, sequence))

    give_back = append

    def arrange(self) -> None:
        """A rank does not change while its sequence waits."""

    def head(self) -> Sequence:
        """The lowest rank."""
        return self._heap[0][2]

    def take(self) -> Sequence:
        """Take out the lowest rank."""
        return heappop(self._heap)[2]

    def remove(self, sequence: Sequence) -> None:
        """Take out ``sequence``; ValueError if it is not here."""
        self._heap.remove((self._rank(sequence), sequence.serial, sequence))
        heapify(self._heap)

    def __len__(self) -> int:
        """How many wait."""
        return len(self._heap)

    def __iter__(self) -> Iterator[Sequence]:
        """Those that wait, the first first."""
        return (each for _, _, each in sorted(self._heap, key=lambda entry: entry[:2]))
