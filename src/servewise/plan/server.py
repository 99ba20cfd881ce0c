"""One replica at work: a policy, the time of its steps and its KV pool, ready to run requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from servewise.batching.policies import Policy
from servewise.records.columns import RequestColumns
from servewise.simulate.arrivals import Arrivals
from servewise.simulate.replica import Watch
from servewise.simulate.run import Run, simulate
from servewise.steptime.estimator import Estimator
from servewise.workload.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """``blocks`` of ``block_tokens`` tokens are one replica's KV pool, None: without limit."""

    policy: Policy
    estimator: Estimator
    blocks: int | None
    block_tokens: int
    hash_block_tokens: int | None = None

    def run(
        self,
        requests: Iterable[Request] | Arrivals,
        *,
        until: Callable[[RequestColumns], bool] | None = None,
        progress: Callable[[int], None] | None = None,
        watch: Watch | None = None,
    ) -> Run:
        """Run ``requests`` to their ends, or until told to stop; ``watch`` sees every step."""
        return simulate(
            requests,
            self.policy,
            self.estimator,
            blocks=self.blocks,
            block_tokens=self.block_tokens,
            hash_block_tokens=self.hash_block_tokens,
            until=until,
            progress=progress,
            watch=watch,
        )

    def timed_by(self, estimator: Estimator) -> Server:
        """The same server with another clock."""
        return replace(self, estimator=estimator)
