"""The next step as a policy decides it, and what a driver asks of a policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from servewise.batching.decodegroup import DecodeGroup
from servewise.batching.sequence import Sequence


class Chunk(NamedTuple):
    """``new_tokens`` prompt tokens of a sequence, after ``computed_tokens`` that are in the cache.

    ``ends_prompt``: the sequence's next token comes with this step.
    """

    sequence: Sequence
    computed_tokens: int
    new_tokens: int
    ends_prompt: bool


class Batch(NamedTuple):
    """The next step: ``decodes`` rows of one new token each, and prompt chunks.

    ``decodes`` counts the rows that are computed, needed or not (a static batch computes its ended ones too);
    ``active`` the sequences that get a token, ``running`` those that hold a slot, ``waiting`` those that wait for
    one. ``context_tokens`` and ``windowed_tokens`` are the KV tokens that the decoding rows read, their new ones
    included. ``repeat``: this very step may run that often before anything changes, arrivals aside, each time reading
    one KV token more for each active row (``windowed_growth`` more inside the window). ``open``: an arrival could join
    at the next step. ``moved_tokens`` KV tokens come from elsewhere, or go there, before the step (a swap, or the
    cache of a prefill server). ``drafted``: draft tokens that each decoding row verifies beside its one new token;
    their KV is in ``context_tokens``. ``drafting``: so many of the rows verify drafts, the others decode one token (an
    n-gram that found no match); 0: all do.
    """

    decodes: int
    context_tokens: int
    windowed_tokens: int
    windowed_growth: int
    chunks: tuple[Chunk, ...]
    active: int
    running: int
    waiting: int
    repeat: int
    open: bool
    admitted: tuple[Sequence, ...]
    preempted: tuple[Sequence, ...]
    moved_tokens: int = 0
    drafted: int = 0
    drafting: int = 0


class Batcher(Protocol):
    """A policy at work. The driver adds, plans, runs the step in its own way, and commits."""

    @property
    def group(self) -> DecodeGroup:
        """The decoding sequences."""
        ...

    @property
    def waiting_count(self) -> int:
        """Sequences that wait."""
        ...

    def add(self, sequence: Sequence, now_s: float) -> bool:
        """Queue a sequence that came at ``now_s``; False: it can never run within the limits."""
        ...

    def close(self) -> None:
        """No more will come: a policy that waits for a full batch need not."""
        ...

    def plan(self, now_s: float) -> Batch | None:
        """The next step; None: nothing to run before an arrival or ``wake_s``."""
        ...

    def wake_s(self) -> float:
        """When to plan again though nothing arrives; infinity: no need."""
        ...

    def commit(self, batch: Batch, steps: int) -> list[Sequence]:
        """The step ran ``steps`` times; returns the sequences that are released now."""
        ...

    def unreleased(self) -> Iterator[Sequence]:
        """Every sequence that waits or runs."""
        ...

    def finish(self, sequence: Sequence) -> list[Sequence]:
        """Take out a sequence between two steps, wherever it is: its end came early, or it was cancelled.

        Returns the sequences that are released now, as ``commit`` does: it alone, or none or a whole batch where a
        batch is released together.
        """
        ...
