"""Coefficients fitted on the first half of a run's requests, by the product's own calibration, judged on the second."""

from __future__ import annotations

import numpy as np

from benchmarks.accuracy.vllm_runs.judged import Errors, Times, errors, measured
from benchmarks.accuracy.vllm_runs.runs import BLOCK_TOKENS, VllmRun
from servewise.calibrate.from_requests import fit_requests
from servewise.calibrate.replay import Replay, Served
from servewise.steptime.server_coefficients import ServerCoefficients
from servewise.steptime.server_roofline import ServerRoofline


def replay(run: VllmRun) -> Replay:
    """The run as the calibration takes it: every request arrives, all may be judged."""
    known = measured(run)
    requests = run.requests()
    return Replay(
        load="10 requests/s",
        requests=tuple(each._replace(block_hashes=()) for each in requests),
        concurrency=None,
        pause_s=0.0,
        judged=np.arange(len(requests)),
        ttft_s=known.ttft_s,
        tpot_s=known.tpot_s,
        cycle_s=known.e2e_s,
        gaps_s=np.array([]),
    )


def served(run: VllmRun, blocks: int) -> Served:
    """The server save for its clock; steps of the asynchronous scheduler last as long."""
    return Served(policy=run.policy(async_scheduling=False), blocks=blocks, block_tokens=BLOCK_TOKENS)


def fit_first_half(run: VllmRun, blocks: int, seed: int = 0) -> ServerCoefficients:
    """The eight coefficients that the times of the first half of the requests tell."""
    asked = replay(run)
    half = np.arange(len(asked.requests) // 2)
    return fit_requests(run.deployment, served(run, blocks), [asked], [half], seed).coefficients


def halves(run: VllmRun, blocks: int, coefficients: ServerCoefficients) -> tuple[Errors, Errors]:
    """The errors of the first half (fitted) and of the second (judged)."""
    known, asked = measured(run), replay(run)
    found = served(run, blocks).run(asked, ServerRoofline(run.deployment, coefficients)).requests
    order = np.argsort(np.array(found.id))
    columns = (found.sent_s, found.first_token_s, found.end_s, found.output_tokens)
    predicted = Times(*(np.array(each, np.float64)[order] for each in columns))
    middle = len(order) // 2
    parts = slice(0, middle), slice(middle, None)
    first, second = (errors(predicted.part(rows), known.part(rows)) for rows in parts)
    return first, second
