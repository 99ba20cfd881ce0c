"""A recorded trace, sent at its own times or at any other rate, with prompts that share exactly what it shared."""

from __future__ import annotations

from functools import partial

from servewise.measure.load.asks import MadeAsks
from servewise.measure.load.bodies import Form
from servewise.measure.load.open import OpenSchedule
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.supply import Supply
from servewise.workload.traces.trace import Trace


def replay(
    trace: Trace,
    prompts: Prompts,
    form: Form,
    *,
    seed: int = 0,
    rate_per_s: float | None = None,
    requests: int | None = None,
    max_in_flight: int | None = None,
) -> OpenSchedule:
    """The requests of ``trace``; ``rate_per_s`` scales its times, ``requests`` cuts or repeats it.

    Each block hash becomes text of one block's tokens, the same for the same hash, so that two prompts agree in as many
    tokens as their chains of hashes do (Mooncake: blocks of 512; then the next word agrees once in 1,024).
    """
    wanted = trace if requests is None else trace.tiled(requests)
    wanted = wanted if rate_per_s is None else wanted.at_rate(rate_per_s)
    make = MadeAsks(prompts, form, wanted.hash_block_tokens)
    return OpenSchedule(Supply(partial(wanted.requests, seed), make), max_in_flight=max_in_flight)
