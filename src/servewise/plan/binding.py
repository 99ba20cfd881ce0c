"""What a run was bound by: the part of its steps' time that is longest, and what waiting requests waited for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from servewise.batching.policies import Dynamic, Policy, Sglang, Static
from servewise.metrics.latency import Ints, floats, ints
from servewise.plan.presets import cuts_prompts, tokens_of
from servewise.plan.server import Server
from servewise.records.selection import lanes_of
from servewise.simulate.run import Run
from servewise.steptime.shape import StepShape

LOOKED_AT = 400  # steps whose time is taken apart
WORDS = {"memory": "bandwidth"}  # an estimator's "memory" is the memory's bandwidth; here memory is its size


@dataclass(frozen=True, slots=True)
class Binding:
    """``resource`` is compute, bandwidth, communication or overhead: the longest part of most of the step time.

    ``kv_peak`` is the largest share of the KV pool in use; ``mean_batch`` the sequences of a mean step. The others are
    shares of busy time in which requests waited: because no slot was free (``waits_for_slots``; a batch that runs to
    its end counts as that), because the step's tokens were spent (``waits_for_tokens``), or although both were to be
    had, so for KV blocks (``waits_for_memory``).
    """

    resource: str
    kv_peak: float
    waits_for_memory: float
    waits_for_slots: float
    mean_batch: float
    waits_for_tokens: float = 0.0


def binding_of(server: Server, run: Run) -> Binding:
    """What ``run`` of ``server`` was bound by."""
    steps = run.steps
    if not len(steps):
        return Binding("overhead", 0.0, 0.0, 0.0, 0.0)
    seconds, count = floats(steps.seconds), ints(steps.steps)
    running, waiting = ints(steps.running), ints(steps.waiting)
    busy = float(seconds.sum())
    queued = waiting > 0
    full = (running >= run.slots / lanes_of(steps)) | isinstance(server.policy, Static | Dynamic)
    spent = ~full & _spent(server.policy, ints(steps.decode_sequences), ints(steps.prefill_tokens))
    pool = (server.blocks or 0) * server.block_tokens
    return Binding(
        resource=_resource(server, run),
        kv_peak=float((ints(steps.kv_tokens) + ints(steps.decode_sequences) * (count - 1)).max()) / pool
        if pool
        else 0.0,
        waits_for_memory=float(seconds[queued & ~full & ~spent].sum()) / busy,
        waits_for_slots=float(seconds[queued & full].sum()) / busy,
        mean_batch=float(running @ count) / float(count.sum()),
        waits_for_tokens=float(seconds[queued & spent].sum()) / busy,
    )


def _spent(policy: Policy, decodes: Ints, prefill: Ints) -> NDArray[np.bool_]:
    """Whether a step left no room for another prompt: its budget is used up, or it is full of whole prompts."""
    tokens = tokens_of(policy)
    if tokens is None or not cuts_prompts(policy):
        return prefill > 0
    return (prefill if isinstance(policy, Sglang) else decodes + prefill) >= tokens


def _resource(server: Server, run: Run) -> str:
    steps = run.steps
    picked = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), LOOKED_AT)).astype(int))
    weights: dict[str, float] = {}
    for row in picked.tolist():
        shape = _shape(server, run, row)
        bound = server.estimator.step(shape).bound
        weights[bound] = weights.get(bound, 0.0) + steps.seconds[row]
    longest = max(sorted(weights), key=lambda name: weights[name])
    return WORDS.get(longest, longest)


def _shape(server: Server, run: Run, row: int) -> StepShape:
    """About the step of that row; the context of prompts in it is counted with the decoding sequences'."""
    steps = run.steps
    decodes, prefill, context = steps.decode_sequences[row], steps.prefill_tokens[row], steps.kv_tokens[row]
    window = server.estimator.window_tokens
    windowed = min(context, decodes * window) if window else context
    return StepShape(
        decodes,
        context,
        windowed,
        prefill_sequences=1 if prefill else 0,
        prefill_tokens=prefill,
        prefill_context_tokens=prefill,
        prefill_windowed_tokens=prefill,
        prefill_pairs=prefill * (prefill + 1) // 2,
        prefill_windowed_pairs=prefill * (prefill + 1) // 2,
        logit_rows=decodes + (1 if prefill else 0),
    )
