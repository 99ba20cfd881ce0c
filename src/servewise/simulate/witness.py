"""Sees every step of a run and tells what each request did in a window of time."""

from __future__ import annotations

from typing import cast

from servewise.batching.batch import Batch
from servewise.records.spans import Moment, Span, StepSpan
from servewise.simulate.timed import TimedSequence


class Witness:
    """A ``Watch`` of replicas: it follows each request from phase to phase and keeps what overlaps the window.

    ``finish`` adds what was still under way when the run ended, or was cut.
    """

    def __init__(self, from_s: float, to_s: float) -> None:
        self.moment = Moment(from_s, to_s)
        self._phase: dict[int, tuple[str, float, int]] = {}  # serial -> phase, since [s], at which server
        self._last_s = from_s

    def __call__(self, replica: int, start_s: float, end_s: float, batch: Batch, ended: list[TimedSequence]) -> None:
        """A step ran from ``start_s`` to ``end_s``."""
        self._last_s = max(self._last_s, end_s)
        for sequence in batch.preempted:
            self._enter(sequence.serial, "preempted", start_s, replica)
        for sequence in batch.admitted:
            self._admitted(cast("TimedSequence", sequence), start_s, replica, batch)
        for chunk in batch.chunks:
            if chunk.ends_prompt:
                self._enter(chunk.sequence.serial, "decode", end_s, replica)
        for each in ended:
            self._leave(each.serial, end_s)
        if self.moment.overlaps(start_s, end_s):
            tokens = sum(chunk.new_tokens for chunk in batch.chunks)
            counts = (batch.decodes, tokens, batch.running, batch.waiting, batch.context_tokens)
            self.moment.steps.append(StepSpan(start_s, end_s, replica, *counts))

    def finish(self) -> Moment:
        """The moment; what has not ended is in its phase up to the last step's end."""
        for serial in list(self._phase):
            self._leave(serial, self._last_s)
        return self.moment

    def _admitted(self, sequence: TimedSequence, start_s: float, replica: int, batch: Batch) -> None:
        serial = sequence.serial
        if serial not in self._phase:
            came_s = sequence.admitted_s if sequence.transfer_s else sequence.arrival_s
            self._phase[serial] = ("transfer" if sequence.transfer_s else "queue", came_s, replica)
        computes = any(chunk.sequence is sequence for chunk in batch.chunks)
        self._enter(serial, "prefill" if computes else "decode", start_s, replica)

    def _enter(self, serial: int, phase: str, at_s: float, replica: int) -> None:
        self._leave(serial, at_s)
        self._phase[serial] = (phase, at_s, replica)

    def _leave(self, serial: int, at_s: float) -> None:
        before = self._phase.pop(serial, None)
        if before is not None and at_s > before[1] and self.moment.overlaps(before[1], at_s):
            self.moment.spans.append(Span(serial, before[0], before[1], at_s, before[2]))
