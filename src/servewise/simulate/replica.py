"""One server in simulated time: it begins a step, may be interrupted by an arrival, and finishes it.

Between two events (an arrival that could join, an end, a prompt chunk, the block pool running dry, a window filling
up) the batch does not change, so all those steps are one jump in closed form. It gives what stepping one by one
gives; a property test holds the two equal. An estimator may know a time ``request_s`` that each request takes outside
of steps (``ServerCoefficients``): its tokens reach the client so much later.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import cast

from servewise.batching.batch import Batch, Batcher
from servewise.records.columns import COMPLETED, REJECTED, UNFINISHED
from servewise.simulate.decoderun import decode_run
from servewise.simulate.recorder import Recorder
from servewise.simulate.shapes import shape_of
from servewise.simulate.timed import UNSET, TimedSequence
from servewise.steptime.estimator import Estimator, Line

Beside = Callable[[Batch], float]  # seconds that a step takes beside the estimator's: KV moved, tokens drafted
Watch = Callable[[int, float, float, Batch, list[TimedSequence]], None]  # replica, start, end [s], batch, who ended


class Replica:
    """A policy at work under an estimator's clock, writing into ``recorder`` under its ``number``.

    ``now_s`` is the end of the last step, or the time to which ``wait`` let it pass; while a step runs, its start.
    ``due_s`` is when the step or jump under way ends; infinity: none is. ``longest_jump`` bounds the steps taken at
    once; 1 steps one by one.
    """

    def __init__(
        self,
        batcher: Batcher,
        estimator: Estimator,
        recorder: Recorder,
        *,
        number: int = 0,
        longest_jump: int | None = None,
        beside: Beside | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.batcher, self.estimator, self.recorder, self.number = batcher, estimator, recorder, number
        self.now_s = 0.0
        self.due_s = inf
        self.outside_s = float(getattr(estimator, "request_s", 0.0))  # a request's time outside of all steps
        self._beside, self._watch = beside, watch
        self._plan, self._commit = batcher.plan, batcher.commit
        self._seconds, self._decode_lines = estimator.seconds, estimator.decode_lines
        self._lines: dict[int, tuple[Line, ...]] = {}
        self._window = estimator.window_tokens
        self._longest_jump = longest_jump or 1 << 62
        self._ahead = bool(getattr(batcher, "decides_ahead", False))
        self._batch: Batch | None = None
        self._steps = 0
        self._spent_s = 0.0

    @property
    def running(self) -> bool:
        """Whether a step is under way."""
        return self._batch is not None

    def add(self, sequence: TimedSequence, came_s: float) -> bool:
        """Queue ``sequence``; False: it can never run here, and its record says that it was rejected."""
        if self.batcher.add(sequence, came_s):
            return True
        self.recorder.ended(sequence, came_s, REJECTED, self)
        return False

    def begin(self, limit_s: float = inf) -> bool:
        """Begin the next step, or a jump that ends with the first step at or after ``limit_s`` where one could join.

        False: there is nothing to run before an arrival or the policy's own hour.
        """
        start_s = self.now_s
        self._batch = batch = self._plan(start_s)
        if batch is None:
            self.due_s = inf
            return False
        if batch.admitted or batch.preempted:
            self._change_places(batch, start_s)
        if batch.chunks or batch.moved_tokens or batch.drafted:
            self._steps, self._spent_s = 1, self._seconds(shape_of(batch, self._window))
            if self._beside is not None:
                self._spent_s += self._beside(batch)
        else:
            self._jump(batch, limit_s - start_s if batch.open else inf)
            if self._ahead:
                self._one_more(batch)
        self.due_s = start_s + self._spent_s
        return True

    def cut(self, at_s: float) -> None:
        """A sequence was added at ``at_s``: a jump that it could join ends with the first step at or after."""
        batch = self._batch
        if batch is not None and batch.open and self._steps > 1:
            self._jump(batch, at_s - self.now_s)
            if self._ahead:
                self._one_more(batch)
            self.due_s = self.now_s + self._spent_s

    def _one_more(self, batch: Batch) -> None:
        """Where the next step is decided ahead, the one after an arrival runs without it: no event of its own."""
        if self._steps < min(batch.repeat, self._longest_jump):
            self.batcher.seen_until_s = self.now_s + self._spent_s  # type: ignore[attr-defined]
            self._jump(batch, inf, self._steps + 1)

    def finish(self) -> list[TimedSequence]:
        """End the step under way at ``due_s``; returns the sequences that are released, their records written."""
        batch, start_s = cast("Batch", self._batch), self.now_s
        self._batch = None
        self.now_s = self.due_s
        self.due_s = inf
        return self._end(batch, self._steps, start_s, self._spent_s)

    def _end(self, batch: Batch, steps: int, start_s: float, spent_s: float, lane: int = 0) -> list[TimedSequence]:
        """``batch`` comes back at ``now_s``: records, and the policy's commit."""
        now_s = self.now_s
        tokens = 0
        for chunk in batch.chunks:
            tokens += chunk[2]
        self.recorder.stepped(
            (
                start_s,
                spent_s,
                steps,
                batch.decodes,
                tokens,
                batch.running,
                batch.waiting,
                batch.context_tokens,
                batch.active,
                self.number,
                lane,
            )
        )
        ended = cast("list[TimedSequence]", self._commit(batch, steps))
        for sequence, _, _, ends_prompt in batch.chunks:
            if ends_prompt:
                _prompt_done(cast("TimedSequence", sequence), now_s)
        if self._watch is not None:
            self._watch(self.number, start_s, now_s, batch, ended)
        if ended:
            record = self.recorder.ended
            for each in ended:
                record(each, now_s, COMPLETED, self)
        return ended

    @property
    def joinable(self) -> bool:
        """Whether a sequence that comes now could join at the end of the step under way, or nothing is under way."""
        return self._batch is None or self._batch.open

    def pace(self) -> tuple[int, list[Line]]:
        """The steps under way, and what each takes: the largest of lines over the number of the step, from 0 on."""
        batch, steps = cast("Batch", self._batch), self._steps
        if batch.chunks or batch.moved_tokens or batch.drafted:
            return 1, [Line(self._spent_s, 0.0)]
        reads, growth = (batch.context_tokens, batch.active), (batch.windowed_tokens, batch.windowed_growth)
        return steps, [
            Line(base + each * reads[0] + windowed * growth[0], each * reads[1] + windowed * growth[1])
            for base, each, windowed in self._lines[batch.decodes]
        ]

    def keep_pace(self, steps: int, spent_s: float) -> None:
        """The steps under way are ``steps`` and take ``spent_s`` [s]: others, with whom it keeps step, are slower."""
        self._steps, self._spent_s = steps, spent_s
        self.due_s = self.now_s + spent_s

    def halt(self, at_s: float) -> bool:
        """The server dies at ``at_s``: whole steps that ended by then are left to ``finish``; False: there are none."""
        whole = self._whole_steps(at_s)
        if not whole:
            self._batch, self.due_s = None, inf
            return False
        self._jump(cast("Batch", self._batch), inf, whole)
        self.due_s = self.now_s + self._spent_s
        return True

    def _whole_steps(self, at_s: float) -> int:
        """Of the jump under way, the steps that end by ``at_s``; a single step under way does not."""
        batch = self._batch
        if batch is None or self._steps == 1:
            return 0
        self._jump(batch, at_s - self.now_s)
        return self._steps - (self.now_s + self._spent_s > at_s)

    def wait(self, until_s: float) -> None:
        """Let time pass: nothing is under way."""
        self.now_s = max(self.now_s, until_s)

    def abandon(self) -> None:
        """The run is over: what waits or runs is recorded as unfinished."""
        for sequence in self.batcher.unreleased():
            self.recorder.ended(cast("TimedSequence", sequence), nan, UNFINISHED, self)

    def _jump(self, batch: Batch, limit_s: float, most: int = 1 << 62) -> None:
        size = batch.decodes
        lines = self._lines.get(size)
        if lines is None:
            lines = self._lines[size] = self._decode_lines(size)
        self._steps, self._spent_s = decode_run(
            lines,
            batch.context_tokens,
            batch.active,
            batch.windowed_tokens,
            batch.windowed_growth,
            min(batch.repeat, self._longest_jump, most),
            limit_s,
        )

    @staticmethod
    def _change_places(batch: Batch, start_s: float) -> None:
        for sequence in batch.preempted:
            leave(cast("TimedSequence", sequence), start_s)
        for sequence in batch.admitted:
            _enter(cast("TimedSequence", sequence), start_s)


def _enter(sequence: TimedSequence, now_s: float) -> None:
    if sequence.admitted_s is UNSET:
        sequence.admitted_s = now_s
    elif sequence.left_s is not UNSET:
        sequence.away(now_s)
    if not sequence.join:  # it has a prompt to compute
        sequence.prefill_from_s = now_s


def leave(sequence: TimedSequence, now_s: float) -> None:
    """``sequence`` is preempted at ``now_s``."""
    sequence.left_s = now_s
    if sequence.prefill_from_s is not UNSET:
        sequence.prefill_s += now_s - sequence.prefill_from_s
        sequence.prefill_from_s = UNSET


def _prompt_done(sequence: TimedSequence, now_s: float) -> None:
    sequence.prefill_s += now_s - sequence.prefill_from_s
    sequence.prefill_from_s = UNSET
    if sequence.first_token_s is UNSET:
        sequence.first_token_s = now_s
