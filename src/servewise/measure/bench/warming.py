"""What is sent before a run, outside its record: warm-up requests, and prompts that a warm prefix cache is to know."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from servewise.measure.bench.condition import Condition
from servewise.measure.load.asks import MadeAsks
from servewise.measure.load.bodies import Form
from servewise.measure.load.fixed import one_by_one
from servewise.measure.load.prompt_file import FileAsks
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.wanted import LoadWanted, schedule_for
from servewise.measure.schedule import Schedule
from servewise.workload.prefix import SharedPrefix
from servewise.workload.request import Request
from servewise.workload.synthetic import ClosedLoop
from servewise.workload.traces.trace import Trace

MOST_KNOWN = 100_000


def warm_up(load: LoadWanted, prompts: Prompts, form: Form, *, seed: int, count: int, streams: int) -> Schedule:
    """``count`` requests of the load's lengths in a closed loop of ``streams``; ``prompts`` are no others' texts."""
    if load.trace is not None:
        load = replace(load, input_tokens=load.trace.prompt_lengths(), output_tokens=load.trace.output_lengths())
    plain = replace(load, requests=count, duration_s=None, trace=None, conversations=None, prefix=None, stagger_s=0.0)
    return schedule_for(plain, prompts, form, seed=seed, concurrency=min(streams, count))


def known_prompts(
    load: LoadWanted, condition: Condition, prompts: Prompts, form: Form, *, seed: int, streams: int
) -> Schedule:
    """The prompts that the server is to know before the run, each for one token.

    Of a load with shared prefixes one prompt of each group (what comes after the prefix stays new); of any other load
    all prompts of the run.
    """
    rate = condition.rate_per_s if condition.kind == "rate" else None
    work = load.workload(concurrency=condition.streams, rate_per_s=rate)
    if load.prefix is not None:
        assert not isinstance(work, Trace), "a trace has no prefix of its own"
        chosen = _one_of_each(work.prefix)
    else:
        requests = work.shapes(seed) if isinstance(work, ClosedLoop) else work.requests(seed)
        chosen = [each._replace(output_tokens=1) for each in islice(requests, MOST_KNOWN)]
    make = FileAsks(load.file_prompts, form) if load.file_prompts else MadeAsks(prompts, form, work.hash_block_tokens)
    return one_by_one([make(request) for request in chosen], streams)


def _one_of_each(prefix: SharedPrefix | None) -> list[Request]:
    """A request of each group, with a serial that no request of the run has: its own words are no others'."""
    assert prefix is not None
    return [
        Request(MOST_KNOWN**2 + group, 0.0, prefix.tokens + 1, 1, prefix.hashes[group])
        for group in range(prefix.groups)
    ]
