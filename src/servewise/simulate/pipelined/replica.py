"""One server of several pipeline stages in simulated time.

Stage s begins batch m once the stage before has handed it on and batch m - 1 has left stage s:

    start[s][m] = max(end[s - 1][m] + hop, end[s][m - 1])

so bubbles come out by themselves: for one round of m equal batches (p - 1) / (m + p - 1) of each stage's time (Huang et
al. 2019, GPipe, section 2.3). Sequences of one lane alone jump over the steps in which nothing changes, as on one
accelerator; with several lanes in flight each batch is an event.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import cast

from servewise.batching.batch import Batch
from servewise.simulate.decoderun import decode_run
from servewise.simulate.pipelined.lanes import Lanes
from servewise.simulate.recorder import Recorder
from servewise.simulate.replica import Beside, Replica, Watch, leave
from servewise.simulate.shapes import shape_of
from servewise.simulate.timed import TimedSequence
from servewise.steptime.estimator import Estimator
from servewise.steptime.pipeline import Pipeline


@dataclass(slots=True)
class Flight:
    """``batch`` on its way for ``steps`` steps from ``start_s``.

    Its tokens are back at ``back_s``; its lane may plan again at ``free_s``: then, or, if it makes no token (a part of
    a prompt), once it has left the first stage. ``jumped``: nothing else is in the pipeline meanwhile.
    """

    batch: Batch
    steps: int
    start_s: float
    free_s: float
    back_s: float
    jumped: bool = False


class PipelinedReplica(Replica):
    """A Replica whose batches go through the stages of ``pipeline``, up to as many at once as there are stages.

    As for a Replica, ``finish`` follows ``begin``; but it may end with nobody released where only time passed until an
    arrival that an idle lane can take. ``busy_s`` is the time that each stage has worked [s].
    """

    def __init__(
        self,
        lanes: Lanes,
        pipeline: Pipeline,
        estimator: Estimator,
        recorder: Recorder,
        *,
        number: int = 0,
        longest_jump: int | None = None,
        beside: Beside | None = None,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(
            lanes, estimator, recorder, number=number, longest_jump=longest_jump, beside=beside, watch=watch
        )
        self._lanes, self._pipeline = lanes, pipeline
        self._decode_lines = pipeline.decode_lines
        self._flights: list[Flight] = []  # not yet committed
        self._backs: deque[float] = deque()  # when batches that freed their lanes early are through
        self._stage_end_s = [0.0] * len(pipeline.stages)
        self.busy_s = [0.0] * len(pipeline.stages)

    @property
    def running(self) -> bool:
        """Whether an event lies ahead that ``begin`` announced."""
        return self.due_s < inf

    def begin(self, limit_s: float = inf) -> bool:
        """Begin all that can begin now; ``due_s`` is the next event. False: there is nothing to run."""
        while self._room():
            batch, gave_way = self._plan(self.now_s), self._gave_way()
            if batch is not None:
                self._launch(batch, limit_s)
            elif self._flights or not gave_way:
                break
        self.due_s = self._next_event_s(limit_s)
        return self.due_s < inf

    def cut(self, at_s: float) -> None:
        """A sequence was added at ``at_s``: a jump ends so that it can join, or with the step under way then."""
        if not self.running:
            return
        flight = self._flights[0] if self._flights else None
        if flight is not None and flight.jumped:
            if not self._one_stage:
                self._shorten(flight, at_s)
            elif flight.batch.open and flight.steps > 1:
                self._flights[0] = self._jump_of(flight.batch, flight.start_s, at_s)
        self.due_s = self._next_event_s(at_s)

    def finish(self) -> list[TimedSequence]:
        """Pass to ``due_s``; the sequences of the batch that is back then, if one is, that are released."""
        self.now_s = now_s = self.due_s
        self.due_s = inf
        flight = min(self._flights, key=lambda each: each.free_s, default=None)
        if flight is None or flight.free_s > now_s:
            return []
        self._flights.remove(flight)
        if flight.back_s > now_s:
            self._backs.append(flight.back_s)
        if flight.jumped:
            self._work(flight)
        lane = self._lanes.number_of(flight.batch)
        return self._end(flight.batch, flight.steps, flight.start_s, flight.back_s - flight.start_s, lane)

    def halt(self, at_s: float) -> bool:
        """The server dies at ``at_s``: whole steps that ended by then are left to ``finish``; False: there are none."""
        flight = self._flights[0] if self._flights else None
        if flight is not None and flight.jumped and flight.steps > 1:
            self._jump(flight.batch, at_s - flight.start_s)
            whole = self._steps - (flight.start_s + self._spent_s > at_s)
            if whole:
                self._flights[0] = self._jump_of(flight.batch, flight.start_s, inf, whole)
                self.due_s = self._flights[0].free_s
                return True
        self._flights.clear()
        self._backs.clear()
        self.due_s = inf
        return False

    @property
    def _one_stage(self) -> bool:
        return len(self.busy_s) == 1

    def _gave_way(self) -> bool:
        """Whether a sequence went back of which no batch tells."""
        lost, self._lanes.lost = self._lanes.lost, []
        for sequence in lost:
            leave(cast("TimedSequence", sequence), self.now_s)
        return bool(lost)

    def _room(self) -> bool:
        """Whether fewer batches are in the pipeline than it has stages."""
        backs = self._backs
        while backs and backs[0] <= self.now_s:
            backs.popleft()
        return len(self._flights) + len(backs) < len(self.busy_s)

    def _next_event_s(self, limit_s: float) -> float:
        """When the first lane is free again, or a place in the pipeline, or an idle lane has something to take."""
        events = [each.free_s for each in self._flights]
        if self._backs and not self._room():
            events.append(self._backs[0])
        elif self._flights and self._lanes.idle:
            came_s = self._lanes.next_s
            events += [limit_s, came_s if came_s > self.now_s else inf, self._lanes.wake_s()]
        return min(events, default=inf)

    def _launch(self, batch: Batch, limit_s: float) -> None:
        if batch.admitted or batch.preempted:
            self._change_places(batch, self.now_s)
        start_s = self.now_s
        if self._flights or self._backs or not self._lanes.alone or not _plain(batch):
            self._flights.append(self._step_of(batch, start_s))
        elif self._one_stage:
            self._flights.append(self._jump_of(batch, start_s, limit_s if batch.open else inf))
        else:
            flight = self._jump_of(batch, start_s, inf)
            self._flights.append(flight)
            if flight.back_s > limit_s:
                self._shorten(flight, limit_s)

    def _shorten(self, flight: Flight, at_s: float) -> None:
        """Leave of a jump in several stages the whole steps that end by ``at_s``, or one step under way then."""
        self._jump(flight.batch, at_s - flight.start_s)
        whole = self._steps - (flight.start_s + self._spent_s > at_s)
        batch, start_s = flight.batch, flight.start_s
        self._flights[-1] = self._jump_of(batch, start_s, inf, whole) if whole else self._step_of(batch, start_s)

    def _jump_of(self, batch: Batch, start_s: float, limit_s: float, most: int = 1 << 62) -> Flight:
        """As many equal steps as nothing interrupts, alone in the pipeline."""
        self._jump(batch, limit_s - start_s, most)
        back_s = start_s + self._spent_s
        return Flight(batch, self._steps, start_s, back_s, back_s, jumped=True)

    def _step_of(self, batch: Batch, start_s: float) -> Flight:
        """One step through the stages."""
        shape, pipeline, ends_s = shape_of(batch, self._window), self._pipeline, self._stage_end_s
        hop_s, ready_s = pipeline.hop_s(shape.tokens), start_s
        for at, stage in enumerate(pipeline.stages):
            took_s = stage.seconds(shape)
            if at == 0 and self._beside is not None and not _plain(batch):
                took_s += self._beside(batch)
            ends_s[at] = max(ready_s, ends_s[at]) + took_s
            ready_s = ends_s[at] + hop_s
            self.busy_s[at] += took_s
        makes_tokens = batch.decodes or any(chunk.ends_prompt for chunk in batch.chunks)
        return Flight(batch, 1, start_s, ends_s[-1] if makes_tokens else ends_s[0], ends_s[-1])

    def _work(self, flight: Flight) -> None:
        """Count what each stage worked during a jump."""
        batch = flight.batch
        grows = (batch.context_tokens, batch.active, batch.windowed_tokens, batch.windowed_growth)
        for at, stage in enumerate(self._pipeline.stages):
            self.busy_s[at] += decode_run(stage.decode_lines(batch.decodes), *grows, flight.steps)[1]


def _plain(batch: Batch) -> bool:
    return not (batch.chunks or batch.moved_tokens or batch.drafted)
