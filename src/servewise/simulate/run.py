"""The event core: requests through a policy, timed by an estimator, into records.

Between two events (an arrival that could join, an end, a prompt chunk, the block pool running dry, a window filling
up) the batch does not change, so all those steps are one jump in closed form. It gives what stepping one by one
gives; a property test holds the two equal. Simultaneous events: arrivals at a step's end count as there before the
next step is planned; sequences end in the order (step, serial). An estimator may know a time ``request_s`` that each
request takes outside of steps (``ServerCoefficients``): its tokens reach the client so much later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, nan
from typing import cast

from servewise.batching.batch import Batch, Batcher
from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Policy
from servewise.batching.sequence import Sequence
from servewise.records.columns import REJECTED, UNFINISHED, RequestColumns, StepColumns
from servewise.simulate.arrivals import Arrivals, OpenArrivals
from servewise.simulate.decoderun import decode_run
from servewise.simulate.recorder import UNSET, Recorder, TimedSequence
from servewise.simulate.shapes import shape_of
from servewise.steptime.estimator import Estimator, Line
from servewise.workload.request import Request

ASK_EVERY = 512  # requests that end between two questions of ``until`` and two words to ``progress``


@dataclass(frozen=True, slots=True)
class Run:
    """What a run wrote. ``slots`` is the policy's limit on sequences at once, the base of utilisation."""

    requests: RequestColumns
    steps: StepColumns
    slots: int


def simulate(
    requests: Iterable[Request] | Arrivals,
    policy: Policy,
    estimator: Estimator,
    *,
    blocks: int | None = None,
    block_tokens: int = 16,
    hash_block_tokens: int | None = None,
    until: Callable[[RequestColumns], bool] | None = None,
    progress: Callable[[int], None] | None = None,
    longest_jump: int | None = None,
) -> Run:
    """Run ``requests`` (in order of arrival, or an Arrivals that answers back) to their ends.

    ``blocks`` of ``block_tokens`` tokens is the KV pool, None: without limit. Prefixes are shared where the policy
    has a prefix cache and ``hash_block_tokens`` says what the requests' hashes stand for. ``until`` is asked now
    and then whether to stop early; ``progress`` is told how many requests have ended. ``longest_jump`` bounds the
    steps taken at once; 1 steps one by one.

    Raises InputError for requests out of order.
    """
    cached = hash_block_tokens if getattr(policy, "prefix_cache", False) else None
    batcher = policy.batcher(BlockPool(blocks, block_tokens, cached), estimator.window_tokens)
    source = OpenArrivals(requests) if isinstance(requests, Iterable) else requests
    core = EventCore(source, batcher, estimator, longest_jump)
    core.run(until, progress)
    return Run(core.recorder.requests, core.recorder.steps, policy.slots)


class EventCore:
    """One run in progress: the clock, the policy at work, the records so far."""

    def __init__(
        self, source: Arrivals, batcher: Batcher, estimator: Estimator, longest_jump: int | None = None
    ) -> None:
        self.now_s = 0.0
        self._outside_s = float(getattr(estimator, "request_s", 0.0))  # a request's time outside of all steps
        self.recorder = Recorder(self._outside_s)
        self._source = source
        self._batcher = batcher
        self._seconds = estimator.seconds
        self._decode_lines = estimator.decode_lines
        self._lines: dict[int, tuple[Line, ...]] = {}
        self._window = estimator.window_tokens
        self._longest_jump = longest_jump or 1 << 62
        self._ended = 0

    def run(
        self,
        until: Callable[[RequestColumns], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Run to the last request's end, or until told to stop."""
        source, plan, tell_at = self._source, self._batcher.plan, ASK_EVERY
        while True:
            if source.next_s <= self.now_s:
                self._arrive()
            batch = plan(self.now_s)
            if batch is None:
                if not self._wait():
                    break
                continue
            ended = self._mixed_step(batch) if batch.chunks else self._decode_steps(batch)
            if ended:
                self._end(ended)
                if self._ended >= tell_at:
                    tell_at = self._ended + ASK_EVERY
                    if self._told(until, progress):
                        break
        for sequence in self._batcher.unreleased():
            self.recorder.ended(cast("TimedSequence", sequence), nan, UNFINISHED)
        if progress is not None:
            progress(self._ended)

    def _told(self, until: Callable[[RequestColumns], bool] | None, progress: Callable[[int], None] | None) -> bool:
        self.recorder.flush_if_large()
        if progress is not None:
            progress(self._ended)
        return until is not None and until(self.recorder.requests)

    def _arrive(self) -> None:
        source, now_s, add = self._source, self.now_s, self._batcher.add
        while source.next_s <= now_s:
            sequence = TimedSequence(source.take())
            if not add(sequence, sequence.arrival_s):
                self.recorder.ended(sequence, sequence.arrival_s, REJECTED)
                source.ended(now_s)
                self._ended += 1

    def _wait(self) -> bool:
        """Let time pass to what happens next; False: nothing will."""
        next_s = min(self._source.next_s, self._batcher.wake_s())
        if next_s == inf:
            if not self._batcher.waiting_count:
                return False
            self._batcher.close()
            return True
        self.now_s = max(self.now_s, next_s)
        return True

    def _mixed_step(self, batch: Batch) -> list[Sequence]:
        start_s, batcher = self.now_s, self._batcher
        for sequence in batch.admitted:
            if sequence.admitted_s is UNSET:  # type: ignore[attr-defined]  # the core adds only TimedSequences
                sequence.admitted_s = start_s  # type: ignore[attr-defined]
        shape = shape_of(batch, self._window)
        seconds = self._seconds(shape)
        self.now_s = now_s = start_s + seconds
        self.recorder.stepped(
            (
                start_s,
                seconds,
                1,
                batch.decodes,
                shape.prefill_tokens,
                batch.running,
                batch.waiting,
                batch.context_tokens,
                batch.active,
            )
        )
        ended = batcher.commit(batch, 1)
        for sequence, _, _, ends_prompt in batch.chunks:
            if ends_prompt and sequence.first_token_s is UNSET:  # type: ignore[attr-defined]
                sequence.first_token_s = now_s  # type: ignore[attr-defined]
        return ended

    def _decode_steps(self, batch: Batch) -> list[Sequence]:
        start_s, batcher, size = self.now_s, self._batcher, batch.decodes
        lines = self._lines.get(size)
        if lines is None:
            lines = self._lines[size] = self._decode_lines(size)
        steps, seconds = decode_run(
            lines,
            batch.context_tokens,
            batch.active,
            batch.windowed_tokens,
            batch.windowed_growth,
            min(batch.repeat, self._longest_jump),
            self._source.next_s - start_s if batch.open else inf,
        )
        self.now_s = start_s + seconds
        self.recorder.stepped(
            (start_s, seconds, steps, size, 0, batch.running, batch.waiting, batch.context_tokens, batch.active)
        )
        return batcher.commit(batch, steps)

    def _end(self, ended: list[Sequence]) -> None:
        now_s, record, answer = self.now_s, self.recorder.ended, self._source.ended
        told_s = now_s + self._outside_s
        for sequence in ended:
            record(sequence, now_s)  # type: ignore[arg-type]  # the core adds only TimedSequences
            answer(told_s)
        self._ended += len(ended)
