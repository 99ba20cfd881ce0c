"""One simulated run: requests through a policy, timed by an estimator, into records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from servewise.batching.policies import Policy
from servewise.records.columns import RequestColumns, StepColumns
from servewise.steptime.estimator import Estimator
from servewise.workload.request import Request


@dataclass(frozen=True, slots=True)
class Run:
    """What a run wrote. ``slots`` is the policy's limit on sequences at once, the base of utilisation."""

    requests: RequestColumns
    steps: StepColumns
    slots: int


def simulate(
    requests: Iterable[Request],
    policy: Policy,
    estimator: Estimator,
    *,
    blocks: int | None = None,
    block_tokens: int = 16,
    hash_block_tokens: int | None = None,
    until: Callable[[RequestColumns], bool] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Run ``requests`` (in order of arrival) to their ends.

    ``blocks`` of ``block_tokens`` tokens is the KV pool, None: without limit. ``until`` is asked now and then
    whether to stop early; ``progress`` is told how many requests have ended.
    """
    raise NotImplementedError
