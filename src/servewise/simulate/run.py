"""The event core: requests through one server's policy, timed by an estimator, into records.

Simultaneous events: arrivals at a step's end count as there before the next step is planned; sequences end in the
order (step, serial).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf

from servewise.batching.policies import Policy
from servewise.deployment.deployment import Deployment
from servewise.records.columns import RequestColumns, StepColumns
from servewise.simulate.arrivals import Arrivals, OpenArrivals
from servewise.simulate.recorder import Recorder, Sink
from servewise.simulate.replica import Beside, Replica, Watch
from servewise.simulate.serving import replica_for
from servewise.simulate.timed import TimedSequence
from servewise.steptime.estimator import Estimator
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
    beside: Beside | None = None,
    watch: Watch | None = None,
    deployment: Deployment | None = None,
    into: Sink | None = None,
) -> Run:
    """Run ``requests`` (in order of arrival, or an Arrivals that answers back) to their ends.

    ``blocks`` of ``block_tokens`` tokens is the KV pool, None: without limit. Prefixes are shared where the policy
    has a prefix cache and ``hash_block_tokens`` says what the requests' hashes stand for. ``until`` is asked now
    and then whether to stop early; ``progress`` is told how many requests have ended. ``longest_jump`` bounds the
    steps taken at once; 1 steps one by one. ``beside`` are the seconds of a step that the estimator does not know (KV
    moved, tokens drafted); ``watch`` sees every step. ``deployment``, where it splits
    the model over pipeline stages, makes a server of that many batches in flight. ``into`` takes the records as they
    are made, for runs too long for memory: the Run that is returned has none then.

    Raises InputError for requests out of order.
    """
    source = OpenArrivals(requests) if isinstance(requests, Iterable) else requests
    recorder = Recorder(into)
    replica = replica_for(
        deployment,
        policy,
        estimator,
        recorder,
        blocks=blocks,
        block_tokens=block_tokens,
        hash_block_tokens=hash_block_tokens,
        longest_jump=longest_jump,
        beside=beside,
        watch=watch,
    )
    EventCore(source, replica).run(until, progress)
    recorder.leave()
    return Run(recorder.requests, recorder.steps, policy.slots)


class EventCore:
    """One run in progress: a source of requests, and the replica that serves them."""

    def __init__(self, source: Arrivals, replica: Replica) -> None:
        self._source, self._replica = source, replica
        self._ended = 0

    def run(
        self,
        until: Callable[[RequestColumns], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Run to the last request's end, or until told to stop."""
        source, replica, tell_at = self._source, self._replica, ASK_EVERY
        while True:
            next_s = source.next_s
            if next_s <= replica.now_s:
                self._arrive()
                next_s = source.next_s
            if not replica.begin(next_s):
                if not self._wait():
                    break
                continue
            if source.next_s < replica.due_s:
                self._arrive_before(replica.due_s)
            ended = replica.finish()
            if ended:
                self._end(ended)
                if self._ended >= tell_at:
                    tell_at = self._ended + ASK_EVERY
                    if self._told(until, progress):
                        break
        replica.abandon()
        if progress is not None:
            progress(self._ended)

    def _told(self, until: Callable[[RequestColumns], bool] | None, progress: Callable[[int], None] | None) -> bool:
        recorder = self._replica.recorder
        recorder.flush_if_large()
        if progress is not None:
            progress(self._ended)
        return until is not None and until(recorder.requests)

    def _arrive(self) -> None:
        source, now_s = self._source, self._replica.now_s
        while source.next_s <= now_s:
            self._take()

    def _arrive_before(self, due_s: float) -> None:
        """Who comes while a step runs is there when it ends: a policy may let go of nothing that they wait for."""
        source = self._source
        while source.next_s < due_s:
            self._take()

    def _take(self) -> None:
        source, replica = self._source, self._replica
        sequence = TimedSequence(source.take())
        if not replica.add(sequence, sequence.arrival_s):
            source.ended(sequence.serial, sequence.arrival_s)
            self._ended += 1

    def _wait(self) -> bool:
        """Let time pass to what happens next; False: nothing will."""
        batcher = self._replica.batcher
        next_s = min(self._source.next_s, batcher.wake_s())
        if next_s == inf:
            if not batcher.waiting_count:
                return False
            batcher.close()
            return True
        self._replica.wait(next_s)
        return True

    def _end(self, ended: list[TimedSequence]) -> None:
        replica, answered = self._replica, self._source.ended
        told_s = replica.now_s + replica.outside_s
        for sequence in ended:
            answered(sequence.serial, told_s)
        self._ended += len(ended)
