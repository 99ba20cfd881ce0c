"""The spread of an estimator's coefficients as two clocks: a slow one and a fast one, 95% of draws between them.

Coefficients are drawn ``DRAWS`` times, the draws ranked by the time that a mean request takes of a full server, and
those at 2.5% and 97.5% taken. Whatever is computed with both lies apart by what the coefficients leave open, without a
run for every draw. Each draw keeps the estimator's floor, so both do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from servewise.deployment.deployment import Deployment
from servewise.plan.clock import kind_for
from servewise.plan.server import Server
from servewise.steptime.draws import calibrated_draws
from servewise.steptime.estimator import Estimator
from servewise.steptime.served import ServedRoofline
from servewise.steptime.server_roofline import ServerRoofline
from servewise.steptime.shape import decode_shape, prefill_shape
from servewise.workload.request import Request

DRAWS = 199
TAIL = 0.025


class Bracket(NamedTuple):
    """The clock at 97.5% of slowness and that at 2.5%."""

    slow: Estimator
    fast: Estimator


def bracket(
    deployment: Deployment, estimator: str | None, server: Server, requests: Sequence[Request], seed: int
) -> Bracket | None:
    """The slow and the fast clock of ``deployment``; None where the estimator has no coefficients to draw.

    The own two of a calibration, and of a server as shipped, are as far apart as its predictions were off on what its
    fit did not see.
    """
    if kind_for(deployment, estimator) != "calibrated":
        own = server.estimator.bracket() if isinstance(server.estimator, ServerRoofline | ServedRoofline) else None
        return None if own is None else Bracket(*own)
    prompt = max(1, round(sum(each.prompt_tokens for each in requests) / len(requests)))
    output = max(1, round(sum(each.output_tokens for each in requests) / len(requests)))
    draws = calibrated_draws(deployment, seed=seed, count=DRAWS)
    ranked = sorted(draws, key=lambda clock: seconds_per_request(server.timed_by(clock), prompt, output))
    place = round(TAIL * (DRAWS + 1)) - 1
    return Bracket(slow=ranked[-1 - place], fast=ranked[place])


def seconds_per_request(server: Server, prompt_tokens: int, output_tokens: int) -> float:
    """Server time that one request takes of a server as full as slots and pool allow [s].

    Its prompt alone, and its share of as many decode steps as it has tokens, at the context of its middle.
    """
    clock = server.estimator
    middle = prompt_tokens + (output_tokens + 1) // 2
    batch = server.policy.slots
    if server.blocks is not None:
        batch = max(1, min(batch, server.blocks * server.block_tokens // (prompt_tokens + output_tokens)))
    step = clock.seconds(decode_shape(batch, middle, clock.window_tokens))
    return clock.seconds(prefill_shape(1, prompt_tokens, clock.window_tokens)) + output_tokens * step / batch
