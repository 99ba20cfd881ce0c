"""What a scheduler's driver could write down for itself: who is where, with how many tokens, in which queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from servewise.batching.batch import Batch
from servewise.batching.sequence import Sequence


@dataclass
class Request:
    """A request's own count: ``made`` tokens, ``kv`` of them and of its prompt in the cache, and what it is doing."""

    sequence: Sequence
    place: Literal["waiting", "prompt", "decoding", "held"] = "waiting"
    made: int = 0
    kv: int = 0
    was_admitted: bool = False

    @property
    def over(self) -> bool:
        """Whether it has all its tokens."""
        return self.made >= self.sequence.output_tokens


@dataclass
class Books:
    """Requests by serial, and those that wait in order; moved by what each batch says, never by the batcher's state."""

    requests: dict[int, Request] = field(default_factory=dict)
    queue: list[int] = field(default_factory=list)
    first_admitted: list[int] = field(default_factory=list)
    preempted_last: bool = False  # whether who goes back goes behind the others

    def come(self, sequence: Sequence) -> None:
        """A request is queued."""
        self.requests[sequence.serial] = Request(sequence, made=sequence.generated)
        self.queue.append(sequence.serial)

    def at(self, *places: str) -> list[Request]:
        """Requests in one of ``places``."""
        return [each for each in self.requests.values() if each.place in places]

    def planned(self, batch: Batch) -> None:
        """Who goes back and who comes in, as ``batch`` says."""
        for sequence in batch.preempted:
            request = self.requests[sequence.serial]
            assert request.place in ("prompt", "decoding"), f"{sequence.serial} was not running, but {request.place}"
            request.place = "waiting"
            self.queue.insert(len(self.queue) if self.preempted_last else 0, sequence.serial)
        for sequence in batch.admitted:
            request = self.requests[sequence.serial]
            assert request.place == "waiting", f"{sequence.serial} was admitted while it was {request.place}"
            request.place = "decoding" if sequence.join else "prompt"
            request.kv = sequence.computed_tokens
            self.queue.remove(sequence.serial)
            if not request.was_admitted:
                request.was_admitted = True
                self.first_admitted.append(sequence.serial)

    def ran(self, batch: Batch, steps: int) -> None:
        """Each decoding one made a token in each step, each chunk is in the cache, a prompt's end made one more."""
        if batch.decodes:
            for request in self.at("decoding"):
                gained = self._gained(request, batch, steps)
                request.made += gained
                request.kv += gained
        for sequence, computed, new, ends_prompt in batch.chunks:
            request = self.requests[sequence.serial]
            request.kv = computed + new
            if ends_prompt:
                request.made += 1
                request.place = "decoding"

    @staticmethod
    def _gained(request: Request, batch: Batch, steps: int) -> int:
        if not batch.drafted:
            return steps
        sequence = request.sequence
        gained = sequence.generated - request.made
        assert 1 <= gained <= batch.drafted + 1
        return gained

    def gone(self, serial: int) -> None:
        """A request is released, or cancelled."""
        del self.requests[serial]
        if serial in self.queue:
            self.queue.remove(serial)
