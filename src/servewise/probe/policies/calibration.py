"""Steps to fit a clock on: bursts through the engine at several numbers of slots, apart from every measured run.

A burst is more requests than slots, all there at once, lengths as in the measured traffic but of another seed. With
continuous batching it keeps the slots full and mixes prompt chunks with decode; with a static batch it computes many
prompts in one step and keeps ended rows. So it visits the shapes that the measured runs will, at every batch size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from servewise.batching.policies import Continuous, Policy, Static
from servewise.engine.step import Model
from servewise.probe.policies.clock import Clock
from servewise.probe.policies.drive import TimedShape, drive, prompts_of
from servewise.workload.synthetic import Synthetic

CALIBRATION_SEED = 1_000_003
PROMPT_SEED = 17


def calibration_policies(slots: int, continuous: Continuous) -> list[Policy]:
    """Continuous batching at 1, 2, 4 ... slots, and static batches of half and all."""
    sizes = sorted({1 << power for power in range(slots.bit_length())} | {slots})
    tokens = continuous.max_batched_tokens
    found: list[Policy] = [
        Continuous(max_sequences=each, max_batched_tokens=tokens, chunked_prefill=continuous.chunked_prefill)
        for each in sizes
        if each <= slots
    ]
    return [*found, *(Static(each) for each in sorted({max(1, slots // 2), slots}))]


def calibrate(
    model: Model,
    policies: Sequence[Policy],
    traffic: Synthetic,
    *,
    blocks: int,
    clock: Clock,
    turn: int,
) -> list[TimedShape]:
    """The timed steps of one burst for each policy; ``turn`` numbers the calibration, and with it the seed."""
    found: list[TimedShape] = []
    for place, policy in enumerate(policies):
        seed = CALIBRATION_SEED + 100 * turn + place
        burst = replace(traffic, count=policy.slots + 1, duration_s=None)
        requests = [each._replace(arrival_s=0.0) for each in burst.requests(seed)]
        prompts = prompts_of(requests, model.config.vocabulary, PROMPT_SEED + seed)
        found += drive(model, policy, requests, prompts, blocks=blocks, clock=clock).shapes
    return found
