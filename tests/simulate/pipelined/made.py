"""Pipelines and their runs, made for these tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from servewise.batching.blockpool import BlockPool
from servewise.batching.policies import Policy
from servewise.caveats import Caveat
from servewise.simulate.arrivals import Arrivals, OpenArrivals
from servewise.simulate.pipelined.replica import PipelinedReplica
from servewise.simulate.recorder import Recorder
from servewise.simulate.replica import Replica
from servewise.simulate.run import EventCore, Run
from servewise.simulate.serving import pipelined
from servewise.simulate.timed import TimedSequence
from servewise.steptime.estimator import Estimator, Line, StepTime
from servewise.steptime.hop import Hop
from servewise.steptime.link import LinkTime
from servewise.steptime.pipeline import Pipeline
from servewise.steptime.shape import StepShape
from servewise.workload.request import Request


@dataclass(frozen=True)
class Straight:
    """An estimator by which a step takes a + b x new tokens + c x context [s]."""

    a: float
    b: float = 0.0
    c: float = 0.0
    window_tokens: int | None = None
    name: str = "straight"
    caveats: tuple[Caveat, ...] = ()

    def seconds(self, shape: StepShape) -> float:
        read = shape.decode_context_tokens + shape.prefill_context_tokens
        return self.a + self.b * shape.tokens + self.c * read

    def decode_lines(self, sequences: int) -> tuple[Line, ...]:
        return (Line(self.a + self.b * sequences, self.c, 0.0),)

    def step(self, shape: StepShape) -> StepTime:
        raise NotImplementedError


def hop(latency_s: float, bytes_per_token: float = 0.0, bytes_per_s: float = 1e9) -> Hop:
    """A hop of that latency and bytes."""
    return Hop(bytes_per_token or 1e-9, LinkTime(latency_s, bytes_per_s))


class InterruptingCore:
    """Drives a replica as a fleet does: a step begins without knowing of the next arrival, which cuts it short."""

    def __init__(self, source: Arrivals, replica: Replica) -> None:
        self._source, self._replica = source, replica

    def run(self) -> None:
        """To the last request's end."""
        source, replica = self._source, self._replica
        while True:
            next_s = min(source.next_s, replica.due_s, inf if replica.running else replica.batcher.wake_s())
            if next_s == inf:
                if not replica.batcher.waiting_count:
                    break
                replica.batcher.close()
                replica.begin()
                continue
            if replica.due_s <= next_s:
                self._finish()
            if source.next_s <= next_s:
                self._arrive(next_s)
            if not replica.running:
                replica.wait(next_s)
                replica.begin()
        replica.abandon()

    def _finish(self) -> None:
        ended = self._replica.finish()
        for each in ended:
            self._source.ended(each.serial, self._replica.now_s)

    def _arrive(self, now_s: float) -> None:
        source, replica = self._source, self._replica
        while source.next_s <= now_s:
            sequence = TimedSequence(source.take())
            if not replica.add(sequence, sequence.arrival_s):
                source.ended(sequence.serial, now_s)
        if replica.running:
            replica.cut(now_s)
            while replica.due_s < now_s:
                self._finish()
                replica.begin()
                replica.cut(now_s)


def run_of(
    requests: Iterable[Request] | Arrivals,
    policy: Policy,
    pipeline: Pipeline,
    *,
    blocks: int | None = None,
    block_tokens: int = 16,
    hash_block_tokens: int | None = None,
    longest_jump: int | None = None,
    whole: Estimator | None = None,
    interrupted: bool = False,
) -> tuple[Run, PipelinedReplica]:
    """A run of ``requests`` on one pipelined server, and the server after it."""
    cached = hash_block_tokens if getattr(policy, "prefix_cache", False) else None
    pool, recorder = BlockPool(blocks, block_tokens, cached), Recorder()
    replica = pipelined(pipeline, policy, whole or pipeline.stages[0], recorder, pool, longest_jump=longest_jump)
    source = OpenArrivals(requests) if isinstance(requests, Iterable) else requests
    core = InterruptingCore(source, replica) if interrupted else EventCore(source, replica)
    core.run()
    return Run(recorder.requests, recorder.steps, policy.slots), replica
